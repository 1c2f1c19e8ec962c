"""Checking batches and writing them at the end of a log.

An ordinary append looks at the batch header, computes the checksum and writes once. A full disk refuses the append and
leaves the log as it was. An Appender holds a log's settings and no state of its own; new settings make a new one. Only its
owner knows where the log ends.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from crc32c import crc32c

from headrace.server.log import refusals
from headrace.server.log.config import LogConfig
from headrace.server.log.environment import Environment
from headrace.server.log.life import LogLife
from headrace.server.log.producers import (
    AppendOrigin,
    CompletedTransaction,
    VerificationGuard,
)
from headrace.server.log.rolling import must_roll
from headrace.server.log.segment import MAX_RELATIVE_OFFSET, Segment
from headrace.server.log.store import LogStore
from headrace.server.log.validation import inspect_batch, needs_inspection
from headrace.wire.batch import (
    ASSIGNMENT,
    CONTROL,
    CRC_START,
    HEADER,
    HEADER_SIZE,
    LENGTH_OVERHEAD,
    MAGIC,
    NO_PRODUCER_ID,
    NO_TIMESTAMP,
    TRANSACTIONAL,
    BatchHeader,
    check_crc,
    iterate_batches,
    parse_header,
)
from headrace.wire.compression import Codec
from headrace.wire.markers import EndTransactionMarker, read_end_transaction_marker

_UNPACK = HEADER.unpack_from
_ASSIGN = ASSIGNMENT.pack_into
_ORDINARY_ATTRIBUTES = frozenset(int(codec) | flag for codec in Codec for flag in (0, TRANSACTIONAL))
"""Plain numbers: a set of an enum's members takes three times as long to search."""


@dataclass(slots=True)
class AppendResult:
    """Where a batch went."""

    first_offset: int
    last_offset: int
    log_append_time: int
    """-1 unless the topic's timestamps are LogAppendTime."""
    log_start_offset: int
    duplicate: bool = False
    """The batch is a duplicate; the offsets are those of the first append."""


class Appender:
    __slots__ = (
        "_config",
        "_environment",
        "_inspects_clients",
        "_inspects_coordinators",
        "_life",
        "_max_index_entries",
    )

    def __init__(self, environment: Environment, life: LogLife, config: LogConfig) -> None:
        self._environment = environment
        self._life = life
        self._config = config
        self._inspects_clients = needs_inspection(config, AppendOrigin.CLIENT)
        self._inspects_coordinators = needs_inspection(config, AppendOrigin.COORDINATOR)
        self._max_index_entries = max(config.segment_index_bytes // 12 - 1, 1)

    # As the leader

    def append_as_leader(
        self,
        store: LogStore,
        records: memoryview,
        log_start_offset: int,
        log_end_offset: int,
        leader_epoch: int,
        origin: AppendOrigin,
        guard: VerificationGuard | None,
    ) -> AppendResult:
        """Check one batch, give it the next offsets (written into `records` in place) and write it."""
        size = len(records)
        if size < HEADER_SIZE:
            parse_header(records)
        (
            base_offset,
            length,
            _,
            magic,
            crc,
            attributes,
            last_delta,
            _,
            max_timestamp,
            producer_id,
            producer_epoch,
            base_sequence,
            count,
        ) = _UNPACK(records)
        config = self._config
        if magic != MAGIC or length + LENGTH_OVERHEAD != size:
            raise refusals.not_one_batch(self._life.name, records)
        if size > config.max_message_bytes:
            raise refusals.too_large(self._life.name, size, config.max_message_bytes)
        if crc32c(records[CRC_START:]) != crc:
            check_crc(records, parse_header(records))
        if count < 1 or last_delta != count - 1 or base_offset:
            raise refusals.wrong_counts(parse_header(records))
        now_ms = self._environment.clock.now_ms()
        from_client = origin is AppendOrigin.CLIENT
        log_append_time = NO_TIMESTAMP
        marker = None
        if attributes & CONTROL and not from_client:
            marker = self._check_marker(store, records)
            # The coordinator writes control batches, not the producer: they have no sequence and belong to no open
            # transaction.
            producer_id, attributes = NO_PRODUCER_ID, 0
        elif (
            (self._inspects_clients if from_client else self._inspects_coordinators)
            or attributes not in _ORDINARY_ATTRIBUTES
            or max_timestamp - now_ms > config.message_timestamp_after_max_ms
        ):
            records = inspect_batch(records, parse_header(records), config, origin, now_ms)
            size = len(records)
            if size > config.max_message_bytes:
                raise refusals.too_large(self._life.name, size, config.max_message_bytes)
            header = parse_header(records)
            length, attributes, max_timestamp = header.length, header.attributes, header.max_timestamp
            if config.log_append_time:
                log_append_time = now_ms
        transactional = attributes & TRANSACTIONAL != 0
        if producer_id >= 0:
            if from_client:
                verify = transactional and self._environment.transaction_verification
                if verify and not store.producers.is_verified(producer_id, producer_epoch, guard):
                    raise refusals.not_verified(self._life.name, producer_id)
                if base_sequence < 0 or producer_epoch < 0:
                    raise refusals.without_sequence(self._life.name, producer_id, base_sequence)
                try:
                    earlier = store.producers.check(
                        producer_id, producer_epoch, base_sequence, count, transactional
                    )
                except OSError as error:
                    raise self._life.read_failed(error) from None
                if earlier is not None:
                    return AppendResult(
                        earlier.first_offset,
                        earlier.last_offset,
                        earlier.timestamp if config.log_append_time else NO_TIMESTAMP,
                        log_start_offset,
                        duplicate=True,
                    )
            else:
                store.producers.check_coordinator_batch(producer_id, producer_epoch, transactional)
        elif transactional:
            raise refusals.without_producer()
        last_offset = log_end_offset + last_delta
        _ASSIGN(records, 0, log_end_offset, length, leader_epoch)
        segment = store.active
        try:
            if leader_epoch != store.epochs.written and leader_epoch >= 0:
                store.epochs.assign(leader_epoch, log_end_offset)
            if (
                max_timestamp > segment.roll_timestamp
                or segment.size + size > config.segment_bytes
                or last_offset - segment.base_offset > MAX_RELATIVE_OFFSET
                or segment.offset_index.count >= self._max_index_entries
            ) and must_roll(segment, config, size, last_offset, max_timestamp, now_ms):
                segment = self.roll(store, log_end_offset)
            segment.append(records, log_end_offset, last_offset, max_timestamp, config.index_interval_bytes)
        except OSError as error:
            raise self._life.write_failed(store, error) from None
        if producer_id >= 0:
            store.producers.update(
                producer_id,
                producer_epoch,
                base_sequence,
                log_end_offset,
                last_offset,
                max_timestamp,
                transactional,
            )
        elif marker is not None:
            self._end_transaction(store, store.producers.end_transaction(parse_header(records), marker))
        return AppendResult(log_end_offset, last_offset, log_append_time, log_start_offset)

    def _check_marker(self, store: LogStore, records: memoryview) -> EndTransactionMarker | None:
        """Check the end of a transaction; None for a control batch of another kind."""
        header = parse_header(records)
        marker = read_end_transaction_marker(records, header)
        if marker is not None:
            store.producers.check_marker(header.producer_id, header.producer_epoch, marker)
        return marker

    def _end_transaction(self, store: LogStore, ended: tuple[CompletedTransaction, int] | None) -> None:
        if ended is not None:
            try:
                store.complete_transaction(*ended)
            except OSError as error:
                raise self._life.fail(f"the transaction index cannot be written: {error}") from None

    # As a follower

    def batches_after(self, records: memoryview, log_end_offset: int) -> list[BatchHeader]:
        """The headers of the whole batches that a leader sent; OFFSET_OUT_OF_RANGE when they do not continue the log."""
        headers: list[BatchHeader] = []
        for position, header in iterate_batches(records):
            check_crc(records[position : position + header.size], header)
            if header.base_offset < log_end_offset or header.last_offset_delta < 0:
                raise refusals.out_of_order(self._life.name, header.base_offset, log_end_offset)
            headers.append(header)
            log_end_offset = header.next_offset
        return headers

    def spans(self, store: LogStore, headers: list[BatchHeader]) -> Iterator[list[BatchHeader]]:
        """Cut a run of batches so that each part fits into one segment; the caller writes each before it asks for the
        next."""
        span: list[BatchHeader] = []
        size = 0
        for header in headers:
            active = store.active
            if span and (
                active.size + size + header.size > self._config.segment_bytes
                or header.last_offset - active.base_offset > MAX_RELATIVE_OFFSET
                or active.offset_index.count + len(span) >= self._max_index_entries
            ):
                yield span
                span, size = [], 0
            span.append(header)
            size += header.size
        yield span

    def write_span(
        self, store: LogStore, records: memoryview, span: list[BatchHeader], log_end_offset: int
    ) -> None:
        config, segment = self._config, store.active
        last_offset = span[-1].last_offset
        largest = max(header.max_timestamp for header in span)
        now_ms = self._environment.clock.now_ms()
        try:
            for header in span:
                epoch = header.leader_epoch
                if epoch != store.epochs.written and epoch >= store.epochs.latest:
                    store.epochs.assign(epoch, header.base_offset)
            if must_roll(segment, config, len(records), last_offset, largest, now_ms):
                # The segment starts where the log ends, even if the leader's next batch begins later. Otherwise
                # recovery could take the gap between segments for data loss.
                near = last_offset - log_end_offset <= MAX_RELATIVE_OFFSET
                segment = self.roll(store, log_end_offset if near else span[0].base_offset)
            segment.append_span(records, span, config.index_interval_bytes)
        except OSError as error:
            raise self._life.write_failed(store, error) from None

    def replay_span(self, store: LogStore, records: memoryview, span: list[BatchHeader]) -> None:
        """Update the state of producers and transactions from batches that are now part of the log."""
        position = 0
        for header in span:
            if header.producer_id >= 0:
                batch = records[position : position + header.size] if header.is_control else None
                self._end_transaction(store, store.producers.replay(header, batch))
            position += header.size

    def roll(self, store: LogStore, base_offset: int) -> Segment:
        """Begin a new segment; the finished one is flushed soon."""
        segment = store.roll(base_offset, self._config)
        self._environment.rolled.add(self._life.directory)
        return segment
