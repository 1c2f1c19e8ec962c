"""A sparse index of a segment: pairs of growing numbers, on disk in Kafka's format.

The offset index maps a batch's last offset (relative to the segment) to its position in the file; the time
index maps the largest timestamp so far to the offset of its batch. New entries gather in memory and reach the
file many at a time; recent ones stay in memory, so reading near the end touches no file, and the rest is
searched on disk, so memory does not grow with the log. The event loop alone changes an index; threads may
search it meanwhile, because what they look at is replaced whole and otherwise only grows.
"""

from __future__ import annotations

import struct
from array import array
from bisect import bisect_right
from typing import NamedTuple

from headrace.server.log.files import FileHandle, Files, HandlePool, HandleSlot

_TAIL_ENTRIES = 512
"""How many entries reach the file at once, and how many recent ones stay in memory."""

_PAGE_ENTRIES = 1024
"""How many entries on disk are read at once; the last such page is kept."""

Entry = tuple[int, int]
Column = int
"""0 or 1: by which of an entry's numbers to search."""


class _Tail(NamedTuple):
    """The entries from number `start` on, as memory has them, one array a column."""

    start: int
    firsts: array[int]
    seconds: array[int]

    def column(self, column: Column) -> array[int]:
        return self.seconds if column else self.firsts


_NOTHING: array[int] = array("q")
_NO_PAGE: tuple[int, int, bytes | bytearray] = (0, 0, b"")
"""How often the index had been cut when the page was read, the number of its first entry, and the entries."""


class SparseIndex:
    __slots__ = (
        "_cuts",
        "_files",
        "_page",
        "_pool",
        "_slot",
        "_struct",
        "_tail",
        "count",
        "has_file",
        "path",
        "written",
    )

    def __init__(
        self, files: Files, pool: HandlePool, path: str, layout: struct.Struct, written: int
    ) -> None:
        self._files = files
        self._pool = pool
        self._struct = layout
        self.path = path
        self.written = written
        """Entries in the file."""
        self.count = written
        """Entries in all."""
        self.has_file = True
        """False when there is certainly none yet."""
        self._tail = _Tail(written, _NOTHING, _NOTHING)
        self._slot = HandleSlot()
        self._page = _NO_PAGE
        self._cuts = 0

    # Changing

    def append(self, first: int, second: int) -> None:
        start, firsts, seconds = self._tail
        if firsts is _NOTHING:
            firsts, seconds = array("q"), array("q")
            self._tail = _Tail(start, firsts, seconds)
        seconds.append(second)  # before the first column, which says how many there are
        firsts.append(first)
        self.count += 1
        if len(firsts) >= 2 * _TAIL_ENTRIES:
            self._shrink_tail()

    def _shrink_tail(self) -> None:
        try:
            self.write()
        except OSError:
            # They stay in memory; flushing or closing the segment fails with the same error and reports it.
            return
        start, firsts, seconds = self._tail
        self._tail = _Tail(start + _TAIL_ENTRIES, firsts[_TAIL_ENTRIES:], seconds[_TAIL_ENTRIES:])

    def write(self) -> None:
        """Bring the entries that only memory has to the file."""
        if self.written == self.count:
            return
        start, firsts, seconds = self._tail
        skip = self.written - start
        data = b"".join(map(self._struct.pack, firsts[skip:], seconds[skip:]))
        handle = self._open_to_write()
        handle.write_at(data, self.written * self._struct.size)
        self.written = self.count

    def sync(self) -> None:
        """Bring every entry to the disk; from then on the file exists, though it may be empty."""
        self.write()
        handle = self._open_to_write()
        if self.written:
            handle.sync()

    def truncate(self, count: int) -> None:
        """Keep the first `count` entries, and nothing else in the file."""
        if self.has_file:
            keep = min(count, self.written)  # A write that failed may have left more there.
            self._open_to_write().truncate(keep * self._struct.size)
            self.written = keep
            self._cuts += 1
        start, firsts, seconds = self._tail
        if count <= start:
            self._tail = _Tail(count, _NOTHING, _NOTHING)
        else:
            self._tail = _Tail(start, firsts[: count - start], seconds[: count - start])
        self.count = count

    def _open_to_write(self) -> FileHandle:
        handle = self._files.open(self.path, writable=True, create=True)
        self.has_file = True
        return handle

    def release(self) -> None:
        """Give up memory and the open file; what was not written stays."""
        if self.written == self.count:
            self._tail = _Tail(self.count, _NOTHING, _NOTHING)
        self._page = _NO_PAGE
        self._pool.empty(self._slot)

    @property
    def unwritten(self) -> int:
        """Entries that only memory has."""
        return self.count - self.written

    def is_full(self, max_bytes: int) -> bool:
        return (self.count + 1) * self._struct.size > max_bytes

    # Searching

    def entry(self, number: int, *, nowait: bool = False) -> Entry:
        start, firsts, seconds = self._tail
        if number >= start:
            return firsts[number - start], seconds[number - start]
        return self._unpack(self._read(number, 1, nowait), 0)

    def last(self, *, nowait: bool = False) -> Entry | None:
        return self.entry(self.count - 1, nowait=nowait) if self.count else None

    def floor(self, value: int, column: Column = 0, *, nowait: bool = False) -> Entry | None:
        """The last entry whose number in a column is not above `value`."""
        tail = self._tail
        numbers = tail.column(column)
        if numbers and numbers[0] <= value:
            number = bisect_right(numbers, value) - 1
            return tail.firsts[number], tail.seconds[number]
        return self._search(tail.start, column, value, nowait)[1]

    def count_below(self, value: int, column: Column) -> int:
        """How many entries have a number below `value` in a column."""
        tail = self._tail
        numbers = tail.column(column)
        if numbers and numbers[0] < value:
            return tail.start + bisect_right(numbers, value - 1)
        return self._search(tail.start, column, value - 1, False)[0]

    def is_sound(self) -> bool:
        """Whether both columns increase throughout the file. Used only after a crash."""
        if not self.written:
            return True
        data = self._files.read_whole(self.path)[: self.written * self._struct.size]
        before = (-1, -1)
        for entry in self._struct.iter_unpack(data):
            if entry[0] <= before[0] or entry[1] < before[1]:
                return False
            before = (entry[0], entry[1])
        return len(data) == self.written * self._struct.size

    def _search(self, on_disk: int, column: Column, value: int, nowait: bool) -> tuple[int, Entry | None]:
        """Among the first `on_disk` entries: how many are not above `value`, and the last of those."""
        if not on_disk:
            return 0, None
        unpack, size = self._struct.unpack_from, self._struct.size
        cuts = self._cuts
        known, start, page = self._page
        end = start + len(page) // size
        if (
            known != cuts
            or not page
            or not unpack(page, 0)[column] <= value < unpack(page, (end - start - 1) * size)[column]
        ):
            # Not between two entries of the page last used: find the page, and keep it for the next reader.
            low, high = 0, on_disk
            while high - low > _PAGE_ENTRIES:
                middle = (low + high) // 2
                if self._unpack(self._read(middle, 1, nowait), 0)[column] <= value:
                    low = middle
                else:
                    high = middle
            start, end = low, min(low + _PAGE_ENTRIES, on_disk)
            page = self._read(start, end - start, nowait)
            self._page = (cuts, start, page)
        low, high = 0, end - start
        while low < high:
            middle = (low + high) // 2
            if unpack(page, middle * size)[column] <= value:
                low = middle + 1
            else:
                high = middle
        return start + low, self._unpack(page, low - 1) if low else None

    def _unpack(self, data: bytes | bytearray, number: int) -> Entry:
        first, second = self._struct.unpack_from(data, number * self._struct.size)
        return first, second

    def _read(self, number: int, count: int, nowait: bool) -> bytes | bytearray:
        handle = self._slot.handle
        if handle is None:
            handle = self._files.open(self.path)
            self._pool.fill(self._slot, handle)
        handle.used = True
        size = self._struct.size
        data = handle.read_at(count * size, number * size, nowait=nowait)
        if len(data) != count * size:
            raise OSError(f"index {self.path} ends before its entry {number + count}")
        return data


OFFSET_ENTRY = struct.Struct(">II")
TIME_ENTRY = struct.Struct(">qI")


def offset_index(files: Files, pool: HandlePool, path: str, size: int) -> SparseIndex:
    """(last offset of a batch relative to the segment, position of that batch)"""
    return SparseIndex(files, pool, path, OFFSET_ENTRY, size // OFFSET_ENTRY.size)


def time_index(files: Files, pool: HandlePool, path: str, size: int) -> SparseIndex:
    """(largest timestamp so far, last offset of its batch relative to the segment)"""
    return SparseIndex(files, pool, path, TIME_ENTRY, size // TIME_ENTRY.size)
