"""Readers of the values that hold no others: null, booleans, numbers, dates, strings and binary data."""

from __future__ import annotations

import struct
from datetime import datetime, timedelta

from headrace.services.hessian2.errors import Hessian2Error
from headrace.services.hessian2.input import Input
from headrace.services.hessian2.output import EPOCH
from headrace.services.hessian2.strings import decode_units, measure

_unpack_int = struct.Struct(">i").unpack_from
_unpack_long = struct.Struct(">q").unpack_from
_unpack_double = struct.Struct(">d").unpack_from


def read_none(source: Input, tag: int) -> None:
    return None


def read_true(source: Input, tag: int) -> bool:
    return True


def read_false(source: Input, tag: int) -> bool:
    return False


def read_int_1(source: Input, tag: int) -> int:
    return tag - 0x90


def read_int_2(source: Input, tag: int) -> int:
    pos = source.pos
    source.pos = pos + 1
    return ((tag - 0xC8) << 8) + source.data[pos]


def read_int_3(source: Input, tag: int) -> int:
    pos = source.pos
    source.pos = pos + 2
    return ((tag - 0xD4) << 16) + (source.data[pos] << 8) + source.data[pos + 1]


def read_int_5(source: Input, tag: int) -> int:
    value: int = _unpack_int(source.data, source.pos)[0]
    source.pos += 4
    return value


def read_long_1(source: Input, tag: int) -> int:
    return tag - 0xE0


def read_long_2(source: Input, tag: int) -> int:
    pos = source.pos
    source.pos = pos + 1
    return ((tag - 0xF8) << 8) + source.data[pos]


def read_long_3(source: Input, tag: int) -> int:
    pos = source.pos
    source.pos = pos + 2
    return ((tag - 0x3C) << 16) + (source.data[pos] << 8) + source.data[pos + 1]


def read_long_9(source: Input, tag: int) -> int:
    value: int = _unpack_long(source.data, source.pos)[0]
    source.pos += 8
    return value


def read_double_zero(source: Input, tag: int) -> float:
    return 0.0


def read_double_one(source: Input, tag: int) -> float:
    return 1.0


def read_double_2(source: Input, tag: int) -> float:
    return float(int.from_bytes(source.take(1), "big", signed=True))


def read_double_3(source: Input, tag: int) -> float:
    return float(int.from_bytes(source.take(2), "big", signed=True))


def read_double_mills(source: Input, tag: int) -> float:
    return 0.001 * read_int_5(source, tag)


def read_double_9(source: Input, tag: int) -> float:
    value: float = _unpack_double(source.data, source.pos)[0]
    source.pos += 8
    return value


def read_date(source: Input, tag: int) -> datetime:
    millis = read_long_9(source, tag) if tag == 0x4A else read_int_5(source, tag) * 60000
    try:
        return EPOCH + timedelta(milliseconds=millis)
    except OverflowError:
        raise Hessian2Error(
            f"A date of {millis} ms is outside the years 1 to 9999, which Python can hold."
        ) from None


def read_string_1(source: Input, length: int) -> str:
    """The shortest strings, whose tag is their length; and any other once its length is known."""
    start = source.pos
    end = start + length
    piece = source.data[start:end]
    if piece.isascii() and len(piece) == length:
        source.pos = end
        return piece.decode("ascii")
    source.pos = end = measure(source.data, start, length)
    return decode_units(source.data[start:end])


def read_string_2(source: Input, tag: int) -> str:
    length = ((tag - 0x30) << 8) + source.data[source.pos]
    source.pos += 1
    return read_string_1(source, length)


def read_string_3(source: Input, tag: int) -> str:
    return read_string_1(source, int.from_bytes(source.take(2), "big"))


def read_string_chunks(source: Input, tag: int) -> str:
    pieces = bytearray()
    while True:
        if tag == 0x52 or tag == 0x53:
            length = int.from_bytes(source.take(2), "big")
        elif tag < 0x20:
            length = tag
        elif 0x30 <= tag < 0x34:
            length = ((tag - 0x30) << 8) + source.take(1)[0]
        else:
            raise Hessian2Error(f"Tag 0x{tag:02x} stands where a string goes on.")
        start = source.pos
        source.pos = measure(source.data, start, length)
        pieces += source.data[start : source.pos]
        if tag != 0x52:
            return decode_units(bytes(pieces))
        tag = source.take(1)[0]


def read_binary_1(source: Input, tag: int) -> bytes:
    return source.take(tag - 0x20)


def read_binary_2(source: Input, tag: int) -> bytes:
    return source.take(((tag - 0x34) << 8) + source.take(1)[0])


def read_binary_chunks(source: Input, tag: int) -> bytes:
    pieces = []
    while tag == 0x41:
        pieces.append(source.take(int.from_bytes(source.take(2), "big")))
        tag = source.take(1)[0]
    if tag == 0x42:
        pieces.append(source.take(int.from_bytes(source.take(2), "big")))
    elif 0x20 <= tag < 0x30:
        pieces.append(read_binary_1(source, tag))
    elif 0x34 <= tag < 0x38:
        pieces.append(read_binary_2(source, tag))
    else:
        raise Hessian2Error(f"Tag 0x{tag:02x} stands where binary data goes on.")
    return b"".join(pieces)
