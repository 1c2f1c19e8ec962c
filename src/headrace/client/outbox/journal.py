"""Files of length, CRC-32C and payload: append, read back, and find the true end after a crash.

A torn last entry is cut off: its writer never got a confirmation. A damaged entry before the
end is an error, because something that was safe is not any more.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from pathlib import Path

from crc32c import crc32c

from headrace.client.outbox.entry import OutboxError

_HEAD = struct.Struct(">II")


def frame(payload: bytes) -> bytes:
    return _HEAD.pack(len(payload), crc32c(payload)) + payload


def read(file: int, start: int, end: int) -> Iterator[tuple[int, bytes]]:
    """(position after the entry, payload) of each whole entry in [start, end); stops at the first bad one."""
    at = start
    while (entry := _entry_at(file, at, end)) is not None:
        at, payload = entry
        yield at, payload


def true_end(path: Path, file: int, start: int) -> int:
    """Where the last whole entry ends; raises OutboxError when good entries follow a bad one."""
    size = os.fstat(file).st_size
    if start > size:
        raise OutboxError(f"{path} is shorter than what was sent from it: restore the file, or move it away")
    end = start
    for after, _ in read(file, start, size):
        end = after
    if end < size:
        head = os.pread(file, _HEAD.size, end)
        if len(head) == _HEAD.size:
            behind = end + _HEAD.size + _HEAD.unpack(head)[0]
            if behind < size and _entry_at(file, behind, size) is not None:
                raise OutboxError(
                    f"{path} is damaged at byte {end}, before entries that are whole: the disk has changed what "
                    "was written; restore the file, or move it away to go on without what it holds"
                )
    return end


def _entry_at(file: int, at: int, end: int) -> tuple[int, bytes] | None:
    if at + _HEAD.size > end:
        return None
    size, checksum = _HEAD.unpack(os.pread(file, _HEAD.size, at))
    after = at + _HEAD.size + size
    if after > end:
        return None
    payload = os.pread(file, size, at + _HEAD.size)
    return (after, payload) if len(payload) == size and crc32c(payload) == checksum else None
