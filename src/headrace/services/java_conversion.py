"""Which JSON values Dubbo's Java providers turn into a declared number or boolean, as their generic calls do.

A fraction for a whole number would lose its digits, and any text but true for a boolean would be false: those are left out.
"""

from __future__ import annotations

import re

WHOLE = ("int", "long", "short", "byte", "Integer", "Long", "Short", "Byte", "BigInteger")
FRACTIONS = ("float", "double", "Float", "Double", "BigDecimal")
BOOLEANS = ("boolean", "Boolean")
_WHOLE_TEXT = re.compile(r"[+-]?[0-9]+")
_FRACTION_TEXT = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")


def short_name(java_type: str) -> str:
    return java_type.removeprefix("java.lang.").removeprefix("java.math.")


def java_converts(value: object, java_type: str) -> bool:
    """Whether a value that is not of the type becomes one, without losing anything."""
    short = short_name(java_type)
    if isinstance(value, str):
        if short in WHOLE:
            return _WHOLE_TEXT.fullmatch(value) is not None
        if short in FRACTIONS:
            return _FRACTION_TEXT.fullmatch(value) is not None
        return short in BOOLEANS and value.lower() in ("true", "false")
    if isinstance(value, float):
        return short in WHOLE and value.is_integer()
    return type(value) is int and short in BOOLEANS and value in (0, 1)
