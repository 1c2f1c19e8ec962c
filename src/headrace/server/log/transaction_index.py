"""The aborted transactions of a segment, in Kafka's .txnindex format; the file exists only when there are
some.

Entries are ordered by the offset of the abort marker, and their last stable offsets never fall, so a fetch
reads only the entries that touch what it returns. The event loop alone changes an index; threads may search it.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from headrace.server.log.files import Files

_ENTRY = struct.Struct(">hqqqq")
_VERSION = 0
_PAGE_ENTRIES = 128


class AbortedTransaction(NamedTuple):
    producer_id: int
    first_offset: int
    last_offset: int
    """The offset of the abort marker."""
    last_stable_offset: int


class TransactionIndex:
    __slots__ = ("_files", "_last_offset", "count", "path")

    def __init__(self, files: Files, path: str, size: int) -> None:
        self._files = files
        self.path = path
        self.count = size // _ENTRY.size
        self._last_offset: int | None = None
        """The last marker's; None before it was looked up."""

    @property
    def size(self) -> int:
        return self.count * _ENTRY.size

    def append(self, transaction: AbortedTransaction) -> None:
        if self._last_offset is None:
            self._last_offset = self._read(self.count - 1, 1)[0].last_offset if self.count else -1
        if transaction.last_offset <= self._last_offset:
            return  # Replaying a log that was already indexed up to here.
        handle = self._files.open(self.path, writable=True, create=True)
        handle.write_at(_ENTRY.pack(_VERSION, *transaction), self.count * _ENTRY.size)
        self.count += 1
        self._last_offset = transaction.last_offset

    def collect(self, first: int, upper: int) -> tuple[list[AbortedTransaction], bool]:
        """Transactions that touch offsets from `first` to before `upper`, and whether later ones cannot."""
        found: list[AbortedTransaction] = []
        number = self._first_ending_at(first)
        while number < self.count:
            page = self._read(number, min(_PAGE_ENTRIES, self.count - number))
            for transaction in page:
                if transaction.first_offset < upper:
                    found.append(transaction)
                if transaction.last_stable_offset >= upper:
                    return found, True
            number += len(page)
        return found, False

    def truncate_to(self, offset: int) -> None:
        """Forget transactions whose marker is at or after `offset`."""
        self._keep(self._first_ending_at(offset))

    def _keep(self, keep: int) -> None:
        if keep < self.count:
            self._files.open(self.path, writable=True).truncate(keep * _ENTRY.size)
            self.count = keep
            self._last_offset = None

    def keep_sound(self, base_offset: int, upper: int) -> None:
        """After a crash: keep the entries before the first that makes no sense or ends at or after
        `upper`."""
        keep, last_offset = 0, base_offset - 1
        for transaction in self.all():
            if not last_offset < transaction.last_offset < upper:
                break
            if not 0 <= transaction.first_offset < transaction.last_offset:
                break
            keep, last_offset = keep + 1, transaction.last_offset
        self._keep(keep)

    def all(self) -> list[AbortedTransaction]:
        return self._read(0, self.count) if self.count else []

    def sync(self) -> None:
        if self.count:
            self._files.open(self.path, writable=True).sync()

    def _first_ending_at(self, offset: int) -> int:
        low, high = 0, self.count
        while low < high:
            middle = (low + high) // 2
            if self._read(middle, 1)[0].last_offset < offset:
                low = middle + 1
            else:
                high = middle
        return low

    def _read(self, number: int, count: int) -> list[AbortedTransaction]:
        data = self._files.open(self.path).read_at(count * _ENTRY.size, number * _ENTRY.size)
        if len(data) != count * _ENTRY.size:
            raise OSError(f"transaction index {self.path} ends before its entry {number + count}")
        return [AbortedTransaction(*entry[1:]) for entry in _ENTRY.iter_unpack(data)]
