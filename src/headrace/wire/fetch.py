"""Fetch replies, written by hand: small headers around slices of log files that are never copied into a message.

The request is small and takes the ordinary codec. A reply is a list of parts: bytes, or anything with a `size`
that the connection knows how to send (a slice of a segment file).

- 4: record batches, aborted transactions  - 5: log start offset  - 7: sessions  - 11: preferred read replica
- 12: compact, diverging epoch and current leader  - 13: topic ids instead of names  - 16: endpoints of leaders
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Protocol

from headrace.wire.codec import write_count, write_uvarint
from headrace.wire.frames import Endpoint, reply_start, write_endpoint_tag

FLEXIBLE = 12
TOPIC_IDS = 13

_INT16 = struct.Struct(">h")
_INT32 = struct.Struct(">i")
_SESSION = struct.Struct(">ihi")
_PARTITION_5 = struct.Struct(">ihqqq")
_PARTITION_4 = struct.Struct(">ihqq")
_ABORTED = struct.Struct(">qq")
_EPOCH_END = struct.Struct(">iq")
_LEADER = struct.Struct(">ii")


class File(Protocol):
    def read_into(self, buffer: bytearray | memoryview, position: int, *, nowait: bool = False) -> int:
        """Fill `buffer` as far as one call does; BlockingIOError when `nowait` and the disk is needed."""
        ...

    def is_cached(self, position: int, size: int) -> bool: ...

    def send_to(self, socket: int, position: int, size: int) -> int: ...


class Slice(Protocol):
    """A run of record batches that lies in a file; an empty one has no file."""

    @property
    def handle(self) -> File | None: ...

    @property
    def position(self) -> int: ...

    @property
    def size(self) -> int: ...


Part = bytes | bytearray | Slice


class PartitionReply:
    """The reply for one partition."""

    __slots__ = (
        "aborted",
        "current_leader",
        "diverging_epoch",
        "error_code",
        "high_watermark",
        "last_stable_offset",
        "log_start_offset",
        "partition",
        "preferred_read_replica",
        "records",
    )

    def __init__(
        self,
        partition: int,
        error_code: int = 0,
        high_watermark: int = -1,
        last_stable_offset: int = -1,
        log_start_offset: int = -1,
        records: Slice | bytes | None = None,
        aborted: list[tuple[int, int]] | None = None,
        preferred_read_replica: int = -1,
        diverging_epoch: tuple[int, int] | None = None,
        current_leader: tuple[int, int] | None = None,
    ) -> None:
        self.partition = partition
        self.error_code = error_code
        self.high_watermark = high_watermark
        self.last_stable_offset = last_stable_offset
        self.log_start_offset = log_start_offset
        self.records = records
        self.aborted = aborted
        self.preferred_read_replica = preferred_read_replica
        self.diverging_epoch = diverging_epoch
        self.current_leader = current_leader

    @property
    def is_urgent(self) -> bool:
        """Whether the client must see it at once, even without records."""
        return self.error_code != 0 or self.diverging_epoch is not None or self.preferred_read_replica >= 0

    def records_size(self) -> int:
        records = self.records
        if records is None:
            return 0
        return len(records) if isinstance(records, bytes) else records.size


def encode_reply(
    version: int,
    correlation_id: int,
    topics: Sequence[tuple[bytes, Sequence[PartitionReply]]],
    *,
    error_code: int = 0,
    session_id: int = 0,
    throttle_time_ms: int = 0,
    endpoints: Sequence[Endpoint] = (),
) -> list[Part]:
    """The parts of a whole response frame, the first one holding its length; one part when no file is in it."""
    flexible = version >= FLEXIBLE
    parts: list[Part] = []
    total = 0
    out = bytearray()
    if version >= 7:
        out += _SESSION.pack(throttle_time_ms, error_code, session_id)
    else:
        out += _INT32.pack(throttle_time_ms)
    write_count(out, len(topics), flexible)
    for topic, partitions in topics:
        if version < TOPIC_IDS:
            if flexible:
                write_uvarint(out, len(topic) + 1)
            else:
                out += _INT16.pack(len(topic))
        out += topic
        write_count(out, len(partitions), flexible)
        for reply in partitions:
            size = reply.records_size()
            _write_partition(out, reply, size, version, flexible)
            if isinstance(reply.records, bytes):
                out += reply.records
            elif reply.records is not None:
                parts.append(out)
                parts.append(reply.records)
                total += len(out) + size
                out = bytearray()
            if flexible:
                _write_partition_tags(out, reply)
        if flexible:
            out.append(0)
    if flexible:
        write_endpoint_tag(out, endpoints if version >= 16 else ())
    start = reply_start(total + len(out), correlation_id, flexible)
    return [start, *parts, out] if parts else [start + out]


def size_of(parts: Sequence[Part]) -> int:
    """Bytes of a response frame, without its length in front."""
    return sum(len(part) if isinstance(part, bytes | bytearray) else part.size for part in parts) - 4


def _write_partition(out: bytearray, reply: PartitionReply, size: int, version: int, flexible: bool) -> None:
    if version >= 5:
        out += _PARTITION_5.pack(
            reply.partition,
            reply.error_code,
            reply.high_watermark,
            reply.last_stable_offset,
            reply.log_start_offset,
        )
    else:
        out += _PARTITION_4.pack(
            reply.partition, reply.error_code, reply.high_watermark, reply.last_stable_offset
        )
    if reply.aborted is None:
        out += b"\x00" if flexible else b"\xff\xff\xff\xff"
    else:
        write_count(out, len(reply.aborted), flexible)
        for producer_id, first_offset in reply.aborted:
            out += _ABORTED.pack(producer_id, first_offset)
            if flexible:
                out.append(0)
    if version >= 11:
        out += _INT32.pack(reply.preferred_read_replica)
    write_count(out, size, flexible)


def _write_partition_tags(out: bytearray, reply: PartitionReply) -> None:
    tags = (reply.diverging_epoch is not None) + (reply.current_leader is not None)
    out.append(tags)
    if reply.diverging_epoch is not None:
        out += b"\x00\x0d" + _EPOCH_END.pack(*reply.diverging_epoch) + b"\x00"
    if reply.current_leader is not None:
        out += b"\x01\x09" + _LEADER.pack(*reply.current_leader) + b"\x00"
