"""OffsetCommit, read and written by hand: apart from fetches, it is the request that consumers send most often.

- 2 to 4: a retention time per commit  - 3: throttle time  - 6: leader epoch  - 7: instance ids  - 8: compact
- 10: topics by id
"""

from __future__ import annotations

import struct
import uuid
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from headrace.wire.codec import Buffer, WireError, checked_count, read_uvarint, skip_tags, write_uvarint

FLEXIBLE = 8
TOPIC_IDS = 10

_INT16 = struct.Struct(">h")
_INT32 = struct.Struct(">i")
_INT64 = struct.Struct(">q")
_PARTITION_6 = struct.Struct(">iqi")
_PARTITION_2 = struct.Struct(">iq")
_RESULT = struct.Struct(">ih")
_REPLY_START = struct.Struct(">iii")


class PartitionCommit(NamedTuple):
    partition: int
    offset: int
    leader_epoch: int
    metadata: str


class TopicCommit(NamedTuple):
    topic: str
    partitions: list[PartitionCommit]


class Commit(NamedTuple):
    group_id: str
    generation: int
    """Or the member's epoch; -1 for a consumer that is not a member."""
    member_id: str
    retention_ms: int
    instance_id: str | None
    topics: list[TopicCommit]
    """In version 10 a topic is its id as text, until it has been looked up."""
    ids: Mapping[str, bytes] = {}
    """The ids of topics, for the reply; in version 10."""


TopicResult = tuple[str, Sequence[tuple[int, int]]]
"""(topic, [(partition, error code)])"""


class RepeatedCommit:
    """The frame of a commit, to recognise the next one that differs from it only in its correlation id and offsets."""

    __slots__ = ("_fixed", "_size", "_unpack")

    def __init__(self, frame: Buffer, offsets_at: Sequence[int]) -> None:
        """`offsets_at` says where in the frame its offsets are, as `read_commit` does."""
        layout, end = [">4si"], 8
        for position in offsets_at:
            layout.append(f"{position - end}sq")
            end = position + 8
        layout.append(f"{len(frame) - end}s")
        self._size = len(frame)
        self._unpack = struct.Struct("".join(layout)).unpack
        self._fixed = self._unpack(frame)[::2]

    def read(self, frame: Buffer) -> tuple[int, ...] | None:
        """The correlation id and the offsets; None when anything else is different."""
        if len(frame) != self._size:
            return None
        fields = self._unpack(frame)
        return fields[1::2] if fields[::2] == self._fixed else None


def read_commit(frame: Buffer, position: int, version: int) -> tuple[Commit, list[int]]:
    """The commit, and where in the frame its offsets are."""
    offsets_at: list[int] = []
    try:
        commit, end = (_read_compact if version >= FLEXIBLE else _read_plain)(
            frame, position, version, offsets_at
        )
    except (struct.error, IndexError, UnicodeDecodeError) as error:
        raise WireError(f"OffsetCommit v{version} is cut short or malformed: {error}") from None
    if end > len(frame):
        raise WireError(f"OffsetCommit v{version} is cut short")
    return commit, offsets_at


def _read_plain(frame: Buffer, position: int, version: int, offsets_at: list[int]) -> tuple[Commit, int]:
    group_id, position = _text(frame, position)
    (generation,) = _INT32.unpack_from(frame, position)
    member_id, position = _text(frame, position + 4)
    retention_ms, instance_id = -1, None
    if version <= 4:
        (retention_ms,) = _INT64.unpack_from(frame, position)
        position += 8
    elif version >= 7:
        instance_id, position = _nullable_text(frame, position)
    topics = []
    count, position = _count(frame, position)
    for _ in range(count):
        topic, position = _text(frame, position)
        partitions = []
        inner, position = _count(frame, position)
        for _ in range(inner):
            offsets_at.append(position + 4)
            if version >= 6:
                index, offset, epoch = _PARTITION_6.unpack_from(frame, position)
                position += 16
            else:
                index, offset = _PARTITION_2.unpack_from(frame, position)
                epoch = -1
                position += 12
            metadata, position = _nullable_text(frame, position)
            partitions.append(PartitionCommit(index, offset, epoch, metadata or ""))
        topics.append(TopicCommit(topic, partitions))
    return Commit(group_id, generation, member_id, retention_ms, instance_id, topics), position


def _text(frame: Buffer, position: int) -> tuple[str, int]:
    text, position = _nullable_text(frame, position)
    if text is None:
        raise WireError("a text is null where a value is required")
    return text, position


def _nullable_text(frame: Buffer, position: int) -> tuple[str | None, int]:
    size: int = _INT16.unpack_from(frame, position)[0]
    position += 2
    if size > 0:
        end = position + size
        return str(frame[position:end], "utf-8"), end
    if size < -1:
        raise WireError("a length is negative")
    return ("" if size == 0 else None), position


def _count(frame: Buffer, position: int) -> tuple[int, int]:
    count: int = _INT32.unpack_from(frame, position)[0]
    return checked_count(frame, position, count), position + 4


def _read_compact(frame: Buffer, position: int, version: int, offsets_at: list[int]) -> tuple[Commit, int]:
    group_id, position = _compact_text(frame, position)
    (generation,) = _INT32.unpack_from(frame, position)
    member_id, position = _compact_text(frame, position + 4)
    instance_id, position = _nullable_compact_text(frame, position)
    topics = []
    ids: dict[str, bytes] = {}
    count, position = read_uvarint(frame, position)
    for _ in range(checked_count(frame, position, count - 1)):
        if version >= TOPIC_IDS:
            raw = bytes(frame[position : position + 16])
            topic = str(uuid.UUID(bytes=raw)) if len(raw) == 16 else ""
            ids[topic] = raw
            position += 16
        else:
            topic, position = _compact_text(frame, position)
        partitions = []
        inner, position = read_uvarint(frame, position)
        for _ in range(checked_count(frame, position, inner - 1)):
            offsets_at.append(position + 4)
            index, offset, epoch = _PARTITION_6.unpack_from(frame, position)
            metadata, position = _nullable_compact_text(frame, position + 16)
            partitions.append(PartitionCommit(index, offset, epoch, metadata or ""))
            position = skip_tags(frame, position)
        topics.append(TopicCommit(topic, partitions))
        position = skip_tags(frame, position)
    commit = Commit(group_id, generation, member_id, -1, instance_id, topics, ids)
    return commit, skip_tags(frame, position)


def _compact_text(frame: Buffer, position: int) -> tuple[str, int]:
    text, position = _nullable_compact_text(frame, position)
    if text is None:
        raise WireError("a text is null where a value is required")
    return text, position


def _nullable_compact_text(frame: Buffer, position: int) -> tuple[str | None, int]:
    size = frame[position]
    position += 1
    if size > 0x7F:
        size, position = read_uvarint(frame, position - 1)
    if size < 2:
        return ("" if size else None), position
    end = position + size - 1
    return str(frame[position:end], "utf-8"), end


def encode_reply(
    results: Sequence[TopicResult], version: int, correlation_id: int, ids: Mapping[str, bytes]
) -> bytearray:
    """The whole reply frame."""
    if version >= FLEXIBLE:
        return _encode_compact(results, version, correlation_id, ids)
    out = bytearray(_REPLY_START.pack(0, correlation_id, 0))
    if version < 3:
        del out[8:]  # no throttle time yet
    out += _INT32.pack(len(results))
    for topic, partitions in results:
        name = topic.encode()
        out += _INT16.pack(len(name))
        out += name
        out += _INT32.pack(len(partitions))
        for each in partitions:
            out += _RESULT.pack(*each)
    _INT32.pack_into(out, 0, len(out) - 4)
    return out


def _encode_compact(
    results: Sequence[TopicResult], version: int, correlation_id: int, ids: Mapping[str, bytes]
) -> bytearray:
    out = bytearray(_REPLY_START.pack(0, correlation_id, 0))
    out[8:8] = b"\0"  # the header's tags, before the throttle time
    write_uvarint(out, len(results) + 1)
    for topic, partitions in results:
        if version >= TOPIC_IDS:
            out += ids[topic]
        else:
            name = topic.encode()
            write_uvarint(out, len(name) + 1)
            out += name
        write_uvarint(out, len(partitions) + 1)
        for each in partitions:
            out += _RESULT.pack(*each)
            out.append(0)
        out.append(0)
    out.append(0)
    _INT32.pack_into(out, 0, len(out) - 4)
    return out
