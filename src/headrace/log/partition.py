"""One partition's log: appending, reading, and the offsets that bound it.

It belongs to the event loop: nothing here awaits, and only `flush` and reads with `nowait=False` may run in
a thread. An ordinary append looks at the batch header, computes the checksum and writes once. A full disk
refuses the append and leaves the log as it was; any other write or fsync error takes this log offline, and
`reopen` brings it back through recovery. A log is loaded from its directory when it is first touched.
"""

from __future__ import annotations

import errno
import logging
import uuid
from collections.abc import Iterator
from dataclasses import dataclass

from crc32c import crc32c

from headrace.log import lookup, retention
from headrace.log.config import LogConfig
from headrace.log.environment import Environment
from headrace.log.lookup import TimestampOffset
from headrace.log.producers import (
    AppendOrigin,
    CompletedTransaction,
    ProducerEntry,
    ProducerState,
    VerificationGuard,
)
from headrace.log.recovery import load_log
from headrace.log.segment import MAX_RELATIVE_OFFSET, Segment
from headrace.log.slice import LogSlice
from headrace.log.snapshots import encode_snapshot
from headrace.log.store import LogStore
from headrace.log.transaction_index import AbortedTransaction
from headrace.log.validation import inspect_batch, needs_inspection
from headrace.wire.batch import (
    ASSIGNMENT,
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

logger = logging.getLogger(__name__)

_UNPACK = HEADER.unpack_from
_ASSIGN = ASSIGNMENT.pack_into
_FULL_DISK = {errno.ENOSPC, errno.EDQUOT}
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


@dataclass(slots=True, frozen=True)
class ReopenFacts:
    """What is known of a log before it is loaded: from the checkpoints, or from the summary of a clean
    stop."""

    clean: bool = False
    recovery_point: int = 0
    log_start_offset: int = 0
    high_watermark: int = 0
    end: tuple[int, int] | None = None
    """End offset and size of the active segment, when the log was closed by us."""


class PartitionLog:
    __slots__ = (
        "__weakref__",
        "_distrust_cache",
        "_high_watermark",
        "_inspect",
        "_known_end",
        "_max_index_entries",
        "_offline",
        "_opened_clean",
        "_roll_timestamp",
        "_store",
        "_truncations",
        "config",
        "directory",
        "environment",
        "last_flush_ms",
        "log_end_offset",
        "log_start_offset",
        "partition",
        "recovery_point",
        "topic",
        "topic_id",
    )

    def __init__(
        self,
        environment: Environment,
        directory: str,
        topic: str,
        partition: int,
        config: LogConfig,
        facts: ReopenFacts | None = None,
        topic_id: uuid.UUID | None = None,
    ) -> None:
        if facts is None:
            facts = ReopenFacts()
        self.environment = environment
        self.directory = directory
        self.topic = topic
        self.partition = partition
        self.topic_id = topic_id
        self.log_start_offset = facts.log_start_offset
        self.log_end_offset = facts.end[0] if facts.end else facts.recovery_point
        self.recovery_point = facts.recovery_point
        """Everything before this offset is on the disk."""
        self._high_watermark = facts.high_watermark
        self._opened_clean = facts.clean
        self._known_end = facts.end
        self._store: LogStore | None = None
        self._offline: str | None = None
        self._distrust_cache = False
        """After a failed fsync the page cache may show what the disk does not have."""
        self._truncations = 0
        self.last_flush_ms = environment.clock.now_ms()
        self.update_config(config)

    @property
    def name(self) -> str:
        return f"{self.topic}-{self.partition}"

    def update_config(self, config: LogConfig) -> None:
        self.config = config
        self._inspect = needs_inspection(config)
        self._max_index_entries = max(config.segment_index_bytes // 12 - 1, 1)
        self._roll_timestamp = -2

    # Loading and failing

    def load(self) -> LogStore:
        """Open the directory if that has not happened yet."""
        store = self._store
        if store is not None:
            return store
        if self._offline is not None:
            raise self._storage_error(self._offline)
        try:
            loaded = load_log(
                self.environment,
                self.directory,
                self.name,
                self.config,
                clean=self._opened_clean,
                recovery_point=self.recovery_point,
                log_start_offset=self.log_start_offset,
                known_end=self._known_end,
                distrust_cache=self._distrust_cache,
            )
        except OSError as error:
            raise self._fail(f"cannot open its log: {error}") from None
        self._store = store = LogStore(self.environment, self.directory, loaded)
        self.log_start_offset = loaded.log_start_offset
        self.log_end_offset = loaded.log_end_offset
        self._high_watermark = min(max(self._high_watermark, self.log_start_offset), self.log_end_offset)
        self.recovery_point = min(self.recovery_point, self.log_end_offset)
        self._opened_clean = self._distrust_cache = False
        self._known_end = None
        self._roll_timestamp = -2
        return store

    @property
    def is_loaded(self) -> bool:
        return self._store is not None

    @property
    def offline_reason(self) -> str | None:
        return self._offline

    def take_offline(self, reason: str) -> None:
        """Refuse everything from now on, until `reopen`."""
        self._fail(reason)

    def reopen(self) -> None:
        """Bring an offline log back through recovery; KAFKA_STORAGE_ERROR when the disk still refuses."""
        if self._offline is None:
            return
        self._offline = None
        self._opened_clean = False
        self._distrust_cache = True
        self.load()
        logger.info("%s is back online with end offset %d.", self.name, self.log_end_offset)

    def _fail(self, reason: str) -> KafkaError:
        if self._offline is None:
            logger.error("%s goes offline: %s.", self.name, reason)
        self._offline = reason
        store, self._store = self._store, None
        if store is not None:
            store.release()
        return self._storage_error(reason)

    def _storage_error(self, reason: str) -> KafkaError:
        return KafkaError(
            ErrorCode.KAFKA_STORAGE_ERROR, f"{self.name} in {self.directory} is offline: {reason}."
        )

    def _write_failed(self, store: LogStore, error: OSError) -> KafkaError:
        if error.errno in _FULL_DISK:
            try:
                store.active.cut_partial_write()
            except OSError as second:
                return self._fail(f"a partial write cannot be undone: {second}")
            return KafkaError(
                ErrorCode.KAFKA_STORAGE_ERROR,
                f"No room is left on the disk of {self.directory} for {self.name}; free some and try again.",
            )
        return self._fail(f"writing failed: {error}")

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
        log_append_time = NO_TIMESTAMP
        if (
            self._inspect
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
            if header.is_control:
                return self._append_marker(store, records, header, leader_epoch, now_ms)
        transactional = attributes & TRANSACTIONAL != 0
        if producer_id >= 0:
            if transactional and self.environment.transaction_verification:
                self._check_verified(store.producers, producer_id, producer_epoch, guard)
            if origin is AppendOrigin.CLIENT:
                if base_sequence < 0 or producer_epoch < 0:
                    raise self._without_sequence(producer_id, base_sequence)
                earlier = store.producers.check(
                    producer_id, producer_epoch, base_sequence, count, transactional
                )
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
            if leader_epoch != store.epochs.latest and leader_epoch >= 0:
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
            raise self._write_failed(store, error) from None
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
                raise self._fail(f"the transaction index cannot be written: {error}") from None

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
                if header.leader_epoch > store.epochs.latest:
                    store.epochs.assign(header.leader_epoch, header.base_offset)
            segment = self._maybe_roll(
                store, len(records), span[0].base_offset, span[-1].last_offset, largest, now_ms
            )
            segment.append_span(records, span, self.config.index_interval_bytes)
        except OSError as error:
            raise self._write_failed(store, error) from None
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
            limit = config.segment_ms - segment.roll_jitter_ms
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
        segment = store.roll(first_offset, config)
        self.environment.rolled.add(self)
        return segment

    def roll(self) -> None:
        """Begin a new segment now, unless the active one is empty."""
        store = self._store or self.load()
        if store.active.size:
            try:
                store.roll(self.log_end_offset, self.config)
            except OSError as error:
                raise self._write_failed(store, error) from None
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

    # Reading

    def read(
        self,
        offset: int,
        max_bytes: int,
        *,
        up_to_offset: int | None = None,
        min_one_batch: bool = True,
        nowait: bool = False,
    ) -> LogSlice:
        """Whole batches from the one that holds `offset`, all below `up_to_offset`, about `max_bytes` of
        them.

        With `min_one_batch` a first batch larger than that is returned all the same. With `nowait`,
        BlockingIOError when finding them needs the disk: read again in a thread without it.
        """
        store = self._store or self.load()
        end_offset = self.log_end_offset
        if not self.log_start_offset <= offset <= end_offset:
            raise KafkaError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"Offset {offset} of {self.name} is outside {self.log_start_offset}…{end_offset}.",
            )
        upper = end_offset if up_to_offset is None or up_to_offset > end_offset else up_to_offset
        if offset >= upper:
            return LogSlice(None, 0, 0, offset, offset)
        segments = store.segments
        number = segments.index_of(offset)
        try:
            while True:
                segment = segments[number]
                location = segment.locate(offset, nowait=nowait)
                if location is not None:
                    break
                number += 1  # Compaction left nothing at the end of this segment.
                if number == len(segments):
                    return LogSlice(None, 0, 0, offset, offset)
            position = location.position
            bound = segments.end_of(number, end_offset)
            end = segment.size
            if upper < bound:
                first_above = segment.locate(upper, nowait=nowait)
                bound = upper
                if first_above is not None:
                    end = first_above.position
            if end - position > max_bytes:
                if location.size < max_bytes:
                    end, bound = segment.cut(position, position + max_bytes, nowait=nowait)
                else:
                    whole = location.size == max_bytes or min_one_batch
                    end = min(end, position + location.size if whole else position)
                    bound = location.last_offset + 1
            if end <= position:
                return LogSlice(None, 0, 0, offset, offset)
            return LogSlice(segment.handle(), position, end - position, location.base_offset, bound)
        except BlockingIOError:
            raise
        except OSError as error:
            raise self._fail(f"reading failed: {error}") from None

    # Offsets

    @property
    def high_watermark(self) -> int:
        return self._high_watermark

    def set_high_watermark(self, offset: int) -> None:
        """Only the owner of the replica's role calls this. Consumers, retention and compaction stop below
        it."""
        self._high_watermark = min(max(offset, self.log_start_offset), self.log_end_offset)
        if self._store is not None:
            self._store.producers.on_high_watermark(self._high_watermark)

    @property
    def last_stable_offset(self) -> int:
        """Below it no transaction is undecided; what a read_committed consumer may see."""
        unstable = (self._store or self.load()).producers.first_unstable_offset
        if unstable is None or unstable > self._high_watermark:
            return self._high_watermark
        return max(unstable, self.log_start_offset)

    @property
    def size(self) -> int:
        """Bytes of all segments."""
        return (self._store or self.load()).segments.size

    def earliest_offset(self) -> TimestampOffset:
        store = self._store or self.load()
        return TimestampOffset(
            NO_TIMESTAMP, self.log_start_offset, store.epochs.epoch_for(self.log_start_offset)
        )

    def latest_offset(self) -> TimestampOffset:
        store = self._store or self.load()
        return TimestampOffset(NO_TIMESTAMP, self.log_end_offset, store.epochs.latest)

    def offset_for_timestamp(self, timestamp: int) -> TimestampOffset | None:
        """The first record not before `timestamp`. It may read from the disk: call it in a thread."""
        store = self._store or self.load()
        return lookup.first_at_or_after(store.segments, timestamp, self.log_start_offset)

    def max_timestamp_offset(self) -> TimestampOffset | None:
        """The record with the largest timestamp. It may read from the disk: call it in a thread."""
        return lookup.latest_timestamp((self._store or self.load()).segments)

    # Leader epochs

    @property
    def latest_epoch(self) -> int:
        """-1 when the log has never had a leader."""
        return (self._store or self.load()).epochs.latest

    def assign_epoch(self, epoch: int, start_offset: int) -> None:
        """A leader epoch begins here."""
        store = self._store or self.load()
        try:
            store.epochs.assign(epoch, start_offset)
        except OSError as error:
            raise self._write_failed(store, error) from None

    def end_offset_for(self, epoch: int) -> tuple[int, int]:
        """The largest epoch not above `epoch` and where it ended; (-1, -1) when that is not known."""
        return (self._store or self.load()).epochs.end_offset_for(epoch, self.log_end_offset)

    def epoch_for(self, offset: int) -> int:
        return (self._store or self.load()).epochs.epoch_for(offset)

    # Producers and transactions

    @property
    def active_producers(self) -> list[ProducerEntry]:
        return list((self._store or self.load()).producers.entries.values())

    def has_ongoing_transaction(self, producer_id: int, epoch: int) -> bool:
        return (self._store or self.load()).producers.has_ongoing_transaction(producer_id, epoch)

    def start_verification(
        self, producer_id: int, sequence: int, epoch: int, *, supports_epoch_bump: bool = False
    ) -> VerificationGuard | None:
        """What to append a transactional batch with once its coordinator has agreed; None when none is
        needed."""
        store = self._store or self.load()
        now_ms = self.environment.clock.now_ms()
        return store.producers.start_verification(producer_id, sequence, epoch, supports_epoch_bump, now_ms)

    def aborted_transactions(self, first: int, last: int) -> list[AbortedTransaction]:
        """Transactions aborted that touch offsets from `first` to before `last`."""
        store = self._store or self.load()
        found: list[AbortedTransaction] = []
        for number in range(store.segments.index_of(first), len(store.segments)):
            segment = store.segments[number]
            if segment.has_aborted_transactions:
                more, complete = segment.transaction_index.collect(first, last)
                found += more
                if complete:
                    break
        return found

    def expire_producers(self) -> None:
        if self._store is not None:
            now_ms = self.environment.clock.now_ms()
            self._store.producers.expire(now_ms, self.environment.producer_id_expiration_ms)

    # Shrinking

    def truncate_to(self, offset: int) -> None:
        """Remove records from `offset` on; the log ends at the start of the batch that held it."""
        store = self._store or self.load()
        if offset >= self.log_end_offset:
            return
        self._truncations += 1
        try:
            if offset < self.log_start_offset:
                self.truncate_fully_and_start_at(max(offset, 0))
                return
            end_offset = store.truncate_to(offset, self.log_start_offset)
            if end_offset < self.log_start_offset:
                end_offset = self.log_start_offset
                store.start_over(end_offset)
        except OSError as error:
            raise self._fail(f"it cannot be truncated: {error}") from None
        self.log_end_offset = end_offset
        self._after_truncation(store)

    def truncate_fully_and_start_at(self, offset: int) -> None:
        """Remove everything; the next record gets `offset`."""
        store = self._store or self.load()
        self._truncations += 1
        try:
            store.start_over(offset)
        except OSError as error:
            raise self._fail(f"it cannot be truncated: {error}") from None
        self.log_start_offset = self.log_end_offset = offset
        self._after_truncation(store)

    def _after_truncation(self, store: LogStore) -> None:
        self._roll_timestamp = -2
        self.recovery_point = min(self.recovery_point, self.log_end_offset)
        self._high_watermark = min(max(self._high_watermark, self.log_start_offset), self.log_end_offset)
        store.producers.on_high_watermark(self._high_watermark)

    def delete_records(self, offset: int) -> None:
        """Let the log start at `offset` (DeleteRecords). The files go when retention next looks."""
        self.load()
        if offset > self._high_watermark:
            raise KafkaError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"Records of {self.name} can be deleted up to its high watermark {self._high_watermark}, "
                f"not to {offset}.",
            )
        self.advance_log_start(offset)

    def advance_log_start(self, offset: int) -> None:
        """Follow a leader's log start offset, or one's own retention."""
        store = self._store or self.load()
        if offset > self.log_start_offset:
            self.log_start_offset = offset
            if self._high_watermark < offset:
                self._high_watermark = min(offset, self.log_end_offset)
            try:
                store.epochs.truncate_from_start(offset)
            except OSError as error:
                raise self._write_failed(store, error) from None

    def delete_old_segments(self) -> int:
        """Apply retention; returns how many segments went. Loads nothing that was never touched."""
        store = self._store or self.load()
        now_ms = self.environment.clock.now_ms()
        try:
            old = retention.deletable(
                store.segments,
                self.config,
                now_ms,
                self.log_start_offset,
                self.log_end_offset,
                self._high_watermark,
            )
            if not old:
                return 0
            if old[-1] is store.active:
                store.roll(self.log_end_offset, self.config)
                self._roll_timestamp = -2
            store.remove_first(old, self.config.file_delete_delay_ms)
        except OSError as error:
            raise self._write_failed(store, error) from None
        self.advance_log_start(store.segments.first.base_offset)
        return len(old)

    # Durability and life

    @property
    def unflushed_records(self) -> int:
        return self.log_end_offset - self.recovery_point

    def prepare_flush(self, *, snapshot: bool = False) -> FlushJob:
        """On the event loop: note what a flush covers. With `snapshot`, the producers' state is saved with
        it, so that recovery from this point need not look further back."""
        store = self._store or self.load()
        data = encode_snapshot(store.producers.entries.values()) if snapshot else None
        return FlushJob(self, store, self.log_end_offset, self._truncations, data)

    def flush(self) -> int:
        """Bring everything to the disk; returns the recovery point then. May run in a thread."""
        return self.prepare_flush().run()

    def flushed(self, up_to: int, truncations: int) -> None:
        """A flush has succeeded; one that a truncation overtook counts for nothing."""
        if truncations == self._truncations and up_to > self.recovery_point:
            self.recovery_point = up_to
        self.last_flush_ms = self.environment.clock.now_ms()

    def close(self) -> ReopenFacts:
        """Write everything to the disk and let go of it; returns what to remember for a quick start."""
        if self._store is None:
            return ReopenFacts(
                self._offline is None and self._opened_clean,
                self.recovery_point,
                self.log_start_offset,
                self._high_watermark,
                self._known_end,
            )
        store = self._store
        try:
            store.finish(self.log_end_offset)
        except OSError as error:
            raise self._fail(f"it cannot be closed: {error}") from None
        self.recovery_point = self.log_end_offset
        end = (self.log_end_offset, store.active.size)
        store.release()
        self._store = None
        self._opened_clean, self._known_end = True, end
        return ReopenFacts(True, self.log_end_offset, self.log_start_offset, self._high_watermark, end)

    def move(self, directory: str) -> None:
        """Rename the directory; open slices stay readable."""
        self.environment.files.rename(self.directory, directory)
        self.directory = directory
        if self._store is not None:
            self._store.move(directory)


@dataclass(slots=True)
class FlushJob:
    """One flush: made on the event loop, run in a thread."""

    log: PartitionLog
    store: LogStore
    up_to: int
    truncations: int
    snapshot: bytes | None

    def run(self) -> int:
        try:
            self.store.sync(self.up_to)
            if self.snapshot is not None:
                self.store.write_snapshot(self.up_to, self.snapshot, sync=True)
        except OSError as error:
            # After a failed fsync nobody knows what the disk has: only recovery can tell.
            self.log.take_offline(f"bringing it to the disk failed: {error}")
            raise KafkaError(
                ErrorCode.KAFKA_STORAGE_ERROR, f"{self.log.name} could not be flushed: {error}."
            ) from None
        self.log.flushed(self.up_to, self.truncations)
        return self.log.recovery_point


__all__ = ["AppendOrigin", "AppendResult", "FlushJob", "PartitionLog", "ReopenFacts"]
