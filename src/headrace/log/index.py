"""A sparse index of a segment: pairs of growing numbers, on disk in Kafka's format.

The offset index maps a batch's last offset (relative to the segment) to its position in the file; the time
index maps the largest timestamp so far to the offset of its batch. New entries gather in memory and reach
the file many at a time; recent ones stay in memory, so reading near the end touches no file, and the rest
is searched on disk, so memory does not grow with the log.
"""

from __future__ import annotations

import struct
from array import array
from bisect import bisect_right

from headrace.log.files import Files, HandlePool, HandleSlot

_TAIL_ENTRIES = 512
"""How many entries reach the file at once, and how many recent ones stay in memory."""

_PAGE_ENTRIES = 1024
"""How many entries on disk are read at once; the last such page is kept."""

Entry = tuple[int, int]


class SparseIndex:
    __slots__ = (
        "_files",
        "_firsts",
        "_page",
        "_pool",
        "_seconds",
        "_slot",
        "_struct",
        "_tail_start",
        "count",
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
        self._tail_start = written
        """Index of the first entry that memory has; from there on memory has them all."""
        self._firsts: array[int] | None = None
        self._seconds: array[int] | None = None
        self._slot = HandleSlot()
        self._page: tuple[int, bytes | bytearray] = (0, b"")

    def append(self, first: int, second: int) -> None:
        firsts, seconds = self._firsts, self._seconds
        if firsts is None or seconds is None:
            firsts = self._firsts = array("q")
            seconds = self._seconds = array("q")
        firsts.append(first)
        seconds.append(second)
        self.count += 1
        if len(firsts) >= 2 * _TAIL_ENTRIES:
            self._shrink_tail(firsts, seconds)

    def _shrink_tail(self, firsts: array[int], seconds: array[int]) -> None:
        try:
            self.write()
        except OSError:
            # They stay in memory; whoever flushes or closes the segment meets the error and reports it.
            return
        del firsts[:_TAIL_ENTRIES]
        del seconds[:_TAIL_ENTRIES]
        self._tail_start += _TAIL_ENTRIES

    def write(self) -> None:
        """Bring the entries that only memory has to the file."""
        if self.written == self.count or self._firsts is None or self._seconds is None:
            return
        skip = self.written - self._tail_start
        pack = self._struct.pack
        data = b"".join(map(pack, self._firsts[skip:], self._seconds[skip:]))
        handle = self._files.open(self.path, writable=True, create=True)
        handle.write_at(data, self.written * self._struct.size)
        self.written = self.count

    def sync(self) -> None:
        """Bring every entry to the disk; from then on the file exists, though it may be empty."""
        self.write()
        handle = self._files.open(self.path, writable=True, create=True)
        if self.written:
            handle.sync()

    @property
    def unwritten(self) -> int:
        """Entries that only memory has."""
        return self.count - self.written

    def entry(self, number: int, *, nowait: bool = False) -> Entry:
        if number >= self._tail_start and self._firsts is not None and self._seconds is not None:
            return self._firsts[number - self._tail_start], self._seconds[number - self._tail_start]
        return self._unpack(self._read(number, 1, nowait), 0)

    def last(self, *, nowait: bool = False) -> Entry | None:
        return self.entry(self.count - 1, nowait=nowait) if self.count else None

    def floor(self, value: int, *, nowait: bool = False) -> Entry | None:
        """The last entry whose first number is not above `value`."""
        tail = self._firsts
        if tail and tail[0] <= value and self._seconds is not None:
            number = bisect_right(tail, value) - 1
            return tail[number], self._seconds[number]
        return self._search(0, value, nowait)

    def floor_second(self, value: int, *, nowait: bool = False) -> Entry | None:
        """The last entry whose second number is not above `value`."""
        tail = self._seconds
        if tail and tail[0] <= value and self._firsts is not None:
            number = bisect_right(tail, value) - 1
            return self._firsts[number], tail[number]
        return self._search(1, value, nowait)

    def count_below(self, value: int, column: int) -> int:
        """How many entries have a number below `value` in a column."""
        tail = self._seconds if column else self._firsts
        if tail and tail[0] < value:
            return self._tail_start + bisect_right(tail, value - 1)
        return self._position_after(column, value - 1, False)[0]

    def truncate(self, count: int) -> None:
        """Keep the first `count` entries, and nothing else in the file."""
        if count <= self.written:
            handle = self._files.open(self.path, writable=True, create=True)
            handle.truncate(count * self._struct.size)
            self.written = count
            self._page = (0, b"")
        if count <= self._tail_start:
            self._firsts = self._seconds = None
            self._tail_start = count
        elif self._firsts is not None and self._seconds is not None:
            del self._firsts[count - self._tail_start :]
            del self._seconds[count - self._tail_start :]
        self.count = count

    def is_full(self, max_bytes: int) -> bool:
        return (self.count + 1) * self._struct.size > max_bytes

    def release(self) -> None:
        """Drop what memory has beyond the file; call `write` before."""
        if self.written == self.count:
            self._firsts = self._seconds = None
            self._tail_start = self.count
        self._page = (0, b"")
        self._pool.empty(self._slot)

    def is_sound(self) -> bool:
        """Both columns grow all along, as far as the file has them. An index is checked so after a crash
        only."""
        if not self.written:
            return True
        data = self._files.read_whole(self.path)[: self.written * self._struct.size]
        before = (-1, -1)
        for entry in self._struct.iter_unpack(data):
            if entry[0] <= before[0] or entry[1] < before[1]:
                return False
            before = (entry[0], entry[1])
        return len(data) == self.written * self._struct.size

    def _search(self, column: int, value: int, nowait: bool) -> Entry | None:
        return self._position_after(column, value, nowait)[1]

    def _position_after(self, column: int, value: int, nowait: bool) -> tuple[int, Entry | None]:
        """Among the entries on disk only: how many are not above `value`, and the last of those."""
        low, high = 0, self._tail_start
        if not high:
            return 0, None
        unpack, size = self._struct.unpack_from, self._struct.size
        start, page = self._page
        end = start + len(page) // size
        if not page or not unpack(page, 0)[column] <= value < unpack(page, (end - start - 1) * size)[column]:
            # Not between two entries of the page last used: find the page, and keep it for the next reader.
            while high - low > _PAGE_ENTRIES:
                middle = (low + high) // 2
                if self._unpack(self._read(middle, 1, nowait), 0)[column] <= value:
                    low = middle
                else:
                    high = middle
            start, end = low, min(low + _PAGE_ENTRIES, self._tail_start)
            page = self._read(start, end - start, nowait)
            self._page = (start, page)
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
