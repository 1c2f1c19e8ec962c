"""The process that compacts: `python -m headrace.server.log.cleaner_process BROKER`, fed one task a line.

It reads segments that no longer change and writes new ones beside them with the suffix .cleaned; only the broker puts those
into service, each as soon as it is announced, so that a long log needs room for one more segment and not for a copy of
itself. The process runs in bounded memory. It ends when its input ends, or with the broker whose process id it is given: the
next broker starts its own process, which writes files of the same names.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys
from collections.abc import Iterator
from typing import BinaryIO

from headrace.clock import Clock, SystemClock
from headrace.parent import end_with
from headrace.server.log.cleaning_task import (
    Answer,
    CleanedSegment,
    CleaningEnd,
    CleaningTask,
    SourceSegment,
    decode_task,
    encode,
)
from headrace.server.log.compaction import BatchFilter, LastRecord, OffsetMap, TransactionFilter, map_batch
from headrace.server.log.environment import Environment
from headrace.server.log.index import OFFSET_ENTRY, TIME_ENTRY
from headrace.server.log.leftovers import CLEANED
from headrace.server.log.segment import MAX_RELATIVE_OFFSET, Segment
from headrace.server.log.segment_file import segment_path
from headrace.server.log.transaction_index import AbortedTransaction, TransactionIndex
from headrace.wire.batch import BatchHeader, Buffer, parse_header
from headrace.wire.errors import KafkaError

_WRITE_BYTES = 1024 * 1024


class Throttle:
    """Keeps reading and writing below log.cleaner.io.max.bytes.per.second."""

    def __init__(self, clock: Clock, limit: float) -> None:
        self._clock = clock
        self._limit = limit
        self._started = clock.monotonic()
        self._bytes = 0

    def moved(self, count: int) -> None:
        self._bytes += count
        ahead = self._bytes / self._limit - (self._clock.monotonic() - self._started)
        if ahead > 0.01:
            asyncio.run(self._clock.sleep(ahead))


class Cleaning:
    """One task."""

    def __init__(self, environment: Environment, task: CleaningTask) -> None:
        self._environment = environment
        self._task = task
        self._throttle = Throttle(environment.clock, task.max_bytes_per_second)
        self._offsets = OffsetMap(task.map_bytes, task.first_dirty_offset)
        self._sources = [self._open(source) for source in task.segments]
        self._aborted = self._read_aborted()
        self._unfinished: Segment | None = None

    def _read_aborted(self) -> list[AbortedTransaction]:
        """Transactions that wrote below the upper bound; their markers may lie in segments after it."""
        found: list[AbortedTransaction] = []
        for base_offset, size in self._task.transaction_indexes:
            path = segment_path(self._task.directory, base_offset, ".txnindex")
            found += TransactionIndex(self._environment.files, path, size).all()
        return [transaction for transaction in found if transaction.first_offset < self._task.upper_offset]

    def _open(self, source: SourceSegment) -> Segment:
        return Segment(
            self._environment,
            self._task.directory,
            source.base_offset,
            created_ms=0,
            size=source.size,
            offset_index_bytes=source.offset_index_bytes,
            time_index_bytes=source.time_index_bytes,
        )

    def run(self) -> Iterator[Answer]:
        self._build_map()
        self._offsets.finish()
        clean_until = self._offsets.latest_offset + 1
        transactions = TransactionFilter()
        transactions.add(self._aborted)
        batch_filter = BatchFilter(
            self._offsets,
            transactions,
            {
                producer_id: LastRecord(offset, epoch)
                for producer_id, offset, epoch in self._task.last_records
            },
            self._task.now_ms,
            self._task.delete_retention_ms,
            self._task.upper_offset,
        )
        for group in self._groups(clean_until):
            yield self._clean(group, batch_filter, transactions)
        yield CleaningEnd(clean_until)

    def _batches(self, segment: Segment, position: int = 0) -> Iterator[tuple[BatchHeader, Buffer]]:
        """Every batch of a segment; ValueError when one is damaged, since compacting would lose what
        follows."""
        reached = position
        for start, header, batch in segment.checked_batches(position, segment.size):
            yield header, batch
            reached = start + header.size
            self._throttle.moved(header.size)
        if reached < segment.size:
            raise ValueError(f"{segment.path('.log')} is damaged at byte {reached}")

    def _build_map(self) -> None:
        start = self._task.first_dirty_offset
        transactions = TransactionFilter()
        transactions.add(transaction for transaction in self._aborted if transaction.last_offset >= start)
        for source, segment in zip(self._task.segments, self._sources, strict=True):
            if source.end_offset <= start:
                continue
            location = segment.locate(start) if start > source.base_offset else None
            for header, batch in self._batches(segment, location.position if location else 0):
                if not map_batch(self._offsets, transactions, header, batch):
                    if self._offsets.latest_offset < start:
                        raise ValueError(
                            f"the batch at offset {header.base_offset} has more keys than log.cleaner.dedupe.buffer.size "
                            f"({self._task.map_bytes} bytes) has room for; raise that setting"
                        )
                    return
            self._offsets.latest_offset = max(self._offsets.latest_offset, source.end_offset - 1)
            segment.close()

    def _groups(self, clean_until: int) -> Iterator[list[int]]:
        """Groups of segments, by index, that fit into one segment."""
        task = self._task
        group: list[int] = []
        size = offset_bytes = time_bytes = 0
        for number, source in enumerate(task.segments):
            if source.base_offset >= clean_until:
                break
            fits = (
                size + source.size <= task.segment_bytes
                and offset_bytes + source.offset_index_bytes <= task.segment_index_bytes
                and time_bytes + source.time_index_bytes <= task.segment_index_bytes
                and (
                    not group
                    or source.end_offset - task.segments[group[0]].base_offset <= MAX_RELATIVE_OFFSET
                )
            )
            if group and not fits:
                yield group
                group, size, offset_bytes, time_bytes = [], 0, 0, 0
            group.append(number)
            size += source.size
            offset_bytes += source.offset_index_bytes
            time_bytes += source.time_index_bytes
        if group:
            yield group

    def _clean(
        self, group: list[int], batch_filter: BatchFilter, transactions: TransactionFilter
    ) -> CleanedSegment:
        sources = [self._sources[number] for number in group]
        cleaned = Segment(
            self._environment, self._task.directory, sources[0].base_offset, created_ms=0, suffix=CLEANED
        )
        self._unfinished = cleaned
        cleaned.remove_files()
        cleaned.create_files()
        transactions.keep_index = lambda transaction: cleaned.transaction_index.append(transaction)
        writer = _Writer(cleaned, self._task.index_interval_bytes, self._throttle)
        for segment in sources:
            for header, batch in self._batches(segment):
                kept = batch_filter.filter(header, batch)
                if kept is not None:
                    writer.add(kept)
            segment.close()
        writer.flush()
        cleaned.seal()
        cleaned.sync()
        files = self._environment.files
        modified_ms = files.modified_ms(sources[-1].path(".log"))
        for kind in (".log", ".index", ".timeindex"):
            files.set_modified(cleaned.path(kind), modified_ms)
        cleaned.close()
        self._unfinished = None
        return CleanedSegment(
            cleaned.base_offset,
            [segment.base_offset for segment in sources],
            cleaned.size,
            cleaned.offset_index.written * OFFSET_ENTRY.size,
            cleaned.time_index.written * TIME_ENTRY.size,
            cleaned.transaction_index.size,
        )

    def remove_unfinished(self) -> None:
        """Remove segments that have not been announced yet; the others belong to the broker."""
        if self._unfinished is not None:
            with contextlib.suppress(OSError):
                self._unfinished.remove_files()


class _Writer:
    """Gathers batches into larger writes."""

    def __init__(self, segment: Segment, index_interval: int, throttle: Throttle) -> None:
        self._segment = segment
        self._index_interval = index_interval
        self._throttle = throttle
        self._data = bytearray()
        self._headers: list[BatchHeader] = []

    def add(self, batch: Buffer) -> None:
        self._data += batch
        self._headers.append(parse_header(batch))
        if len(self._data) >= _WRITE_BYTES:
            self.flush()

    def flush(self) -> None:
        if self._headers:
            self._segment.append_span(self._data, self._headers, self._index_interval)
            self._throttle.moved(len(self._data))
            self._data = bytearray()
            self._headers = []


def clean(environment: Environment, task: CleaningTask) -> Iterator[Answer]:
    """Do one task; an error is reported at the end and leaves no file behind."""
    cleaning = Cleaning(environment, task)
    try:
        yield from cleaning.run()
    except (OSError, ValueError, KafkaError) as error:
        cleaning.remove_unfinished()
        yield CleaningEnd(error=str(error))


def serve(source: BinaryIO, target: BinaryIO) -> None:
    environment = Environment(clock=SystemClock())
    for line in source:
        for answer in clean(environment, decode_task(line)):
            target.write(encode(answer))
            target.flush()


if __name__ == "__main__":
    end_with(int(sys.argv[1]), signal.SIGKILL)
    serve(sys.stdin.buffer, sys.stdout.buffer)
