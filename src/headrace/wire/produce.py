"""Produce, read and written by hand: the one request whose cost decides how fast a broker is.

Records are passed on as slices of the frame, never copied and never decoded.

- 3: the oldest version with record batches  - 5: log start offset in the reply  - 8: errors per record
- 9: compact encoding  - 10: the current leader when the broker is not it  - 13: topic ids instead of names
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import NamedTuple

from headrace.wire.codec import WireError, checked_count, read_uvarint, skip_tags, write_uvarint
from headrace.wire.frames import Endpoint, write_compact_string, write_endpoint_tag

FLEXIBLE = 9
TOPIC_IDS = 13

_ACKS_TIMEOUT = struct.Struct(">hi")
_INT16 = struct.Struct(">h")
_INT32 = struct.Struct(">i")
_INDEX_AND_SIZE = struct.Struct(">ii")
_PARTITION_5 = struct.Struct(">ihqqq")
_PARTITION_3 = struct.Struct(">ihqq")
_LEADER_TAG = struct.Struct(">BBii")


class PartitionData(NamedTuple):
    partition: int
    records: memoryview | None


class TopicData(NamedTuple):
    topic: bytes
    """The topic's name as UTF-8, or its 16-byte id from version 13 on."""
    partitions: list[PartitionData]


class ProduceRequest(NamedTuple):
    transactional_id: str | None
    acks: int
    timeout_ms: int
    topics: list[TopicData]
    length_at: int
    """Where in the frame the length of the last records is."""


class PartitionReply(NamedTuple):
    partition: int
    error_code: int = 0
    base_offset: int = -1
    log_append_time_ms: int = -1
    log_start_offset: int = -1
    record_errors: tuple[tuple[int, str], ...] = ()
    error_message: str | None = None
    current_leader: tuple[int, int] | None = None
    """(leader id, leader epoch), sent when this broker does not lead the partition."""


def read_request(frame: memoryview, position: int, version: int) -> ProduceRequest:
    try:
        if version >= FLEXIBLE:
            return _read_compact(frame, position, version)
        return _read_classic(frame, position)
    except (struct.error, IndexError, UnicodeDecodeError) as error:
        raise WireError(f"Produce v{version} is cut short or malformed: {error}") from None


def _slice(frame: memoryview, position: int, size: int) -> memoryview:
    if size < 0 or size > len(frame) - position:
        raise WireError(f"a length of {size} exceeds the {len(frame) - position} bytes that are left")
    return frame[position : position + size]


def _read_classic(frame: memoryview, position: int) -> ProduceRequest:
    (size,) = _INT16.unpack_from(frame, position)
    position += 2
    transactional_id = None
    if size >= 0:
        transactional_id = str(_slice(frame, position, size), "utf-8")
        position += size
    acks, timeout_ms = _ACKS_TIMEOUT.unpack_from(frame, position)
    position += 6
    (topic_count,) = _INT32.unpack_from(frame, position)
    position += 4
    topics = []
    length_at = 0
    for _ in range(checked_count(frame, position, topic_count)):
        (size,) = _INT16.unpack_from(frame, position)
        position += 2
        name = bytes(_slice(frame, position, size))
        position += size
        (partition_count,) = _INT32.unpack_from(frame, position)
        position += 4
        partitions = []
        for _ in range(checked_count(frame, position, partition_count)):
            index, size = _INDEX_AND_SIZE.unpack_from(frame, position)
            length_at = position + 4
            position += 8
            if size == -1:
                partitions.append(PartitionData(index, None))
            else:
                partitions.append(PartitionData(index, _slice(frame, position, size)))
                position += size
        topics.append(TopicData(name, partitions))
    return ProduceRequest(transactional_id, acks, timeout_ms, topics, length_at)


def _read_compact(frame: memoryview, position: int, version: int) -> ProduceRequest:
    size, position = read_uvarint(frame, position)
    transactional_id = None
    if size > 0:
        transactional_id = str(_slice(frame, position, size - 1), "utf-8")
        position += size - 1
    acks, timeout_ms = _ACKS_TIMEOUT.unpack_from(frame, position)
    topic_count, position = read_uvarint(frame, position + 6)
    topics = []
    length_at = 0
    for _ in range(checked_count(frame, position, topic_count - 1)):
        if version >= TOPIC_IDS:
            size = 16
        else:
            size, position = read_uvarint(frame, position)
            size -= 1
        topic = bytes(_slice(frame, position, size))
        position += size
        partition_count, position = read_uvarint(frame, position)
        partitions = []
        for _ in range(checked_count(frame, position, partition_count - 1)):
            (index,) = _INT32.unpack_from(frame, position)
            length_at = position + 4
            size, position = read_uvarint(frame, length_at)
            if size == 0:
                partitions.append(PartitionData(index, None))
            else:
                partitions.append(PartitionData(index, _slice(frame, position, size - 1)))
                position += size - 1
            position = skip_tags(frame, position)
        topics.append(TopicData(topic, partitions))
        position = skip_tags(frame, position)
    skip_tags(frame, position)
    return ProduceRequest(transactional_id, acks, timeout_ms, topics, length_at)


def encode_reply(
    topics: list[tuple[bytes, list[PartitionReply]]],
    version: int,
    correlation_id: int,
    throttle_time_ms: int = 0,
    endpoints: Sequence[Endpoint] = (),
) -> bytearray:
    """A whole response frame; `endpoints` go with the current leaders named in it."""
    if version >= FLEXIBLE:
        out = bytearray(9)
        _write_compact(out, topics, version, throttle_time_ms, endpoints)
    else:
        out = bytearray(8)
        _write_classic(out, topics, version, throttle_time_ms)
    _INDEX_AND_SIZE.pack_into(out, 0, len(out) - 4, correlation_id)
    return out


def _write_classic(
    out: bytearray, topics: list[tuple[bytes, list[PartitionReply]]], version: int, throttle: int
) -> None:
    out += _INT32.pack(len(topics))
    for topic, partitions in topics:
        out += _INT16.pack(len(topic))
        out += topic
        out += _INT32.pack(len(partitions))
        for reply in partitions:
            if version >= 5:
                out += _PARTITION_5.pack(*reply[:5])
            else:
                out += _PARTITION_3.pack(*reply[:4])
            if version >= 8:
                out += _INT32.pack(len(reply.record_errors))
                for batch_index, message in reply.record_errors:
                    text = message.encode()
                    out += _INT32.pack(batch_index) + _INT16.pack(len(text)) + text
                _write_text(out, reply.error_message)
    out += _INT32.pack(throttle)


def _write_text(out: bytearray, text: str | None) -> None:
    if text is None:
        out += b"\xff\xff"
    else:
        raw = text.encode()
        out += _INT16.pack(len(raw)) + raw


def _write_compact(
    out: bytearray,
    topics: list[tuple[bytes, list[PartitionReply]]],
    version: int,
    throttle: int,
    endpoints: Sequence[Endpoint],
) -> None:
    write_uvarint(out, len(topics) + 1)
    for topic, partitions in topics:
        if version < TOPIC_IDS:
            write_uvarint(out, len(topic) + 1)
        out += topic
        write_uvarint(out, len(partitions) + 1)
        for reply in partitions:
            out += _PARTITION_5.pack(*reply[:5])
            write_uvarint(out, len(reply.record_errors) + 1)
            for batch_index, message in reply.record_errors:
                out += _INT32.pack(batch_index)
                write_compact_string(out, message)
                out.append(0)
            write_compact_string(out, reply.error_message)
            if reply.current_leader is not None and version >= 10:
                out += b"\x01" + _LEADER_TAG.pack(0, 9, *reply.current_leader) + b"\x00"
            else:
                out.append(0)
        out.append(0)
    out += _INT32.pack(throttle)
    write_endpoint_tag(out, endpoints if version >= 10 else ())
