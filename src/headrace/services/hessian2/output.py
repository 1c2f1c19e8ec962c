"""The writing half of the codec: one body's bytes, its references, class definitions and type references.

Writers are plain functions `(output, value)`, found by the value's exact type in `output.writers`; this module
has those of Python's own types. Integers take the shortest form that Java's reader maps back to the same type.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence, Set
from datetime import UTC, datetime, timedelta
from typing import Any

from headrace.services.hessian2.errors import Hessian2Error
from headrace.services.hessian2.strings import encode_string

# A writer's value has the type it was registered under, which the table cannot express.
Writer = Callable[["Output", Any], None]

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
_BINARY_CHUNK = 4093  # Java's 4 KiB buffer less the three bytes of a chunk's head
_pack_int = struct.Struct(">Bi").pack
_pack_long = struct.Struct(">Bq").pack
_pack_double = struct.Struct(">Bd").pack


class Definition:
    """A class definition, encoded once: the class name and the names of its fields."""

    __slots__ = ("encoded", "fields", "key")

    def __init__(self, class_name: str, fields: Sequence[str]) -> None:
        self.key = (class_name, tuple(fields))
        self.fields = self.key[1]
        self.encoded = b"".join(
            [b"C", encode_string(class_name), encode_int(len(fields)), *map(encode_string, fields)]
        )


class Output:
    """One body being written. All values of a body share its references and definitions."""

    __slots__ = ("_classes", "_kept", "_refs", "_types", "out", "writers")

    def __init__(self, writers: Mapping[type, Writer]) -> None:
        self.out = bytearray()
        self.writers = writers
        # A reference's number is its place in `_kept`, which also keeps the object alive so its id stays its own.
        self._kept: list[object] = []
        self._refs: dict[int, int] = {}
        self._classes: dict[tuple[str, tuple[str, ...]], int] = {}
        self._types: dict[str, int] = {}

    def write(self, value: object) -> None:
        self.writers[type(value)](self, value)

    def refer(self, value: object) -> bool:
        """Write a reference if `value` was written before; else count it as written now."""
        key = id(value)
        number = self._refs.get(key)
        if number is None:
            self._refs[key] = len(self._kept)
            self._kept.append(value)
            return False
        self.out += b"Q"
        self.out += encode_int(number)
        return True

    def count(self) -> None:
        """Count a value that nothing refers to later, yet takes a number with the reader."""
        self._kept.append(None)

    def write_type(self, name: str) -> None:
        number = self._types.get(name)
        if number is None:
            self._types[name] = len(self._types)
            self.out += encode_string(name)
        else:
            self.out += encode_int(number)

    def begin_list(self, length: int, java_type: str | None) -> None:
        if java_type is None:
            if length < 8:
                self.out.append(0x78 + length)
                return
            self.out.append(0x58)
        elif length < 8:
            self.out.append(0x70 + length)
            self.write_type(java_type)
            return
        else:
            self.out.append(0x56)
            self.write_type(java_type)
        self.out += encode_int(length)

    def begin_map(self, java_type: str | None) -> None:
        if java_type is None:
            self.out += b"H"
        else:
            self.out += b"M"
            self.write_type(java_type)

    def end(self) -> None:
        self.out += b"Z"

    def begin_object(self, definition: Definition) -> None:
        """Write the definition if this body does not have it yet, then the object's head; its fields follow."""
        number = self._classes.get(definition.key)
        if number is None:
            number = self._classes[definition.key] = len(self._classes)
            self.out += definition.encoded
        if number < 16:
            self.out.append(0x60 + number)
        else:
            self.out += b"O"
            self.out += encode_int(number)


def encode_int(value: int) -> bytes:
    if -2048 <= value < 2048:
        return _SMALL_INTS[value + 2048]
    if -0x40000 <= value < 0x40000:
        return (0xD40000 + value).to_bytes(3, "big")
    return _pack_int(0x49, value)


def encode_long(value: int) -> bytes:
    if -2048 <= value < 2048:
        return _SMALL_LONGS[value + 2048]
    if -0x40000 <= value < 0x40000:
        return (0x3C0000 + value).to_bytes(3, "big")
    if -0x80000000 <= value < 0x80000000:
        return _pack_int(0x59, value)
    return _pack_long(0x4C, value)


def _small_int(value: int) -> bytes:
    return bytes([0x90 + value]) if -16 <= value < 48 else (0xC800 + value).to_bytes(2, "big")


def _small_long(value: int) -> bytes:
    return bytes([0xE0 + value]) if -8 <= value < 16 else (0xF800 + value).to_bytes(2, "big")


_SMALL_INTS = [_small_int(value) for value in range(-2048, 2048)]
_SMALL_LONGS = [_small_long(value) for value in range(-2048, 2048)]


def write_none(output: Output, value: None) -> None:
    output.out += b"N"


def write_bool(output: Output, value: bool) -> None:
    output.out += b"T" if value else b"F"


def write_int(output: Output, value: int) -> None:
    """An int, which must fit 32 bits."""
    try:
        output.out += encode_int(value)
    except struct.error:
        raise Hessian2Error(f"{value} does not fit a Java int.") from None


def write_long(output: Output, value: int) -> None:
    """A long, which must fit 64 bits."""
    try:
        output.out += encode_long(value)
    except struct.error:
        raise Hessian2Error(f"{value} does not fit a Java long.") from None


def write_double(output: Output, value: float) -> None:
    # Java's writer turns -0.0 into 0.0; the long form keeps its sign, and every reader takes it.
    if -2147483.648 <= value <= 2147483.647 and (value or str(value)[0] != "-"):
        whole = int(value)
        if whole == value and -0x8000 <= whole < 0x8000:
            if whole == 0:
                output.out += b"\x5b"
            elif whole == 1:
                output.out += b"\x5c"
            elif -0x80 <= whole < 0x80:
                output.out += (0x5D00 | whole & 0xFF).to_bytes(2, "big")
            else:
                output.out += (0x5E0000 | whole & 0xFFFF).to_bytes(3, "big")
            return
        mills = int(value * 1000)
        if 0.001 * mills == value:
            output.out += _pack_int(0x5F, mills)
            return
    output.out += _pack_double(0x44, value)


def write_str(output: Output, value: str) -> None:
    if value.isascii() and len(value) < 0x20:
        output.out.append(len(value))
        output.out += value.encode("ascii")
    else:
        output.out += encode_string(value)


def write_bytes(output: Output, value: bytes | bytearray | memoryview) -> None:
    out = output.out
    data = value if isinstance(value, bytes | bytearray) else bytes(value)
    start, length = 0, len(data)
    while length > _BINARY_CHUNK:
        out += b"A" + _BINARY_CHUNK.to_bytes(2, "big")
        out += data[start : start + _BINARY_CHUNK]
        start += _BINARY_CHUNK
        length -= _BINARY_CHUNK
    if length < 0x10:
        out.append(0x20 + length)
    elif length < 0x400:
        out += (0x3400 + length).to_bytes(2, "big")
    else:
        out += b"B" + length.to_bytes(2, "big")
    out += data[start:] if start else data


def write_millis(output: Output, millis: int) -> None:
    """A java.util.Date: whole minutes in five bytes, else milliseconds in nine."""
    minutes, rest = divmod(millis, 60000)
    if rest == 0 and -0x80000000 <= minutes < 0x80000000:
        output.out += _pack_int(0x4B, minutes)
    else:
        output.out += _pack_long(0x4A, millis)


def millis_of(value: datetime) -> int:
    if value.tzinfo is None:
        raise Hessian2Error(
            f"{value} has no time zone, so it is no java.util.Date: give it a tzinfo, or send a LocalDateTime."
        )
    return (value - EPOCH) // _MILLISECOND


def write_list(output: Output, value: list[Any]) -> None:
    if output.refer(value):
        return
    output.begin_list(len(value), None)
    _write_items(output, value)


def write_tuple(output: Output, value: tuple[Any, ...]) -> None:
    # Equal constants can be one object in Python without meaning to be: a tuple is never a reference.
    output.count()
    output.begin_list(len(value), None)
    _write_items(output, value)


def write_set(output: Output, value: Set[Any]) -> None:
    if output.refer(value):
        return
    output.begin_list(len(value), "java.util.HashSet")
    _write_items(output, value)


def write_dict(output: Output, value: Mapping[Any, Any]) -> None:
    if output.refer(value):
        return
    output.out += b"H"
    writers = output.writers
    for key, item in value.items():
        writers[type(key)](output, key)
        writers[type(item)](output, item)
    output.out += b"Z"


def _write_items(output: Output, value: Sequence[Any] | Set[Any]) -> None:
    writers = output.writers
    for item in value:
        writers[type(item)](output, item)
