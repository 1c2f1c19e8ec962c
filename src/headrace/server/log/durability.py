"""How much of a log is on the disk, and bringing more of it there.

The recovery point is moved only by an fsync that succeeded. A FlushJob is made on the event loop and run in a thread.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass

from headrace.clock import Clock
from headrace.server.log.files import FULL_DISK
from headrace.server.log.life import LogLife
from headrace.server.log.snapshots import encode_snapshot
from headrace.server.log.store import LogStore
from headrace.wire.errors import ErrorCode, KafkaError


class Durability:
    __slots__ = ("_clock", "last_flush_ms", "life", "recovery_point")

    def __init__(self, life: LogLife, clock: Clock, recovery_point: int) -> None:
        self.life = life
        self._clock = clock
        self.recovery_point = recovery_point
        """Everything before this offset is on the disk."""
        self.last_flush_ms = clock.now_ms()

    def prepare_flush(self, store: LogStore, log_end_offset: int, *, snapshot: bool) -> FlushJob:
        """On the event loop: note what a flush covers. With `snapshot` it saves the producers' state too."""
        with contextlib.suppress(OSError):
            # On a full disk the index is written later; only the log itself matters here.
            store.active.write_indexes()
        data = encode_snapshot(store.producers.entries.values()) if snapshot else None
        return FlushJob(self, store, log_end_offset, self.life.truncations, data)

    def flushed(self, up_to: int, truncations: int) -> None:
        """Record a successful flush; ignored if the log was truncated meanwhile."""
        if truncations == self.life.truncations and up_to > self.recovery_point:
            self.recovery_point = up_to
        self.last_flush_ms = self._clock.now_ms()

    def moved(self, recovery_point: int) -> None:
        """Other files hold the log now."""
        self.recovery_point = recovery_point

    def log_ends_at(self, offset: int) -> None:
        """The log was truncated: nothing from here on is on disk."""
        self.recovery_point = min(self.recovery_point, offset)


@dataclass(slots=True)
class FlushJob:
    """What a thread brings to the disk, as of when it was asked for."""

    durability: Durability
    store: LogStore
    up_to: int
    truncations: int
    snapshot: bytes | None

    def run(self) -> int:
        """Returns the new recovery point."""
        life = self.durability.life
        try:
            if self.up_to > self.durability.recovery_point:
                self.store.sync(self.up_to)
                self.store.sync_name()
            self._write_snapshot()
        except OSError as error:
            if life.store is self.store:
                # After a failed fsync the disk's contents are unknown until recovery reads them.
                life.fail(f"flushing failed: {error}")
            raise KafkaError(
                ErrorCode.KAFKA_STORAGE_ERROR, f"{life.name} could not be flushed: {error}."
            ) from None
        self.durability.flushed(self.up_to, self.truncations)
        return self.durability.recovery_point

    def _write_snapshot(self) -> None:
        if self.snapshot is None:
            return
        try:
            self.store.snapshots.write_durably(
                self.up_to, self.snapshot, self.store.segments.bases, self._is_current
            )
        except OSError as error:
            if error.errno not in FULL_DISK:  # Without it recovery only has to read further back.
                raise

    def _is_current(self) -> bool:
        """Whether the log was not truncated since; after a truncation it may have reached this offset again with other records."""
        return self.durability.life.truncations == self.truncations
