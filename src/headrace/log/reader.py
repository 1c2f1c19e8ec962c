"""What one asks of a partition's log: its records, its offsets, its epochs, its producers."""

from __future__ import annotations

from headrace.log import lookup
from headrace.log.lifecycle import LogLifecycle
from headrace.log.lookup import TimestampOffset
from headrace.log.producers import (
    ProducerEntry,
    VerificationGuard,
)
from headrace.log.slice import LogSlice
from headrace.log.transaction_index import AbortedTransaction
from headrace.wire.batch import (
    NO_TIMESTAMP,
)
from headrace.wire.errors import ErrorCode, KafkaError


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
            raise self.read_failed(error) from None

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
            raise self.write_failed(store, error) from None

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
