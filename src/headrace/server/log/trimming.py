"""Removing records: from the end to follow a leader, from the start by DeleteRecords and retention."""

from __future__ import annotations

from headrace.server.log import retention
from headrace.server.log.reader import LogReader
from headrace.server.log.store import LogStore
from headrace.wire.errors import ErrorCode, KafkaError


class TrimmedLog(LogReader):
    __slots__ = ()

    def truncate_to(self, offset: int) -> None:
        """Remove records from `offset` on; the log ends at the start of the batch that held it."""
        store = self._store or self.load()
        try:
            if offset >= self.log_end_offset:
                # An epoch in which this replica led and wrote nothing is not part of the history either: a follower
                # that goes on naming it is told of the divergence again and again.
                store.epochs.truncate_from_end(self.log_end_offset)
                return
            self.truncations += 1
            if offset < self.log_start_offset:
                self.truncate_fully_and_start_at(max(offset, 0))
                return
            end_offset = store.truncate_to(offset, self.log_start_offset)
            if end_offset < self.log_start_offset:
                end_offset = self.log_start_offset
                store.start_over(end_offset)
        except OSError as error:
            raise self.fail(f"it cannot be truncated: {error}") from None
        self.log_end_offset = end_offset
        self._after_truncation(store)

    def truncate_fully_and_start_at(self, offset: int) -> None:
        """Remove everything; the next record gets `offset`."""
        store = self._store or self.load()
        self.truncations += 1
        try:
            store.start_over(offset)
        except OSError as error:
            raise self.fail(f"it cannot be truncated: {error}") from None
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
                raise self.write_failed(store, error) from None

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
            delay_ms = self.config.file_delete_delay_ms
            finished = [segment for segment in old if segment is not store.active]
            if finished:
                # The log starts later before they go: one that cannot be renamed now is left for the next time.
                self.advance_log_start(store.segments[len(finished)].base_offset)
                store.remove_first(finished, delay_ms)
            if old[-1] is store.active:
                store.replace_active(self.log_end_offset, self.config, delay_ms)
                self._roll_timestamp = -2
                self.advance_log_start(store.segments.first.base_offset)
        except OSError as error:
            raise self.write_failed(store, error) from None
        return len(old)
