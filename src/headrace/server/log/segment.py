"""One segment: a .log file of whole batches and the sparse indexes beside it.

Appending writes the batch and, every index.interval.bytes, an index entry. Finding an offset is one search
of the index and a walk over the few batch headers between two entries.
"""

from __future__ import annotations

from headrace.server.log.environment import Environment
from headrace.server.log.files import FULL_DISK
from headrace.server.log.index import offset_index, time_index
from headrace.server.log.segment_file import Location, SegmentFile
from headrace.server.log.transaction_index import TransactionIndex
from headrace.wire.batch import (
    NO_TIMESTAMP,
    BatchHeader,
    Buffer,
)

MAX_RELATIVE_OFFSET = 2**31 - 1
ROLL_NOT_KNOWN = NO_TIMESTAMP - 1
"""Smaller than every timestamp, so that each batch checks."""

_MAKE = tuple.__new__
"""Makes a NamedTuple in half the time, for every append."""

_WAITING_ENTRIES = 32
_HELD_BYTES = 2048
"""The last batch stays in memory for readers at the end of the log, unless it is larger than this."""


class Segment(SegmentFile):
    __slots__ = (
        "_bytes_since_index",
        "_indexed_timestamp",
        "_last",
        "created_ms",
        "first_timestamp",
        "max_timestamp",
        "max_timestamp_offset",
        "offset_index",
        "preallocated",
        "roll_jitter_ms",
        "roll_timestamp",
        "synced",
        "time_index",
        "torn",
        "transaction_index",
    )

    def __init__(
        self,
        environment: Environment,
        directory: str,
        base_offset: int,
        *,
        created_ms: int,
        roll_jitter_ms: int = 0,
        suffix: str = "",
        size: int = 0,
        offset_index_bytes: int = 0,
        time_index_bytes: int = 0,
        transaction_index_bytes: int = 0,
    ) -> None:
        super().__init__(environment, directory, base_offset, suffix, size)
        files, pool = environment.files, environment.pool
        self.created_ms = created_ms
        self.roll_jitter_ms = roll_jitter_ms
        self.offset_index = offset_index(files, pool, self.path(".index"), offset_index_bytes)
        self.time_index = time_index(files, pool, self.path(".timeindex"), time_index_bytes)
        self.transaction_index = TransactionIndex(files, self.path(".txnindex"), transaction_index_bytes)
        self._bytes_since_index = 0
        self._indexed_timestamp = NO_TIMESTAMP
        """The timestamp of the last time index entry."""
        self.max_timestamp = NO_TIMESTAMP
        """The largest timestamp; -1 when no record has one. Before a segment from disk goes into service, call
        `know_timestamps`: an append that had to look it up could fail half way, and a thread could overwrite a newer
        value."""
        self.max_timestamp_offset = base_offset
        """The last offset of the batch that has it."""
        self.first_timestamp: int | None = None
        """The largest timestamp of the first batch, from which segment.ms counts; None when not known yet."""
        self.roll_timestamp = ROLL_NOT_KNOWN
        """Batches up to this timestamp need not ask whether the segment is too old for them (`rolling.must_roll`)."""
        self.synced = False
        """Everything in this segment, indexes too, is on the disk (a sealed segment stays so)."""
        self.preallocated = False
        """The file is larger than what it holds."""
        self.torn = False
        """A write failed, and may have left a part of itself behind the last whole batch."""
        self._last: Location | None = None
        """The batch last appended, which readers at the end of the log want next."""

    def create_files(self, preallocate: int = 0) -> None:
        """Make the .log file; the indexes get theirs with their first entries, or when the segment is
        synced."""
        try:
            self.environment.files.create(self.path(".log"))
            self.offset_index.has_file = self.time_index.has_file = False
            if preallocate:
                self.handle(writable=True).preallocate(preallocate)
                self.preallocated = True
        except OSError:
            self.remove_files()
            raise

    def remove_files(self) -> None:
        self.close()
        for kind in (".log", ".index", ".timeindex", ".txnindex"):
            self.environment.files.remove(self.path(kind))

    @property
    def has_aborted_transactions(self) -> bool:
        return self.transaction_index.count > 0

    # Appending

    def append(
        self, data: Buffer, first_offset: int, last_offset: int, max_timestamp: int, index_interval: int
    ) -> None:
        """Write one batch at the end. An OSError leaves the segment as it was, except for bytes beyond
        `size` (`torn`)."""
        position = self.size
        handle = self.slot.handle
        if handle is None or not handle.writable:
            handle = self.handle(writable=True)
        handle.used = True
        try:
            handle.write_at(data, position)
        except OSError:
            self.torn = True
            raise
        size = len(data)
        held = bytes(data) if size <= _HELD_BYTES else None
        self._last = _MAKE(Location, (position, size, first_offset, last_offset, held))
        self.note(position, size, last_offset, max_timestamp, index_interval)

    def append_span(self, data: Buffer, headers: list[BatchHeader], index_interval: int) -> None:
        """Write several batches with one write; an OSError leaves the segment as `append` does."""
        position = self.size
        handle = self.handle(writable=True)
        try:
            handle.write_at(data, position)
        except OSError:
            self.torn = True
            raise
        for header in headers:
            self.note(position, header.size, header.last_offset, header.max_timestamp, index_interval)
            position += header.size

    def note(
        self, position: int, size: int, last_offset: int, max_timestamp: int, index_interval: int
    ) -> None:
        """Take a batch that the file has at `position` into size, largest timestamp and indexes.

        Nothing here may raise: the batch is written, and its state must not be updated half way.
        """
        self.size = position + size
        self.synced = False
        if max_timestamp > self.max_timestamp:
            self.max_timestamp = max_timestamp
            self.max_timestamp_offset = last_offset
        if position == 0:
            self.first_timestamp = max_timestamp
        if self._bytes_since_index > index_interval:
            self.offset_index.append(last_offset - self.base_offset, position)
            self.index_max_timestamp()
            self._bytes_since_index = 0
        self._bytes_since_index += size

    def restart(self, position: int, offset_entries: int, time_entries: int) -> None:
        """Forget everything from `position` on, and all but so many index entries, before taking it in
        anew."""
        self.offset_index.truncate(offset_entries)
        self.time_index.truncate(time_entries)
        self.size = position
        self.synced = False
        self.first_timestamp = None
        self.roll_timestamp = ROLL_NOT_KNOWN
        self._bytes_since_index = 0
        self._last = None
        self.know_timestamps()

    def know_timestamps(self) -> None:
        """Take the largest timestamp from the time index, the last entry of which has it."""
        last = self.time_index.last()
        timestamp, relative = last if last else (NO_TIMESTAMP, 0)
        self.max_timestamp_offset = self.base_offset + relative
        self.max_timestamp = self._indexed_timestamp = timestamp

    def index_max_timestamp(self) -> None:
        """Add the largest timestamp so far to the time index; it is the last entry of a closed or sealed segment."""
        timestamp = self.max_timestamp
        if timestamp > self._indexed_timestamp:
            self.time_index.append(timestamp, self.max_timestamp_offset - self.base_offset)
            self._indexed_timestamp = timestamp

    def write_indexes(self) -> None:
        """Write index entries to their files if many are pending, so that recovery can start from them."""
        if self.offset_index.unwritten >= _WAITING_ENTRIES:
            self.offset_index.write()
            self.time_index.write()

    def cut_partial_write(self) -> None:
        """Remove what a failed append left beyond the last whole batch."""
        self.handle(writable=True).truncate(self.size)
        self.preallocated = self.torn = False

    def truncate_to(self, offset: int) -> int:
        """Cut before the batch that holds `offset`; returns the end offset then, from the batches that
        stay."""
        location = self.locate(offset)
        if location is None:
            end_offset = self.base_offset
            entry = self.offset_index.last()
            for _, header in self.headers(entry[1] if entry else 0):
                end_offset = header.next_offset
            return end_offset
        relative = location.base_offset - self.base_offset
        self.handle(writable=True).truncate(location.position)
        self.restart(
            location.position,
            self.offset_index.count_below(relative, 0),
            self.time_index.count_below(relative, 1),
        )
        if self.has_aborted_transactions:
            self.transaction_index.truncate_to(location.base_offset)
        # What came after the last index entry may have had a larger timestamp than the indexes know.
        entry = self.offset_index.last()
        for _, header in self.headers(entry[1] if entry else 0):
            if header.max_timestamp > self.max_timestamp:
                self.max_timestamp = header.max_timestamp
                self.max_timestamp_offset = header.last_offset
        return location.base_offset

    def largest_timestamp(self) -> int:
        """The timestamp that retention uses: the largest of the records, or when the file last changed."""
        timestamp = self.max_timestamp
        return timestamp if timestamp >= 0 else self.environment.files.modified_ms(self.path(".log"))

    def time_waited_for_roll(self, now_ms: int, timestamp: int) -> int:
        """The age of the first batch, relative to a new batch with `timestamp`."""
        first = self.first_batch_timestamp()
        return timestamp - first if first >= 0 else now_ms - self.created_ms

    def first_batch_timestamp(self) -> int:
        """The largest timestamp of the first batch; -1 without one."""
        if self.first_timestamp is None:
            if not self.size:
                return NO_TIMESTAMP
            self.first_timestamp = next(self.headers(0, 1))[1].max_timestamp
        return self.first_timestamp

    # Finding

    def locate(self, offset: int, *, nowait: bool = False) -> Location | None:
        """The first batch whose last offset is not below `offset`."""
        last = self._last
        if last is not None and offset == last.base_offset:
            return last
        entry = self.offset_index.floor(offset - self.base_offset, nowait=nowait)
        return self.scan(offset, entry[1] if entry else 0, nowait)

    def cut(self, position: int, limit: int, *, nowait: bool = False) -> tuple[int, int]:
        """Where to end a read from `position` (a batch's start) so that whole batches up to `limit` are in
        it.

        Returns the end and an offset that no record before it reaches.
        """
        entry = self.offset_index.floor(limit, 1, nowait=nowait)
        if entry is not None and entry[1] > position:
            return entry[1], self.base_offset + entry[0]
        end = position
        bound = self.base_offset
        while end < limit:
            location = self.scan(-1, end, nowait)
            if location is None or end + location.size > limit:
                break
            end += location.size
            bound = location.last_offset + 1
        return end, bound

    # Life

    def seal(self) -> None:
        """No more batches will be appended: finish the indexes and free memory."""
        self._last = None
        self.roll_timestamp = ROLL_NOT_KNOWN
        if self.preallocated:
            self.cut_partial_write()
        self.index_max_timestamp()
        self.offset_index.write()
        self.time_index.write()
        self.offset_index.release()
        self.time_index.release()

    @property
    def is_quickly_indexed(self) -> bool:
        """It holds little, and no index file: making one takes longer than reading the segment when it is next opened."""
        return not (self.offset_index.count or self.offset_index.has_file or self.time_index.has_file)

    def sync_log(self) -> None:
        """Bring the batches to the disk, and the transactions that recovery could not find again."""
        self.handle(writable=True).sync()
        if self.has_aborted_transactions:
            self.transaction_index.sync()

    def sync(self) -> None:
        """Bring everything, indexes too, to the disk: done once for a sealed segment. Runs in a thread.

        On a full disk the indexes wait for the next time: without their last entries they are slow, not
        wrong.
        """
        if not self.synced:
            self.sync_log()
            try:
                self.offset_index.sync()
                self.time_index.sync()
            except OSError as error:
                if error.errno not in FULL_DISK:
                    raise
            else:
                self.synced = True

    def rename(self, suffix: str) -> None:
        """Change the suffix of every file, the .log first: the others mean nothing without it. If that rename fails, nothing
        has changed."""
        files = self.environment.files
        before = self.suffix
        old = {kind: self.path(kind) for kind in (".log", ".index", ".timeindex", ".txnindex")}
        self.suffix = suffix
        for kind, path in old.items():
            try:
                files.rename(path, self.path(kind))
            except OSError as error:
                if kind == ".log":
                    self.suffix = before
                elif isinstance(error, FileNotFoundError):
                    continue
                raise
        self._follow_rename()

    def move(self, directory: str) -> None:
        """Follow a rename of the partition's directory."""
        self.directory = directory
        self._follow_rename()

    def _follow_rename(self) -> None:
        self.offset_index.path = self.path(".index")
        self.time_index.path = self.path(".timeindex")
        self.transaction_index.path = self.path(".txnindex")

    def close(self) -> None:
        """Close files and free memory; slices that are being sent keep theirs."""
        self.environment.pool.empty(self.slot)
        self.offset_index.release()
        self.time_index.release()
