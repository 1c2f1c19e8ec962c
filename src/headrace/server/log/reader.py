"""What one asks of a partition's log: its records, its offsets, its epochs, its producers."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from headrace.server.log import lookup
from headrace.server.log.lifecycle import LogLifecycle
from headrace.server.log.lookup import TimestampOffset
from headrace.server.log.producers import (
    ProducerEntry,
    VerificationGuard,
)
from headrace.server.log.segments import SegmentView
from headrace.server.log.slice import LogSlice
from headrace.server.log.store import LogStore
from headrace.server.log.transaction_index import AbortedTransaction
from headrace.wire.batch import (
    NO_TIMESTAMP,
)
from headrace.wire.errors import ErrorCode, KafkaError

T = TypeVar("T")


class LogReader(LogLifecycle):
    __slots__ = ()

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
            raise self._out_of_range(offset)
        upper = end_offset if up_to_offset is None or up_to_offset > end_offset else up_to_offset
        if offset >= upper:
            return LogSlice(None, 0, 0, offset, offset)
        return self._look(
            store, lambda view: self._find(view, offset, upper, max_bytes, min_one_batch, nowait)
        )

    def _look(self, store: LogStore, into: Callable[[SegmentView], T]) -> T:
        """Look something up in the segments; an error of the disk takes the log offline."""
        while True:
            swaps, view = store.swaps, store.segments.view
            try:
                found = into(view)
            except BlockingIOError:
                raise
            except Exception as error:
                # A thread may look into a segment that is being removed, replaced or cut: then look again, at those there are.
                if store.unswapped_since(swaps) and (
                    view is store.segments.view or not isinstance(error, FileNotFoundError)
                ):
                    if isinstance(error, OSError):
                        raise self.read_failed(error) from None
                    raise
            else:
                if store.unswapped_since(swaps):
                    return found

    def _find(
        self, view: SegmentView, offset: int, upper: int, max_bytes: int, min_one_batch: bool, nowait: bool
    ) -> LogSlice:
        if offset < view.bases[0]:
            raise self._out_of_range(offset)  # In a thread, retention may be just about to say so.
        number = view.index_of(offset)
        segment = view.segments[number]
        location = segment.locate(offset, nowait=nowait)
        while location is None:  # Compaction left nothing at the end of this segment.
            number += 1
            if number == len(view.segments):
                return LogSlice(None, 0, 0, offset, offset)
            segment = view.segments[number]
            location = segment.locate(offset, nowait=nowait)
        position = location.position
        end = segment.size
        bound = view.end_of(number, upper)
        is_active = number == len(view.segments) - 1
        if upper < bound or (is_active and (upper < self.log_end_offset or not nowait)):
            # (In a thread the log may have grown since `upper` was taken.)
            bound = upper
            first_above = segment.locate(upper, nowait=nowait)
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
        size = end - position
        held = location.held if size == location.size else None
        return LogSlice(segment.handle(), position, size, location.base_offset, bound, held)

    def _out_of_range(self, offset: int) -> KafkaError:
        return KafkaError(
            ErrorCode.OFFSET_OUT_OF_RANGE,
            f"Offset {offset} of {self.name} is outside {self.log_start_offset}…{self.log_end_offset}.",
        )

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
        return self._look(
            store, lambda view: lookup.first_at_or_after(view.segments, timestamp, self.log_start_offset)
        )

    def max_timestamp_offset(self) -> TimestampOffset | None:
        """The record with the largest timestamp. It may read from the disk: call it in a thread."""
        store = self._store or self.load()
        return self._look(store, lambda view: lookup.latest_timestamp(view.segments))

    # Leader epochs

    @property
    def latest_epoch(self) -> int:
        """-1 when the log has never had a leader."""
        return (self._store or self.load()).epochs.latest

    def begin_epoch(self, epoch: int) -> None:
        """This log's leader begins its term at the end of the log."""
        (self._store or self.load()).epochs.begin(epoch, self.log_end_offset)

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

    def is_verified(self, producer_id: int, epoch: int, guard: VerificationGuard | None) -> bool:
        """Whether what the coordinator was asked under `guard` still holds: no marker has come meanwhile."""
        return (self._store or self.load()).producers.is_verified(producer_id, epoch, guard)

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

        def collect(view: SegmentView) -> list[AbortedTransaction]:
            found: list[AbortedTransaction] = []
            for segment in view.segments[view.index_of(first) :]:
                if segment.has_aborted_transactions:
                    more, complete = segment.transaction_index.collect(first, last)
                    found += more
                    if complete:
                        break
            return found

        return self._look(store, collect)

    def expire_producers(self) -> None:
        if self._store is not None:
            now_ms = self.environment.clock.now_ms()
            self._store.producers.expire(now_ms, self.environment.producer_id_expiration_ms)
