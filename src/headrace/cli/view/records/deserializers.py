"""Java's standard deserializers by class name, for printing keys and values that are not text."""

from __future__ import annotations

import struct
import uuid
from collections.abc import Callable

from headrace.cli.failure import Failure

Deserializer = Callable[[bytes], str]


def by_class_name(name: str) -> Deserializer:
    found = _BY_NAME.get(name.rpartition(".")[2])
    if found is None:
        known = ", ".join(sorted(_BY_NAME))
        raise Failure(f"The deserializer {name} is Java code that cannot run here; known ones are {known}.")
    return found


def _text(data: bytes) -> str:
    return data.decode(errors="replace")


def _number(layout: str, what: str) -> Deserializer:
    packed = struct.Struct(layout)

    def deserialize(data: bytes) -> str:
        if len(data) != packed.size:
            raise Failure(f"{what} has {packed.size} bytes, but a record has {len(data)} there.")
        return str(packed.unpack(data)[0])

    return deserialize


def _boolean(data: bytes) -> str:
    if data not in (b"\0", b"\1"):
        raise Failure("A Boolean is one byte, 0 or 1, but a record has something else there.")
    return "true" if data == b"\1" else "false"


def _uuid(data: bytes) -> str:
    try:
        return str(uuid.UUID(data.decode()))
    except ValueError:
        raise Failure("A UUID is its 36 characters, but a record has something else there.") from None


_BY_NAME: dict[str, Deserializer] = {
    "BooleanDeserializer": _boolean,
    "ByteArrayDeserializer": _text,
    "ByteBufferDeserializer": _text,
    "BytesDeserializer": _text,
    "DoubleDeserializer": _number(">d", "A Double"),
    "FloatDeserializer": _number(">f", "A Float"),
    "IntegerDeserializer": _number(">i", "An Integer"),
    "LongDeserializer": _number(">q", "A Long"),
    "ShortDeserializer": _number(">h", "A Short"),
    "StringDeserializer": _text,
    "UUIDDeserializer": _uuid,
}
