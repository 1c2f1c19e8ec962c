"""One partition's log as its leader or follower uses it.

PartitionLog owns the offsets at which the log begins, ends and is committed. Its parts own the rest: its life and the files
that are open (`life`, `store`), how batches are checked and written (`appending`), and how much is on the disk
(`durability`). It belongs to the event loop and never awaits. Only a FlushJob's `run`, `reopen`, and reads and lookups that may
wait for the disk run in a thread.
"""

from __future__ import annotations

import logging
import os
import uuid
from collections.abc import Callable
from typing import TypeVar, TypeVarTuple

from headrace.server.log import lookup, retention
from headrace.server.log.appending import Appender, AppendResult
from headrace.server.log.config import LogConfig
from headrace.server.log.durability import Durability, FlushJob
from headrace.server.log.environment import Environment
from headrace.server.log.life import LogLife, ReopenFacts, State
from headrace.server.log.lookup import TimestampOffset
from headrace.server.log.producers import AppendOrigin, ProducerEntry, VerificationGuard
from headrace.server.log.reading import BeforeFirstSegment, aborted_between, find_slice
from headrace.server.log.recovery import load_log
from headrace.server.log.segment import ROLL_NOT_KNOWN
from headrace.server.log.segments import SegmentView
from headrace.server.log.slice import LogSlice
from headrace.server.log.store import LogStore
from headrace.server.log.transaction_index import AbortedTransaction
from headrace.wire.batch import NO_TIMESTAMP
from headrace.wire.errors import ErrorCode, KafkaError

logger = logging.getLogger(__name__)

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


class PartitionLog:
    __slots__ = (
        "_appender",
        "_durability",
        "_life",
        "config",
        "environment",
        "high_watermark",
        "log_end_offset",
        "log_start_offset",
        "partition",
        "topic",
        "topic_id",
        "was_compacted",
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
        self.topic = topic
        self.partition = partition
        self.topic_id = topic_id
        self.log_start_offset = facts.log_start_offset
        self.log_end_offset = facts.end[0] if facts.end else facts.recovery_point
        self.high_watermark = facts.high_watermark
        """Consumers, retention and compaction stop here; see `set_high_watermark`."""
        self.was_compacted = False
        """Compaction has left gaps between segments, or may have: recovery must not take them for damage."""
        self._life = LogLife(environment, directory, f"{topic}-{partition}", facts)
        self._durability = Durability(self._life, environment.clock, facts.recovery_point)
        self.update_config(config)

    @property
    def name(self) -> str:
        return self._life.name

    @property
    def directory(self) -> str:
        return self._life.directory

    def update_config(self, config: LogConfig) -> None:
        self.config = config
        self._appender = Appender(self.environment, self._life, config)
        if self._life.store is not None:
            self._life.store.active.roll_timestamp = ROLL_NOT_KNOWN

    # Life

    def load(self) -> LogStore:
        """Open the directory if that has not happened yet."""
        life = self._life
        if life.store is not None:
            return life.store
        life.check_usable()
        with life.opening:
            if life.store is not None:
                return life.store
            life.check_usable()
            return self._open()

    def reopen(self) -> None:
        """Bring an offline log back through recovery; KAFKA_STORAGE_ERROR when the disk still refuses, or the partition is
        gone. May run in a thread: until it has succeeded, all other calls are refused."""
        life = self._life
        with life.opening:
            if life.state is State.RETIRED:
                life.check_usable()
            if life.state is not State.OFFLINE:
                return
            self._open()
        logger.info("%s is back online with end offset %d.", self.name, self.log_end_offset)

    def _open(self) -> LogStore:
        life = self._life
        try:
            loaded = load_log(
                self.environment,
                life.directory,
                life.name,
                self.config,
                clean=life.state is State.CLOSED,
                recovery_point=self.recovery_point,
                log_start_offset=self.log_start_offset,
                known_end=life.known_end,
                distrust_cache=life.state is State.OFFLINE,
                gaps=self.was_compacted or self.config.compact,
            )
        except OSError as error:
            raise life.read_failed(error) from None
        store = LogStore(self.environment, life.directory, loaded)
        self._set_bounds(store, loaded.log_start_offset, loaded.log_end_offset)
        life.opened(store)
        return store

    def _set_bounds(self, store: LogStore, log_start_offset: int, log_end_offset: int) -> None:
        """The log's start and end have changed: clamp everything derived from them."""
        self.log_start_offset = log_start_offset
        self.log_end_offset = log_end_offset
        self._durability.log_ends_at(log_end_offset)
        self.high_watermark = min(max(self.high_watermark, log_start_offset), log_end_offset)
        store.producers.on_high_watermark(self.high_watermark)

    @property
    def is_loaded(self) -> bool:
        return self._life.store is not None

    @property
    def offline_reason(self) -> str | None:
        return self._life.reason

    @property
    def truncations(self) -> int:
        """How often records were removed from the end, or may have been by a failure."""
        return self._life.truncations

    def fail(self, reason: str) -> KafkaError:
        """Take the log offline; returns the error to raise."""
        return self._life.fail(reason)

    def take_offline(self, reason: str) -> None:
        """Refuse everything from now on, until `reopen`."""
        self._life.fail(reason)

    def retire(self, reason: str) -> None:
        """Refuse everything from now on, for good."""
        self._life.retire(reason)

    def retire_to(self, directory: str, reason: str) -> None:
        """Refuse everything from now on and rename the directory. A thread that reads may go on; one whose write fails
        after this does not take the log offline."""
        store = self._life.retire(reason)
        self.environment.files.rename(self._life.directory, directory)
        self._life.directory = directory
        if store is not None:
            store.move(directory)

    def take_over(self, copy: PartitionLog, aside: str, directory: str) -> None:
        """Go on with the files of a copy of this log, in which nothing is missing, under the name `directory`; its own files
        go to `aside`, where threads that are reading find them. KAFKA_STORAGE_ERROR when it stays where it is."""
        life, files = self._life, self.environment.files
        try:
            old, new = self.load(), copy.load()
            new.take_epochs_of(old)
            files.rename(life.directory, aside)
            try:
                files.sync_directory(os.path.dirname(aside))
                files.rename(copy.directory, directory)
            except OSError:
                files.rename(aside, life.directory)
                raise
        except OSError as error:
            raise self.storage_error(f"it cannot be put into {directory}: {error}") from None
        new.take_producers_of(old, self.log_end_offset)
        old.release()
        old.move(aside)
        new.move(directory)
        self.environment.rolled.discard(life.directory)
        self.environment.rolled.add(directory)
        life.moved(directory, new)
        self._durability.moved(copy.recovery_point)
        self.was_compacted = False  # Compaction says again, in the new directory, that there may be gaps.

    def storage_error(self, reason: str) -> KafkaError:
        return self._life.storage_error(reason)

    def close(self) -> ReopenFacts:
        """Flush and close everything; returns what a quick start needs."""
        life = self._life
        store = life.store
        if store is not None:
            try:
                store.finish(self.log_start_offset, self.log_end_offset)
            except OSError as error:
                raise life.fail(f"it cannot be closed: {error}") from None
            self._durability.recovery_point = self.log_end_offset
            life.closed((self.log_end_offset, store.active.size))
        return ReopenFacts(
            life.state is State.CLOSED,
            self.recovery_point,
            self.log_start_offset,
            self.high_watermark,
            life.known_end,
        )

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
        store = self._life.store or self.load()
        result = self._appender.append_as_leader(
            store, records, self.log_start_offset, self.log_end_offset, leader_epoch, origin, guard
        )
        if not result.duplicate:
            self.log_end_offset = result.last_offset + 1
        return result

    def append_as_follower(self, records: memoryview) -> AppendResult | None:
        """Write batches as the leader has them, offsets and epochs included; a cut last batch is left out.

        None when there is no whole batch. OFFSET_OUT_OF_RANGE when they do not continue this log.
        """
        store, appender = self.load(), self._appender
        headers = appender.batches_after(records, self.log_end_offset)
        if not headers:
            return None
        position = 0
        for span in appender.spans(store, headers):
            size = sum(header.size for header in span)
            written = records[position : position + size]
            appender.write_span(store, written, span, self.log_end_offset)
            self.log_end_offset = span[-1].next_offset
            appender.replay_span(store, written, span)
            position += size
        return AppendResult(
            headers[0].base_offset, self.log_end_offset - 1, NO_TIMESTAMP, self.log_start_offset
        )

    def roll(self) -> None:
        """Begin a new segment now, unless the active one is empty."""
        store = self.load()
        if store.active.size:
            try:
                self._appender.roll(store, self.log_end_offset)
            except OSError as error:
                raise self._life.write_failed(store, error) from None

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
        store = self._life.store or self.load()
        end_offset = self.log_end_offset
        if not self.log_start_offset <= offset <= end_offset:
            raise self._out_of_range(offset)
        upper = end_offset if up_to_offset is None or up_to_offset > end_offset else up_to_offset
        if offset >= upper:
            return LogSlice(None, 0, 0, offset, offset)
        # In a thread (not `nowait`) the log may have grown since its end was read.
        up_to_end = nowait and upper == end_offset
        try:
            return store.look(find_slice, offset, upper, max_bytes, min_one_batch, nowait, up_to_end)
        except BlockingIOError:
            raise
        except OSError as error:
            raise self._life.read_failed(error) from None
        except BeforeFirstSegment:
            raise self._out_of_range(offset) from None

    def _look(self, into: Callable[[SegmentView, *Ts], T], *arguments: *Ts) -> T:
        """Look something up in the segments; an error of the disk takes the log offline."""
        try:
            return self.load().look(into, *arguments)
        except OSError as error:
            raise self._life.read_failed(error) from None

    def _out_of_range(self, offset: int) -> KafkaError:
        return KafkaError(
            ErrorCode.OFFSET_OUT_OF_RANGE,
            f"Offset {offset} of {self.name} is outside {self.log_start_offset}…{self.log_end_offset}.",
        )

    # Offsets

    def set_high_watermark(self, offset: int) -> None:
        """Only the owner of the replica's role calls this."""
        if offset < self.log_start_offset:
            offset = self.log_start_offset
        elif offset > self.log_end_offset:
            offset = self.log_end_offset
        self.high_watermark = offset
        store = self._life.store
        if store is not None:
            store.producers.on_high_watermark(offset)

    @property
    def last_stable_offset(self) -> int:
        """Every transaction below it is decided: a read_committed consumer may read up to here."""
        unstable = (self._life.store or self.load()).producers.first_unstable_offset
        if unstable is None or unstable > self.high_watermark:
            return self.high_watermark
        return max(unstable, self.log_start_offset)

    @property
    def size(self) -> int:
        """Bytes of all segments."""
        return self.load().segments.size

    def earliest_offset(self) -> TimestampOffset:
        epoch = self.load().epochs.epoch_for(self.log_start_offset)
        return TimestampOffset(NO_TIMESTAMP, self.log_start_offset, epoch)

    def latest_offset(self) -> TimestampOffset:
        epoch = self.load().epochs.latest
        return TimestampOffset(NO_TIMESTAMP, self.log_end_offset, epoch)

    def offset_for_timestamp(self, timestamp: int) -> TimestampOffset | None:
        """The first record not before `timestamp`. It may read from the disk: call it in a thread."""
        return self._look(lookup.first_at_or_after, timestamp, self.log_start_offset)

    def max_timestamp_offset(self) -> TimestampOffset | None:
        """The record with the largest timestamp. It may read from the disk: call it in a thread."""
        return self._look(lookup.latest_timestamp)

    # Leader epochs

    @property
    def latest_epoch(self) -> int:
        """-1 when the log has never had a leader."""
        return self.load().epochs.latest

    def begin_epoch(self, epoch: int) -> None:
        """A leader epoch begins at the end of the log."""
        self.load().epochs.begin(epoch, self.log_end_offset)

    def end_offset_for(self, epoch: int) -> tuple[int, int]:
        """The largest epoch not above `epoch` and where it ended; (-1, -1) when that is not known."""
        return self.load().epochs.end_offset_for(epoch, self.log_end_offset)

    def epoch_for(self, offset: int) -> int:
        return self.load().epochs.epoch_for(offset)

    # Producers and transactions

    @property
    def active_producers(self) -> list[ProducerEntry]:
        return list(self.load().producers.entries.values())

    def has_ongoing_transaction(self, producer_id: int, epoch: int) -> bool:
        return self.load().producers.has_ongoing_transaction(producer_id, epoch)

    def check_marker_of_its_own_epoch(self, producer_id: int, epoch: int) -> None:
        self.load().producers.check_marker_of_its_own_epoch(producer_id, epoch)

    def is_verified(self, producer_id: int, epoch: int, guard: VerificationGuard | None) -> bool:
        """Whether the coordinator's answer obtained under `guard` still holds: no marker was written meanwhile."""
        return self.load().producers.is_verified(producer_id, epoch, guard)

    def start_verification(
        self, producer_id: int, sequence: int, epoch: int, *, supports_epoch_bump: bool = False
    ) -> VerificationGuard | None:
        """What to append a transactional batch with once its coordinator has agreed; None when none is
        needed."""
        producers, now_ms = self.load().producers, self.environment.clock.now_ms()
        return producers.start_verification(producer_id, sequence, epoch, supports_epoch_bump, now_ms)

    def aborted_transactions(self, first: int, last: int) -> list[AbortedTransaction]:
        """Transactions aborted that touch offsets from `first` to before `last`."""
        return self._look(aborted_between, first, last)

    def expire_producers(self) -> None:
        store = self._life.store
        if store is not None:
            now_ms = self.environment.clock.now_ms()
            store.producers.expire(now_ms, self.environment.producer_id_expiration_ms)

    # Removing records: from the end to follow a leader, from the start by DeleteRecords and retention

    def truncate_to(self, offset: int) -> None:
        """Remove records from `offset` on; the log ends at the start of the batch that held it."""
        store = self.load()
        if offset < self.log_start_offset:
            self.truncate_fully_and_start_at(max(offset, 0))
            return
        try:
            if offset >= self.log_end_offset:
                # An epoch in which this replica led and wrote nothing is not part of the history either: a follower
                # that kept naming it would get the same divergence in every reply.
                store.epochs.truncate_from_end(self.log_end_offset)
                return
            self._life.truncations += 1
            end_offset = store.truncate_to(offset, self.log_start_offset)
            if end_offset < self.log_start_offset:
                end_offset = self.log_start_offset
                store.start_over(end_offset)
        except OSError as error:
            raise self._life.fail(f"it cannot be truncated: {error}") from None
        self._set_bounds(store, self.log_start_offset, end_offset)

    def truncate_fully_and_start_at(self, offset: int) -> None:
        """Remove everything; the next record gets `offset`."""
        store = self.load()
        self._life.truncations += 1
        try:
            store.start_over(offset)
        except OSError as error:
            raise self._life.fail(f"it cannot be truncated: {error}") from None
        self._set_bounds(store, offset, offset)

    def delete_records(self, offset: int) -> None:
        """Let the log start at `offset` (DeleteRecords). Retention removes the files later."""
        self.load()
        if offset > self.high_watermark:
            raise KafkaError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"Records of {self.name} can be deleted up to its high watermark {self.high_watermark}, "
                f"not to {offset}.",
            )
        self.advance_log_start(offset)

    def advance_log_start(self, offset: int) -> None:
        """Follow the leader's log start offset, or this replica's own retention."""
        store = self.load()
        if offset > self.log_start_offset:
            self.log_start_offset = offset
            if self.high_watermark < offset:
                self.high_watermark = min(offset, self.log_end_offset)
            try:
                store.epochs.truncate_from_start(offset)
            except OSError as error:
                raise self._life.write_failed(store, error) from None

    def delete_old_segments(self) -> int:
        """Apply retention; returns how many segments were removed."""
        store, config = self.load(), self.config
        now_ms = self.environment.clock.now_ms()
        try:
            old = retention.deletable(
                store.segments,
                config,
                now_ms,
                self.log_start_offset,
                self.log_end_offset,
                self.high_watermark,
            )
            if not old:
                return 0
            delay_ms = config.file_delete_delay_ms
            finished = [segment for segment in old if segment is not store.active]
            if finished:
                # Advance the log start first: a segment that cannot be renamed now is left for the next time.
                self.advance_log_start(store.segments[len(finished)].base_offset)
                store.remove_first(finished, delay_ms)
            if old[-1] is store.active:
                store.replace_active(self.log_end_offset, config, delay_ms)
                self.advance_log_start(store.segments.first.base_offset)
        except OSError as error:
            raise self._life.write_failed(store, error) from None
        return len(old)

    # Durability

    @property
    def recovery_point(self) -> int:
        """Everything before this offset is on the disk."""
        return self._durability.recovery_point

    @property
    def last_flush_ms(self) -> int:
        return self._durability.last_flush_ms

    @property
    def must_flush(self) -> bool:
        """flush.messages asks that what was appended reach the disk before it is acknowledged."""
        return self.log_end_offset - self.recovery_point >= self.config.flush_messages

    @property
    def wants_snapshot(self) -> bool:
        """The log was flushed inside its active segment, so that recovery would have to read back to the
        segment's start to know its producers."""
        store = self._life.store
        return store is not None and store.active.base_offset < self.recovery_point < self.log_end_offset

    def prepare_flush(self, *, snapshot: bool = False) -> FlushJob:
        """On the event loop: note what a flush covers. With `snapshot`, the producers' state is saved with
        it, so that recovery from this point need not look further back."""
        return self._durability.prepare_flush(self.load(), self.log_end_offset, snapshot=snapshot)

    def flush(self) -> int:
        """Flush everything; returns the new recovery point. May run in a thread."""
        return self.prepare_flush().run()


__all__ = ["AppendOrigin", "AppendResult", "PartitionLog", "ReopenFacts"]
