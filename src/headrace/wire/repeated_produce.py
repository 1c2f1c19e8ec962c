"""Produce requests that differ only in correlation id and records, and the replies to them.

Most producers send a request per partition: the next one to the same partition begins with the same bytes.
"""

from __future__ import annotations

import struct

from headrace.wire.codec import WireError, read_uvarint
from headrace.wire.produce import FLEXIBLE, PartitionReply, encode_reply

_INT32 = struct.Struct(">i")
_NO_TAGS = b"\0\0\0"
"""What follows the records in a compact request: no tags of the partition, the topic and the request."""


class Start:
    """Where the bytes are by which such a request is recognised: all before the length of its records, but for the correlation id."""

    __slots__ = ("_unpack", "size")

    def __init__(self, size: int) -> None:
        self.size = size
        self._unpack = struct.Struct(f">4si{size - 8}s").unpack_from

    def read(self, frame: memoryview) -> tuple[bytes, int, bytes]:
        """(API and version, correlation id, the rest); the frame must be longer than `size`."""
        return self._unpack(frame)


def read_records(frame: memoryview, length_at: int, version: int) -> memoryview | None:
    """The records of a request to one partition; None when they are null, or something unusual follows."""
    size: int
    try:
        if version >= FLEXIBLE:
            size, position = read_uvarint(frame, length_at)
            size -= 1
            end = position + size
            if size < 0 or frame[end:] != _NO_TAGS:
                return None
            return frame[position:end]
        (size,) = _INT32.unpack_from(frame, length_at)
    except (IndexError, struct.error, WireError):
        return None
    position = length_at + 4
    return frame[position:] if size == len(frame) - position else None


class ReplyForm:
    """The reply to a request that appended to one partition, ready but for the correlation id and what the append said."""

    __slots__ = ("_after", "_before", "_pack", "_size", "_with_start")

    def __init__(self, topic: bytes, partition: int, version: int) -> None:
        reply = encode_reply([(topic, [PartitionReply(partition, 0, 0, 0, 0)])], version, 0)
        other = encode_reply([(topic, [PartitionReply(partition, 0, -1, -1, -1)])], version, 0)
        first = next(at for at in range(len(reply)) if reply[at] != other[at])
        count = sum(ours != theirs for ours, theirs in zip(reply, other, strict=True))
        self._size = len(reply) - 4
        self._before = bytes(reply[8:first])
        self._after = bytes(reply[first + count :])
        self._with_start = count == 24
        numbers = "qqq" if self._with_start else "qq"
        self._pack = struct.Struct(f">ii{len(self._before)}s{numbers}{len(self._after)}s").pack

    def reply(self, correlation_id: int, offset: int, append_time: int, log_start: int) -> bytes:
        if self._with_start:
            return self._pack(
                self._size, correlation_id, self._before, offset, append_time, log_start, self._after
            )
        return self._pack(self._size, correlation_id, self._before, offset, append_time, self._after)
