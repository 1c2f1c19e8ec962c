"""Walking the records of a decompressed payload without creating objects for them.

The bytes are untrusted: whatever they hold, a walk ends within them or raises one KafkaError (INVALID_RECORD). Compaction
walks every record of a log here, so varints of one or two bytes, which nearly all are, are read inline.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from headrace.wire.errors import ErrorCode, KafkaError

_MAX_UINT64 = 0xFFFFFFFFFFFFFFFF

RawRecord = tuple[int, int, int, int, int, int, int, int, int]
"""Where the parts of one record lie in the decompressed payload: its start (with its length) and end,
timestamp and offset deltas, start and length of key and of value (length -1 means null), start of the
headers."""


def iterate_raw(payload: bytes, count: int) -> Iterator[RawRecord]:
    """The `count` records of a payload, without copying keys or values; nothing may be left over."""
    position, end = 0, len(payload)
    try:
        for _ in range(count):
            start = position
            number = payload[position]
            position += 1
            if number >= 0x80:
                if (second := payload[position]) < 0x80:
                    number = number & 0x7F | second << 7
                    position += 1
                    length = (number >> 1) ^ -(number & 1)
                else:
                    length, position = read_varint(payload, start, end)
            else:
                length = (number >> 1) ^ -(number & 1)
            record_end = position + length
            if length < 1 or record_end > end:
                raise invalid(f"record length {length} does not fit the {end - position} bytes left")
            position += 1
            number = payload[position]
            if number >= 0x80:
                timestamp_delta, position = read_varint(payload, position, record_end)
            else:
                timestamp_delta = (number >> 1) ^ -(number & 1)
                position += 1
            number = payload[position]
            if number >= 0x80:
                if (second := payload[position + 1]) < 0x80:
                    number = number & 0x7F | second << 7
                    offset_delta = (number >> 1) ^ -(number & 1)
                    position += 2
                else:
                    offset_delta, position = read_varint(payload, position, record_end)
            else:
                offset_delta = (number >> 1) ^ -(number & 1)
                position += 1
            number = payload[position]
            if number >= 0x80:
                key_length, key_start = read_varint(payload, position, record_end)
            else:
                key_length = (number >> 1) ^ -(number & 1)
                key_start = position + 1
            position = key_start + key_length if key_length > 0 else key_start
            number = payload[position]
            if number >= 0x80:
                if (second := payload[position + 1]) < 0x80:
                    number = number & 0x7F | second << 7
                    value_length = (number >> 1) ^ -(number & 1)
                    value_start = position + 2
                else:
                    value_length, value_start = read_varint(payload, position, record_end)
            else:
                value_length = (number >> 1) ^ -(number & 1)
                value_start = position + 1
            position = value_start + value_length if value_length > 0 else value_start
            if key_length < -1 or value_length < -1 or position > record_end:
                raise invalid("a key or value does not fit its record")
            yield (
                start,
                record_end,
                timestamp_delta,
                offset_delta,
                key_start,
                key_length,
                value_start,
                value_length,
                position,
            )
            position = record_end
    except IndexError:
        raise invalid("a record ends outside the batch") from None
    if position != end:
        raise invalid(f"{end - position} bytes follow the last of {count} records")


def read_keys(payload: bytes, count: int) -> tuple[list[bytes | None], bool]:
    """The keys of the `count` records of a payload, and whether their offset deltas count up from 0.

    Values and headers are not read: for most records compaction needs only the key.
    """
    keys: list[bytes | None] = []
    in_order = True
    position, end = 0, len(payload)
    try:
        for number in range(count):
            value = payload[position]
            position += 1
            if value >= 0x80:
                if (second := payload[position]) < 0x80:
                    value = value & 0x7F | second << 7
                    position += 1
                    length = (value >> 1) ^ -(value & 1)
                else:
                    length, position = read_varint(payload, position - 1, end)
            else:
                length = (value >> 1) ^ -(value & 1)
            record_end = position + length
            if length < 1 or record_end > end:
                raise invalid(f"record length {length} does not fit the {end - position} bytes left")
            position += 1
            if payload[position] < 0x80:
                position += 1
            else:
                _, position = read_varint(payload, position, record_end)
            value = payload[position]
            if value < 0x80:
                offset_delta = (value >> 1) ^ -(value & 1)
                position += 1
            elif (second := payload[position + 1]) < 0x80:
                value = value & 0x7F | second << 7
                offset_delta = (value >> 1) ^ -(value & 1)
                position += 2
            else:
                offset_delta, position = read_varint(payload, position, record_end)
            if offset_delta != number:
                in_order = False
            value = payload[position]
            if value < 0x80:
                key_length = (value >> 1) ^ -(value & 1)
                position += 1
            else:
                key_length, position = read_varint(payload, position, record_end)
            if key_length < -1 or position + key_length > record_end:
                raise invalid("a key does not fit its record")
            keys.append(payload[position : position + key_length] if key_length >= 0 else None)
            position = record_end
    except IndexError:
        raise invalid("a record ends outside the batch") from None
    if position != end:
        raise invalid(f"{end - position} bytes follow the last of {count} records")
    return keys, in_order


def plainly_keyed(payload: bytes, count: int) -> bool:
    """Whether these are `count` whole records that all have keys and whose offset deltas count up from 0.

    False means only that a full check is needed: a varint is unusually long, or something is wrong.
    """
    position, end = 0, len(payload)
    try:
        for number in range(count):
            value = payload[position]
            if value < 0x80:
                position += 1
            elif (second := payload[position + 1]) < 0x80:
                value = value & 0x7F | second << 7
                position += 2
            else:
                return False
            if value & 1:
                return False
            record_end = position + (value >> 1)
            position += 2 if payload[position + 1] < 0x80 else 3
            if payload[position - 1] >= 0x80:
                return False
            value = payload[position]
            if value >= 0x80:
                position += 1
                if (second := payload[position]) >= 0x80:
                    return False
                value = value & 0x7F | second << 7
            key_length = payload[position + 1]
            if value != 2 * number or key_length & 0x81:
                return False
            position += 2 + (key_length >> 1)
            value = payload[position]
            if value < 0x80:
                position += 1
            elif (second := payload[position + 1]) < 0x80:
                value = value & 0x7F | second << 7
                position += 2
            else:
                return False
            if not value & 1:
                position += value >> 1
            elif value > 1:
                return False
            if position > record_end:
                return False
            position = record_end
    except IndexError:
        return False
    return position == end


def pick_records(payload: bytes, numbers: Sequence[int]) -> list[bytes]:
    """The records with these numbers, counted from 0 in the order they have in the payload, each with its length in front;
    the others are skipped by their length. For a payload whose keys have been read."""
    picked: list[bytes] = []
    position, end, at = 0, len(payload), 0
    try:
        for wanted in numbers:
            start = position
            while at <= wanted:
                start = position
                value = payload[position]
                if value < 0x80:
                    position += 1 + (value >> 1)
                elif (second := payload[position + 1]) < 0x80:
                    position += 2 + ((value & 0x7F | second << 7) >> 1)
                else:
                    length, position = read_varint(payload, position, end)
                    position += length
                if position <= start or position > end:
                    raise invalid("a record does not fit the batch")
                at += 1
            picked.append(payload[start:position])
    except IndexError:
        raise invalid("a record ends outside the batch") from None
    return picked


def read_varint(payload: bytes, position: int, end: int) -> tuple[int, int]:
    """A zigzag varint of at most 64 bits: (value, position after it)."""
    try:
        result = shift = 0
        while True:
            byte = payload[position]
            position += 1
            if byte < 0x80:
                break
            result |= (byte & 0x7F) << shift
            shift += 7
            if shift > 63:
                raise invalid("a varint is longer than it may be")
    except IndexError:
        raise invalid("a varint ends outside the batch") from None
    result |= byte << shift
    if position > end or result > _MAX_UINT64:
        raise invalid("a varint does not fit its record")
    return (result >> 1) ^ -(result & 1), position


def invalid(what: str) -> KafkaError:
    """The error of records that cannot be read."""
    return KafkaError(ErrorCode.INVALID_RECORD, f"The records of the batch cannot be read: {what}.")
