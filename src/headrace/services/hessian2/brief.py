"""Values in a few words, for messages and logs.

What came over a wire can be endless to print: it may share its parts a million times over, or refer back to itself.
The work done here is bounded by the length of the text, whatever the value is.
"""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import enum
import itertools
import json
import uuid
from collections.abc import Iterable, Iterator, Mapping, Set

from headrace.services.hessian2.values import JavaObject

_MAX_DEPTH = 10
_MAX_BITS = 256


def brief(value: object, limit: int = 200) -> str:
    """`value` in the manner of JSON, up to `limit` characters."""
    text = ""
    for piece in _pieces(value, limit, 0):
        text += piece
        if len(text) > limit:
            text = text[:limit] + "…"
            break
    return text.encode("utf-8", "backslashreplace").decode()  # half a surrogate pair can be written nowhere


def _pieces(value: object, limit: int, depth: int) -> Iterator[str]:
    if value is None or isinstance(value, bool | float):
        yield json.dumps(value)
    elif isinstance(value, enum.Enum):
        yield json.dumps(value.name, ensure_ascii=False)
    elif isinstance(value, str):
        yield json.dumps(value[: limit + 1], ensure_ascii=False)
    elif isinstance(value, int):
        bits = value.bit_length()
        yield str(int(value)) if bits <= _MAX_BITS else f"<a number of {bits} bits>"
    elif isinstance(value, bytes | bytearray):
        yield f"<{len(value)} bytes>"
    elif isinstance(value, _SAID_BY_STR):
        yield json.dumps(str(value)[: limit + 1])
    elif (entries := _entries(value)) is not None:
        yield from _object(entries, limit, depth)
    elif isinstance(value, list | tuple | Set):
        yield from _array(value, limit, depth)
    else:
        yield f"<{type(value).__name__}>"


_SAID_BY_STR = (
    datetime.date,
    datetime.time,
    datetime.timedelta,
    datetime.tzinfo,
    decimal.Decimal,
    uuid.UUID,
    BaseException,
)


def _entries(value: object) -> Iterable[tuple[object, object]] | None:
    """What an object or a map holds, by name or key."""
    if isinstance(value, JavaObject):
        return itertools.chain([("class", value.class_name)], value.fields.items())
    if isinstance(value, Mapping):
        return value.items()
    if dataclasses.is_dataclass(value):
        return ((each.name, getattr(value, each.name, None)) for each in dataclasses.fields(value))
    if hasattr(value, "__pydantic_validator__"):
        return vars(value).items()
    return None


def _object(entries: Iterable[tuple[object, object]], limit: int, depth: int) -> Iterator[str]:
    if depth == _MAX_DEPTH:
        yield "{…}"
        return
    between = "{"
    for key, item in entries:
        yield between
        yield from _pieces(key, limit, depth + 1)
        yield ": "
        yield from _pieces(item, limit, depth + 1)
        between = ", "
    yield "{}" if between == "{" else "}"


def _array(items: Iterable[object], limit: int, depth: int) -> Iterator[str]:
    if depth == _MAX_DEPTH:
        yield "[…]"
        return
    between = "["
    for item in items:
        yield between
        yield from _pieces(item, limit, depth + 1)
        between = ", "
    yield "[]" if between == "[" else "]"
