"""Offset, time and transaction indexes and producer snapshots, and whether indexes agree with their log."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from headrace.cli.failure import Failure
from headrace.cli.view.dump.segment_file import base_offset_of, read_batch
from headrace.server.log.files import Files
from headrace.server.log.index import OFFSET_ENTRY, TIME_ENTRY
from headrace.server.log.producers import ProducerEntry
from headrace.server.log.snapshots import decode_snapshot
from headrace.server.log.transaction_index import AbortedTransaction, TransactionIndex


class OffsetEntry(NamedTuple):
    offset: int
    position: int


class TimeEntry(NamedTuple):
    timestamp: int
    offset: int


def offset_entries(path: Path) -> Iterator[OffsetEntry]:
    base, data = base_offset_of(path), path.read_bytes()
    whole = len(data) - len(data) % OFFSET_ENTRY.size
    for number, (relative, position) in enumerate(OFFSET_ENTRY.iter_unpack(data[:whole])):
        if number and relative == 0:
            return  # a preallocated file ends in zeros
        yield OffsetEntry(base + relative, position)


def time_entries(path: Path) -> Iterator[TimeEntry]:
    base, data = base_offset_of(path), path.read_bytes()
    whole = len(data) - len(data) % TIME_ENTRY.size
    for number, (timestamp, relative) in enumerate(TIME_ENTRY.iter_unpack(data[:whole])):
        if number and relative == 0:
            return
        yield TimeEntry(timestamp, base + relative)


def aborted_transactions(path: Path) -> list[AbortedTransaction]:
    return TransactionIndex(Files(), str(path), path.stat().st_size).all()


def producers(path: Path) -> list[ProducerEntry]:
    try:
        return decode_snapshot(path.read_bytes())
    except ValueError as error:
        raise Failure(f"{path}: {error}.") from None


class TimeMismatch(NamedTuple):
    offset_found: int | None  # the log has another offset there; None when the offset is right
    timestamp_found: int | None  # the log has another timestamp; None when it is right


class IndexedLog:
    """A `.log` file beside its indexes, kept open to check their entries one after the other."""

    def __init__(self, log: Path) -> None:
        try:
            self._file = log.open("rb")
        except OSError as error:
            raise Failure(f"Cannot read {log}, which the index belongs to: {error.strerror}.") from None
        self._size = log.stat().st_size
        index = log.with_suffix(".index")
        self._entries = list(offset_entries(index)) if index.exists() else []

    def __enter__(self) -> IndexedLog:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def offset_mismatch(self, entry: OffsetEntry) -> int | None:
        """The last offset of the batch an entry points to where that is not the entry's own; -1 for no batch."""
        batch = read_batch(self._file, entry.position, self._size)
        found = -1 if batch is None else batch.header.last_offset
        return None if found == entry.offset else found

    def time_mismatch(self, entry: TimeEntry) -> TimeMismatch | None:
        before = bisect_right(self._entries, entry.offset, key=lambda known: known.offset)
        position = self._entries[before - 1].position if before else 0
        batch = read_batch(self._file, position, self._size)
        while batch is not None and batch.header.last_offset < entry.offset:
            position += batch.header.size
            batch = read_batch(self._file, position, self._size)
        if batch is None:
            return TimeMismatch(-1, None)
        if batch.header.last_offset != entry.offset:
            return TimeMismatch(batch.header.last_offset, None)
        if batch.header.max_timestamp != entry.timestamp:
            return TimeMismatch(None, batch.header.max_timestamp)
        return None
