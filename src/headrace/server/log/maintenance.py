"""The background work of a broker's logs: retention, flushes, checkpoints, expiry, emptying the trash.

Each is a call of its own, so that a test can trigger it; `run` schedules them all by the clock. Everything that waits for a
disk runs in a thread, and long lists are processed in steps that yield to the event loop.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial
from typing import ParamSpec, Protocol, TypeVar

from headrace.server.log.checkpoints import (
    HIGH_WATERMARK,
    LOG_START,
    RECOVERY_POINT,
    TopicPartition,
    write_checkpoint,
)
from headrace.server.log.config import LONG_MAX
from headrace.server.log.directory import LogDirectory
from headrace.server.log.environment import remove_for_good
from headrace.server.log.flusher import GroupFlusher
from headrace.server.log.manager import LogManager
from headrace.server.log.partition import PartitionLog
from headrace.wire.errors import KafkaError

P = ParamSpec("P")
T = TypeVar("T")

logger = logging.getLogger(__name__)


_VALUES: Mapping[str, Callable[[PartitionLog], int]] = {
    RECOVERY_POINT: lambda log: log.recovery_point,
    LOG_START: lambda log: log.log_start_offset,
    HIGH_WATERMARK: lambda log: log.high_watermark,
}
"""What each checkpoint says of a log."""


@dataclass(slots=True, frozen=True)
class MaintenanceSettings:
    """Kafka's settings, dots turned into underscores, with Kafka's defaults."""

    log_initial_task_delay_ms: int = 30_000
    log_retention_check_interval_ms: int = 300_000
    log_flush_offset_checkpoint_interval_ms: int = 60_000
    log_flush_start_offset_checkpoint_interval_ms: int = 60_000
    replica_high_watermark_checkpoint_interval_ms: int = 5_000
    producer_id_expiration_check_interval_ms: int = 600_000
    offline_retry_interval_ms: int = 30_000
    """How often a log that went offline is tried again."""


class Reopening(Protocol):
    """Implemented by owners of state derived from a log: recovery may leave the log with less than that state."""

    def reopening(self, log: PartitionLog) -> bool:
        """A failed log is about to be tried again; False postpones that. Until then it refuses everything."""
        ...

    def reopened(self, log: PartitionLog) -> None:
        """The log is back in service."""
        ...


class LogMaintenance:
    def __init__(
        self,
        manager: LogManager,
        flusher: GroupFlusher,
        executor: Executor,
        settings: MaintenanceSettings | None = None,
        observer: Reopening | None = None,
    ) -> None:
        self.manager = manager
        self.settings = settings or MaintenanceSettings()
        self.flusher = flusher
        self._executor = executor
        self._clock = manager.environment.clock
        self._observer = observer
        self._checkpointing = asyncio.Lock()
        """Each checkpoint is one file, written by one thread at a time."""
        self._written: dict[tuple[str, str], dict[TopicPartition, int]] = {}

    async def run(self) -> None:
        """Do everything when it is due, until cancelled."""
        settings = self.settings
        await asyncio.gather(
            self._flush_often(),
            self._every(1_000, self.empty_trash),
            self._soon(settings.log_retention_check_interval_ms, self.apply_retention),
            self._soon(settings.log_flush_offset_checkpoint_interval_ms, self.checkpoint_recovery_points),
            self._soon(settings.log_flush_start_offset_checkpoint_interval_ms, self.checkpoint_log_starts),
            self._every(
                settings.replica_high_watermark_checkpoint_interval_ms, self.checkpoint_high_watermarks
            ),
            self._every(settings.producer_id_expiration_check_interval_ms, self.expire_producers),
            self._every(settings.offline_retry_interval_ms, self.retry_offline),
        )

    async def _soon(self, interval_ms: int, job: Callable[[], Awaitable[None]]) -> None:
        """Run once shortly after startup, since work may have come due while the broker was down, then at every interval."""
        await self._clock.sleep(min(self.settings.log_initial_task_delay_ms, interval_ms) / 1000)
        await self._do(job)
        await self._every(interval_ms, job)

    async def _every(self, interval_ms: int, *jobs: Callable[[], Awaitable[None]]) -> None:
        while True:
            await self._clock.sleep(interval_ms / 1000)
            for job in jobs:
                await self._do(job)

    async def _do(self, job: Callable[[], Awaitable[None]]) -> None:
        """A failure must not affect the other jobs, nor the next turn."""
        try:
            await job()
        except Exception:
            logger.exception("Background work failed: %s", job.__name__)

    async def _flush_often(self) -> None:
        while True:
            shortest = min((log.config.flush_ms for log in self.manager.logs.values()), default=LONG_MAX)
            await self._clock.sleep(min(max(shortest, 10), 1_000) / 1000)
            await self._do(self.flush_due)

    # Retention

    async def apply_retention(self) -> None:
        """Delete the segments whose retention has passed."""
        for log in list(self.manager.logs.values()):
            if log.offline_reason is None:
                try:
                    log.delete_old_segments()
                except KafkaError as error:
                    logger.warning("Retention: %s", error.message)
            await self._clock.sleep(0)

    async def empty_trash(self) -> None:
        """Delete for good what has been out of service for file.delete.delay.ms."""
        environment = self.manager.environment
        due = environment.trash.take_due(self._clock.now_ms())
        if due:
            await self._in_thread(remove_for_good, environment.files, due)

    # Durability

    async def flush_due(self) -> None:
        """Flush logs that began a new segment, and those whose flush.ms has passed."""
        now_ms = self._clock.now_ms()
        rolled, self.manager.environment.rolled = self.manager.environment.rolled, set()
        due = [
            log
            for log in self.manager.logs.values()
            if log.directory in rolled
            or (
                log.config.flush_ms != LONG_MAX
                and log.log_end_offset > log.recovery_point
                and now_ms - log.last_flush_ms >= log.config.flush_ms
            )
        ]
        for log in due:
            if log.offline_reason is None:
                try:
                    await self.flusher.flush_through(log, log.log_end_offset)
                except KafkaError as error:
                    self._flush_failed(log, error)

    def _flush_failed(self, log: PartitionLog, error: KafkaError) -> None:
        """A log that was deleted meanwhile need not be flushed."""
        if self.manager.holds(log):
            logger.error("%s", error.message)

    async def checkpoint_recovery_points(self) -> None:
        """Save how far each log is on the disk, with the producers' state at points inside a segment."""
        for log in list(self.manager.logs.values()):
            if log.wants_snapshot:
                try:
                    await self._in_thread(log.prepare_flush(snapshot=True).run)
                except KafkaError as error:
                    self._flush_failed(log, error)
        await self._checkpoint(RECOVERY_POINT)

    async def checkpoint_log_starts(self) -> None:
        await self._checkpoint(LOG_START)

    async def checkpoint_high_watermarks(self) -> None:
        await self._checkpoint(HIGH_WATERMARK)

    async def checkpoint_directory(self, path: str) -> None:
        """Save all that is known of the logs in one directory, now."""
        for directory in self.manager.online_directories:
            if directory.path == path:
                for name in _VALUES:
                    await self._checkpoint_one(directory, name)

    async def _checkpoint(self, name: str) -> None:
        for directory in self.manager.online_directories:
            await self._checkpoint_one(directory, name)

    async def _checkpoint_one(self, directory: LogDirectory, name: str) -> None:
        value = _VALUES[name]
        async with self._checkpointing:
            offsets = {(log.topic, log.partition): value(log) for log in self.manager.files_in(directory)}
            key = (directory.path, name)
            if self._written.get(key) == offsets:
                return
            try:
                await self._in_thread(write_checkpoint, directory.files, directory.path, name, offsets)
            except OSError as error:
                self.manager.write_failed(directory, error)
            else:
                self._written[key] = offsets

    # Health

    async def expire_producers(self) -> None:
        for log in list(self.manager.logs.values()):
            log.expire_producers()

    async def retry_offline(self) -> None:
        """Retry directories and logs that failed."""
        for directory in self.manager.directories:
            if directory.offline_reason is not None and directory.is_held:
                await self._retry_directory(directory)
        for log in list(self.manager.logs.values()):
            # Retrying the others takes time, and this log may be deleted meanwhile.
            if (
                log.offline_reason is not None
                and self.manager.holds(log)
                and self.manager.directory_of(log).offline_reason is None
            ):
                await self._retry_log(log)

    async def _retry_log(self, log: PartitionLog) -> None:
        if self._observer is not None and not self._observer.reopening(log):
            return
        try:
            await self._in_thread(self.manager.bring_back, log)
        except KafkaError as error:
            logger.warning("%s", error.message)
            return
        if self._observer is not None:
            self._observer.reopened(log)

    async def _retry_directory(self, directory: LogDirectory) -> None:
        try:
            await self._in_thread(directory.probe)
        except OSError as error:
            logger.warning("Data directory %s still fails: %s.", directory.path, error)
        else:
            logger.info("Data directory %s works again.", directory.path)
            directory.offline_reason = None

    async def _in_thread(self, call: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T:
        return await asyncio.get_running_loop().run_in_executor(
            self._executor, partial(call, *arguments, **named)
        )
