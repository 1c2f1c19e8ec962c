"""Quotas as people write them: produce=10MB/s, request-time=50%, mutations=5/s."""

from __future__ import annotations

import math
import re
from typing import NamedTuple

from headrace.cli.failure import Misuse, did_you_mean

_UNITS = {
    "": 1,
    "b": 1,
    "kb": 10**3,
    "mb": 10**6,
    "gb": 10**9,
    "tb": 10**12,
    "kib": 2**10,
    "mib": 2**20,
    "gib": 2**30,
    "tib": 2**40,
}
_SHOWN = {"TB": 10**12, "GB": 10**9, "MB": 10**6, "kB": 10**3}
_SHOWN_BINARY = {"TiB": 2**40, "GiB": 2**30, "MiB": 2**20, "KiB": 2**10}


class Kind(NamedTuple):
    """A quota: Kafka's name for it, and an example of its value."""

    key: str
    example: str


KINDS = {
    "produce": Kind("producer_byte_rate", "10MB/s"),
    "consume": Kind("consumer_byte_rate", "10MB/s"),
    "request-time": Kind("request_percentage", "50%"),
    "mutations": Kind("controller_mutation_rate", "5/s"),
    "connections": Kind("connection_creation_rate", "20/s"),
}
_NAME_OF = {kind.key: name for name, kind in KINDS.items()}


def kind_of(text: str) -> str:
    """The name here of a quota that is given by it or by Kafka's."""
    name = _NAME_OF.get(text, text)
    if name not in KINDS:
        hint = did_you_mean(text, [*KINDS, *_NAME_OF]) or f" There are {', '.join(KINDS)}."
        raise Misuse(f"There is no quota '{text}'.{hint}")
    return name


def parse(text: str) -> tuple[str, float]:
    """`produce=10MB/s`: Kafka's name and the number."""
    given, equals, value = text.partition("=")
    name = kind_of(given.strip())
    kind = KINDS[name]
    number = _number(name, value.strip()) if equals else None
    if number is None or not math.isfinite(number) or number <= 0:
        raise Misuse(f"A quota looks like {name}={kind.example}, not '{text}'.")
    return kind.key, number


def _number(name: str, text: str) -> float | None:
    found = re.fullmatch(r"([0-9]+(?:\.[0-9]*)?)\s*([a-zA-Z]*)\s*(%|/s|)", text)
    if found is None:
        return None
    number, unit, ending = float(found[1]), found[2].lower(), found[3]
    if name in ("produce", "consume"):
        return None if unit not in _UNITS or ending == "%" else float(round(number * _UNITS[unit]))
    allowed = ("", "%") if name == "request-time" else ("", "/s")
    return None if unit or ending not in allowed else number


def shown(name: str, value: float) -> str:
    if name in ("produce", "consume"):
        return f"{_bytes(value)}/s"
    return f"{value:g}%" if name == "request-time" else f"{value:g}/s"


def _bytes(value: float) -> str:
    """In the largest unit that tells it exactly, in few digits."""
    for units in (_SHOWN, _SHOWN_BINARY):
        for unit, size in units.items():
            if value >= size and (value / size * 10).is_integer():
                return f"{value / size:g} {unit}"
    return f"{value:.0f} B"
