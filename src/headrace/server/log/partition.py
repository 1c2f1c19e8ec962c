"""One partition's log as its leader or follower uses it: appending records.

It belongs to the event loop and never awaits. An ordinary append looks at the batch header, computes the
checksum and writes once. A full disk refuses the append and leaves the log as it was.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from crc32c import crc32c

from headrace.server.log.lifecycle import ReopenFacts
from headrace.server.log.producers import (
    AppendOrigin,
    CompletedTransaction,
    ProducerState,
    VerificationGuard,
)
from headrace.server.log.segment import MAX_RELATIVE_OFFSET, Segment
from headrace.server.log.store import LogStore
from headrace.server.log.trimming import TrimmedLog
from headrace.server.log.validation import inspect_batch
from headrace.wire.batch import (
    ASSIGNMENT,
    CONTROL,
    CRC_START,
    HEADER,
    HEADER_SIZE,
    LENGTH_OVERHEAD,
    MAGIC,
    NO_TIMESTAMP,
    TRANSACTIONAL,
    BatchHeader,
    check_counts,
    check_crc,
    iterate_batches,
    parse_header,
)
from headrace.wire.compression import Codec
from headrace.wire.errors import ErrorCode, KafkaError
from headrace.wire.markers import read_end_transaction_marker

_UNPACK = HEADER.unpack_from
_ASSIGN = ASSIGNMENT.pack_into
_ORDINARY_ATTRIBUTES = frozenset({*Codec, *(codec | TRANSACTIONAL for codec in Codec)})


@dataclass(slots=True)
class AppendResult:
    first_offset: int
    last_offset: int
    log_append_time: int
    """-1 unless the topic's timestamps are LogAppendTime."""
    log_start_offset: int
    duplicate: bool = False
    """The batch was here already; the offsets are those it got then."""


class PartitionLog(TrimmedLog):
    __slots__ = ("__weakref__",)

    # Appending

    def append_as_leader(
        self,
        records: memoryview,
        *,
        leader_epoch: int,
        origin: AppendOrigin = AppendOrigin.CLIENT,
        guard: VerificationGuard | None = None,
    ) -> AppendResult:
        """Check one batch, give it the next offsets (written into `records` in place) and write it."""
        store = self._store or self.load()
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
        config = self.config
        if magic != MAGIC or length + LENGTH_OVERHEAD != size:
            raise self._misshapen(records)
        if size > config.max_message_bytes:
            raise self._too_large(size)
        if crc32c(records[CRC_START:]) != crc:
            check_crc(records, parse_header(records))
        if count < 1 or last_delta != count - 1 or base_offset:
            raise self._miscounted(parse_header(records), origin)
        now_ms = self.environment.clock.now_ms()
        if attributes & CONTROL and origin is AppendOrigin.COORDINATOR:
            return self._append_marker(store, records, parse_header(records), leader_epoch, now_ms)
        log_append_time = NO_TIMESTAMP
        if (
            origin in self._inspect
            or attributes not in _ORDINARY_ATTRIBUTES
            or max_timestamp - now_ms > config.message_timestamp_after_max_ms
        ):
            records = inspect_batch(records, parse_header(records), config, origin, now_ms)
            size = len(records)
            if size > config.max_message_bytes:
                raise self._too_large(size)
            header = parse_header(records)
            length, attributes, max_timestamp = header.length, header.attributes, header.max_timestamp
            if config.log_append_time:
                log_append_time = now_ms
        transactional = attributes & TRANSACTIONAL != 0
        if producer_id >= 0:
            if origin is AppendOrigin.CLIENT:
                if transactional and self.environment.transaction_verification:
                    self._check_verified(store.producers, producer_id, producer_epoch, guard)
                if base_sequence < 0 or producer_epoch < 0:
                    raise self._without_sequence(producer_id, base_sequence)
                try:
                    earlier = store.producers.check(
                        producer_id, producer_epoch, base_sequence, count, transactional
                    )
                except OSError as error:
                    raise self.read_failed(error) from None
                if earlier is not None:
                    return AppendResult(
                        earlier.first_offset,
                        earlier.last_offset,
                        earlier.timestamp if config.log_append_time else NO_TIMESTAMP,
                        self.log_start_offset,
                        duplicate=True,
                    )
            else:
                store.producers.check_coordinator_batch(producer_id, producer_epoch, transactional)
        elif transactional:
            raise KafkaError(ErrorCode.INVALID_RECORD, "A transactional batch needs a producer id.")
        first_offset = self.log_end_offset
        last_offset = first_offset + last_delta
        _ASSIGN(records, 0, first_offset, length, leader_epoch)
        self._write(store, records, size, first_offset, last_offset, max_timestamp, leader_epoch, now_ms)
        if producer_id >= 0:
            store.producers.update(
                producer_id,
                producer_epoch,
                base_sequence,
                first_offset,
                last_offset,
                max_timestamp,
                transactional,
            )
        return AppendResult(first_offset, last_offset, log_append_time, self.log_start_offset)

    def _write(
        self,
        store: LogStore,
        records: memoryview,
        size: int,
        first_offset: int,
        last_offset: int,
        max_timestamp: int,
        leader_epoch: int,
        now_ms: int,
    ) -> None:
        config = self.config
        segment = store.active
        try:
            if leader_epoch != store.epochs.written and leader_epoch >= 0:
                store.epochs.assign(leader_epoch, first_offset)
            if (
                segment.size + size > config.segment_bytes
                or max_timestamp > self._roll_timestamp
                or last_offset - segment.base_offset > MAX_RELATIVE_OFFSET
                or segment.offset_index.count >= self._max_index_entries
            ):
                segment = self._maybe_roll(store, size, first_offset, last_offset, max_timestamp, now_ms)
            segment.append(records, first_offset, last_offset, max_timestamp, config.index_interval_bytes)
        except OSError as error:
            raise self.write_failed(store, error) from None
        self.log_end_offset = last_offset + 1

    def _append_marker(
        self, store: LogStore, records: memoryview, header: BatchHeader, leader_epoch: int, now_ms: int
    ) -> AppendResult:
        """Write a control batch, and end the transaction if it is a marker."""
        marker = read_end_transaction_marker(records, header)
        if marker is not None:
            store.producers.check_marker(header.producer_id, header.producer_epoch, marker)
        offset = self.log_end_offset
        _ASSIGN(records, 0, offset, header.length, leader_epoch)
        header = header._replace(base_offset=offset)
        self._write(
            store,
            records,
            len(records),
            offset,
            header.last_offset,
            header.max_timestamp,
            leader_epoch,
            now_ms,
        )
        if marker is not None:
            self._end_transaction(store, store.producers.end_transaction(header, marker))
        return AppendResult(offset, header.last_offset, NO_TIMESTAMP, self.log_start_offset)

    def _end_transaction(self, store: LogStore, ended: tuple[CompletedTransaction, int] | None) -> None:
        if ended is not None:
            try:
                store.complete_transaction(*ended)
            except OSError as error:
                raise self.fail(f"the transaction index cannot be written: {error}") from None

    def append_as_follower(self, records: memoryview) -> AppendResult | None:
        """Write batches as the leader has them, offsets and epochs included; a cut last batch is left out.

        None when there is no whole batch. OFFSET_OUT_OF_RANGE when they do not continue this log.
        """
        store = self._store or self.load()
        headers: list[BatchHeader] = []
        expected = self.log_end_offset
        first_offset = end = 0
        for position, header in iterate_batches(records):
            end = position + header.size
            check_crc(records[position:end], header)
            if header.base_offset < expected or header.last_offset_delta < 0:
                raise KafkaError(
                    ErrorCode.OFFSET_OUT_OF_RANGE,
                    f"A batch for {self.name} begins at offset {header.base_offset}, before {expected}, "
                    "where the log goes on.",
                )
            if not headers:
                first_offset = header.base_offset
            headers.append(header)
            expected = header.next_offset
        if not headers:
            return None
        now_ms = self.environment.clock.now_ms()
        position = 0
        for span in self._spans(store, headers, now_ms):
            size = sum(header.size for header in span)
            self._write_span(store, records[position : position + size], span, now_ms)
            position += size
        return AppendResult(first_offset, self.log_end_offset - 1, NO_TIMESTAMP, self.log_start_offset)

    def _spans(self, store: LogStore, headers: list[BatchHeader], now_ms: int) -> Iterator[list[BatchHeader]]:
        """Cut a run of batches so that each part fits into one segment; the segment is rolled in between."""
        span: list[BatchHeader] = []
        size = 0
        for header in headers:
            active = store.active
            if span and (
                active.size + size + header.size > self.config.segment_bytes
                or header.last_offset - active.base_offset > MAX_RELATIVE_OFFSET
                or active.offset_index.count + len(span) >= self._max_index_entries
            ):
                yield span
                span, size = [], 0
            span.append(header)
            size += header.size
        yield span

    def _write_span(self, store: LogStore, records: memoryview, span: list[BatchHeader], now_ms: int) -> None:
        largest = max(header.max_timestamp for header in span)
        try:
            for header in span:
                epoch = header.leader_epoch
                if epoch != store.epochs.written and epoch >= store.epochs.latest:
                    store.epochs.assign(epoch, header.base_offset)
            segment = self._maybe_roll(
                store, len(records), span[0].base_offset, span[-1].last_offset, largest, now_ms
            )
            segment.append_span(records, span, self.config.index_interval_bytes)
        except OSError as error:
            raise self.write_failed(store, error) from None
        self.log_end_offset = span[-1].next_offset
        position = 0
        for header in span:
            if header.producer_id >= 0:
                batch = records[position : position + header.size] if header.is_control else None
                self._end_transaction(store, store.producers.replay(header, batch))
            position += header.size

    def _maybe_roll(
        self,
        store: LogStore,
        size: int,
        first_offset: int,
        last_offset: int,
        max_timestamp: int,
        now_ms: int,
    ) -> Segment:
        segment, config = store.active, self.config
        if last_offset - segment.base_offset <= MAX_RELATIVE_OFFSET:
            if segment.size == 0:
                return segment
            limit = config.max_segment_ms - segment.roll_jitter_ms
            waited = segment.time_waited_for_roll(now_ms, max_timestamp)
            first = segment.first_timestamp
            self._roll_timestamp = first + limit if first is not None and first >= 0 else -2
            if (
                segment.size + size <= config.segment_bytes
                and waited <= limit
                and not segment.offset_index.is_full(config.segment_index_bytes)
                and not segment.time_index.is_full(config.segment_index_bytes - 12)
            ):
                return segment
        self._roll_timestamp = -2
        # Where the log ends, though a follower's next batch may begin later: between segments there is no gap then,
        # which recovery could take for a loss.
        near = last_offset - self.log_end_offset <= MAX_RELATIVE_OFFSET
        segment = store.roll(self.log_end_offset if near else first_offset, config)
        self.environment.rolled.add(self)
        return segment

    def roll(self) -> None:
        """Begin a new segment now, unless the active one is empty."""
        store = self._store or self.load()
        if store.active.size:
            try:
                store.roll(self.log_end_offset, self.config)
            except OSError as error:
                raise self.write_failed(store, error) from None
            self._roll_timestamp = -2
            self.environment.rolled.add(self)

    def _misshapen(self, records: memoryview) -> KafkaError:
        header = parse_header(records)
        return KafkaError(
            ErrorCode.INVALID_RECORD,
            f"A produce request carries one batch per partition; this one for {self.name} has "
            f"{len(records) - header.size} bytes after its first.",
        )

    def _too_large(self, size: int) -> KafkaError:
        return KafkaError(
            ErrorCode.MESSAGE_TOO_LARGE,
            f"A batch of {size} bytes for {self.name} is larger than max.message.bytes, "
            f"{self.config.max_message_bytes}.",
        )

    def _miscounted(self, header: BatchHeader, origin: AppendOrigin) -> KafkaError:
        check_counts(header)
        return KafkaError(
            ErrorCode.INVALID_RECORD,
            f"The base offset of a batch from a client must be 0, not {header.base_offset}: "
            "the broker assigns offsets.",
        )

    def _without_sequence(self, producer_id: int, sequence: int) -> KafkaError:
        return KafkaError(
            ErrorCode.INVALID_RECORD,
            f"Sequence {sequence} of producer {producer_id} for {self.name} cannot be: an idempotent batch "
            "has a sequence and an epoch from 0 up.",
        )

    def _check_verified(
        self, producers: ProducerState, producer_id: int, epoch: int, guard: VerificationGuard | None
    ) -> None:
        if not producers.is_verified(producer_id, epoch, guard):
            raise KafkaError(
                ErrorCode.INVALID_TXN_STATE,
                f"{self.name} is not part of an open transaction of producer {producer_id}.",
            )


__all__ = ["AppendOrigin", "AppendResult", "PartitionLog", "ReopenFacts"]
