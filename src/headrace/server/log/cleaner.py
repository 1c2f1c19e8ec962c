"""Compaction as the broker sees it: which log needs it most, what the cleaner process is asked, and the swap.

The process works on segments that no longer change, so nothing waits for it. Each new segment goes into service as soon as
it is ready, provided that all its source segments are still there; otherwise the new files are removed and the log waits for
its next turn.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import sys
from collections.abc import AsyncGenerator, Callable
from concurrent.futures import Executor
from contextlib import aclosing
from dataclasses import dataclass

from headrace.server.log.candidates import Candidate, examine
from headrace.server.log.checkpoints import CLEANER, TopicPartition, read_checkpoint, write_checkpoint
from headrace.server.log.cleaner_worker import CleanerProcess
from headrace.server.log.cleaning_task import (
    Answer,
    CleanedSegment,
    CleaningEnd,
    CleaningTask,
    SourceSegment,
)
from headrace.server.log.directory import LogDirectory
from headrace.server.log.files import Files
from headrace.server.log.leftovers import CLEANED, SWAP, offset_of
from headrace.server.log.manager import LogManager
from headrace.server.log.partition import PartitionLog
from headrace.server.log.segment import Segment
from headrace.server.log.store import LogStore
from headrace.wire.errors import KafkaError

logger = logging.getLogger(__name__)

_KEEP_IDLE_SECONDS = 60
"""How long the process waits for the next task: starting a process often takes longer than a task."""


@dataclass(slots=True, frozen=True)
class CleanerSettings:
    """Kafka's settings, dots turned into underscores, with Kafka's defaults."""

    log_cleaner_enable: bool = True
    log_cleaner_backoff_ms: int = 15_000
    log_cleaner_dedupe_buffer_size: int = 134_217_728
    log_cleaner_io_buffer_load_factor: float = 0.9
    log_cleaner_io_max_bytes_per_second: float = sys.float_info.max


Worker = Callable[[CleaningTask], AsyncGenerator[Answer, None]]


class LogCleaner:
    def __init__(
        self,
        manager: LogManager,
        executor: Executor,
        settings: CleanerSettings | None = None,
        worker: Worker | None = None,
    ) -> None:
        self._manager = manager
        self._executor = executor
        self.settings = settings or CleanerSettings()
        """May be replaced at any time; a compaction in progress keeps the settings it started with."""
        self._clock = manager.environment.clock
        self._process = CleanerProcess()
        self._worker: Worker = worker or self._process.clean
        self._clean_until: dict[PartitionLog, tuple[int, int]] = {}
        """Up to where each log is compacted, and its count of truncations at that time. By the log and not by its name: a new
        topic may have the same one."""
        self._written: dict[str, dict[TopicPartition, int]] = {}
        """The contents of each directory's checkpoint."""
        self._one_at_a_time = asyncio.Lock()
        self._put_off: dict[PartitionLog, int] = {}
        """Logs that could not be compacted, and the offset up to which that was tried."""
        for directory in manager.online_directories:
            known = read_checkpoint(directory.files, directory.path, CLEANER)
            self._written[directory.path] = known
            for key, offset in known.items():
                log = manager.logs.get(key)
                if log is not None:
                    self._clean_until[log] = (offset, log.truncations)

    async def run(self) -> None:
        """Compact logs that need it, until cancelled."""
        idle = 0.0
        try:
            while True:
                backoff = self.settings.log_cleaner_backoff_ms / 1000
                await self._clock.sleep(backoff)
                idle += backoff
                if self.settings.log_cleaner_enable:
                    try:
                        while await self.clean_one():
                            idle = 0.0
                    except Exception:
                        logger.exception("Compaction failed; it is tried again.")
                if idle >= _KEEP_IDLE_SECONDS:
                    await self._process.stop()
        finally:
            await self._process.stop()

    async def clean_one(self) -> bool:
        """Compact the log that needs it most; False when none does. Concurrent callers take turns."""
        async with self._one_at_a_time:
            return await self._clean_dirtiest()

    async def _clean_dirtiest(self) -> bool:
        for known in (self._clean_until, self._put_off):
            for gone in [log for log in known if not self._manager.holds(log)]:
                del known[gone]
        for directory in self._manager.online_directories:
            await self._checkpoint(directory)  # without the logs that are gone
        candidate = await self._dirtiest()
        if candidate is None:
            return False
        log = candidate.log
        clean_until = await self._compact(candidate)
        if clean_until is not None:
            self._clean_until[log] = (clean_until, log.truncations)
            await self._checkpoint(self._manager.directory_of(log))
        else:
            # It waits until more of it can be compacted, so that other logs get their turn.
            self._put_off[log] = candidate.upper
        return True

    async def _compact(self, candidate: Candidate) -> int | None:
        """Have a log compacted; returns the offset reached, or None when the compaction ended early."""
        log = candidate.log
        truncations = log.truncations
        task = self._task(candidate)
        async with aclosing(self._worker(task)) as answers:
            async for answer in answers:
                if isinstance(answer, CleaningEnd):
                    if answer.error is None:
                        return answer.clean_until
                    if self._manager.holds(log):
                        logger.warning("%s was not compacted: %s.", log.name, answer.error)
                    break
                await self._announce_gaps(candidate)
                if not await self._swap(log, truncations, answer):
                    logger.info(
                        "%s changed while it was being compacted; it waits for its next turn.", log.name
                    )
                    break
        await asyncio.get_running_loop().run_in_executor(
            self._executor, _remove_cleaned, self._manager.environment.files, task.directory
        )
        return None

    async def _announce_gaps(self, candidate: Candidate) -> None:
        """A compacted log may have gaps. That fact must be on disk before the gaps are, because after a crash the log is
        recovered before the topic's settings are known."""
        log = candidate.log
        if not log.was_compacted and self._manager.holds(log):
            self._clean_until[log] = (candidate.first_dirty_offset, log.truncations)
            log.was_compacted = await self._checkpoint(self._manager.directory_of(log))

    # Choosing

    async def _dirtiest(self) -> Candidate | None:
        candidates = []
        for log in list(self._manager.logs.values()):
            if not log.config.compact or log.offline_reason is not None or self._is_copied(log):
                continue
            try:
                candidate = examine(log, self._first_dirty(log), self._clock.now_ms())
            except KafkaError as error:
                logger.warning("%s", error.message)
                continue
            if candidate is not None and self._put_off.get(log) != candidate.upper:
                candidates.append(candidate)
            await self._clock.sleep(0)
        due = [candidate for candidate in candidates if candidate.is_due]
        return max(due, key=lambda candidate: candidate.dirty_ratio, default=None)

    def _is_copied(self, log: PartitionLog) -> bool:
        """A log on its way to another directory waits, as in Kafka: the copy may have an old record already, and would never get
        the tombstone for it, if that were removed now."""
        return self._manager.futures.get(log.topic, log.partition) is not None

    def _first_dirty(self, log: PartitionLog) -> int:
        offset, truncations = self._clean_until.get(log, (0, log.truncations))
        if truncations != log.truncations or offset > log.log_end_offset:
            return log.log_start_offset
        return max(offset, log.log_start_offset)

    # Asking

    def _task(self, candidate: Candidate) -> CleaningTask:
        log = candidate.log
        store, config = log.load(), log.config
        segments = store.segments
        return CleaningTask(
            directory=log.directory,
            first_dirty_offset=candidate.first_dirty_offset,
            upper_offset=candidate.upper,
            now_ms=self._clock.now_ms(),
            delete_retention_ms=config.delete_retention_ms,
            segment_bytes=config.segment_bytes,
            segment_index_bytes=config.segment_index_bytes,
            index_interval_bytes=config.index_interval_bytes,
            map_bytes=int(
                self.settings.log_cleaner_dedupe_buffer_size * self.settings.log_cleaner_io_buffer_load_factor
            ),
            max_bytes_per_second=self.settings.log_cleaner_io_max_bytes_per_second,
            segments=[
                SourceSegment(
                    segment.base_offset,
                    segments.end_of(number, log.log_end_offset),
                    segment.size,
                    segment.offset_index.written * 8,
                    segment.time_index.written * 12,
                )
                for number, segment in enumerate(segments)
                if segment.base_offset < candidate.upper
            ],
            transaction_indexes=[
                (segment.base_offset, segment.transaction_index.size)
                for segment in segments
                if segment.has_aborted_transactions
            ],
            last_records=[
                (entry.producer_id, entry.last_offset, entry.epoch)
                for entry in store.producers.entries.values()
            ],
        )

    # Taking what it makes

    async def _swap(self, log: PartitionLog, truncations: int, cleaned: CleanedSegment) -> bool:
        """Replace source segments by the new one; False when the sources have changed meanwhile."""
        if self._sources(log, truncations, cleaned) is None:
            return False
        segment = self._open(log, cleaned)
        try:
            segment.rename(SWAP)
            # The new files' names must be on disk before the old files are renamed.
            await asyncio.get_running_loop().run_in_executor(
                self._executor, self._manager.environment.files.sync_directory, log.directory
            )
            found = self._sources(log, truncations, cleaned)
            if found is None:
                segment.remove_files()
                return False
            store, sources = found
            store.replace(sources, segment, log.config.file_delete_delay_ms)
        except OSError as error:
            if log.truncations == truncations:  # else it has moved to another directory
                log.take_offline(f"a compacted segment cannot be put into service: {error}")
            return False
        return True

    def _sources(
        self, log: PartitionLog, truncations: int, cleaned: CleanedSegment
    ) -> tuple[LogStore, list[Segment]] | None:
        if log.offline_reason is not None or log.truncations != truncations or not log.is_loaded:
            return None
        if self._is_copied(log):
            return None
        if not log.was_compacted:
            return None  # The note that the log may have gaps could not be written.
        store = log.load()
        wanted = set(cleaned.sources)
        sources = [segment for segment in store.segments if segment.base_offset in wanted]
        return (store, sources) if len(sources) == len(wanted) else None

    def _open(self, log: PartitionLog, cleaned: CleanedSegment) -> Segment:
        segment = Segment(
            self._manager.environment,
            log.directory,
            cleaned.base_offset,
            created_ms=self._clock.now_ms(),
            suffix=CLEANED,
            size=cleaned.size,
            offset_index_bytes=cleaned.offset_index_bytes,
            time_index_bytes=cleaned.time_index_bytes,
            transaction_index_bytes=cleaned.transaction_index_bytes,
        )
        segment.synced = True
        return segment

    async def _checkpoint(self, directory: LogDirectory) -> bool:
        """Write the cleaner checkpoint of a directory; returns whether that succeeded."""
        offsets = {
            (log.topic, log.partition): self._clean_until[log][0]
            for log in self._manager.logs_in(directory)
            if log in self._clean_until
        }
        if offsets == self._written.get(directory.path, {}):
            return True
        try:
            await asyncio.get_running_loop().run_in_executor(
                self._executor, write_checkpoint, directory.files, directory.path, CLEANER, offsets
            )
        except OSError as error:
            self._manager.write_failed(directory, error)
            return False
        self._written[directory.path] = offsets
        return True


def _remove_cleaned(files: Files, directory: str) -> None:
    """Remove segments that will not go into service. The path comes from the task: the topic may have been deleted
    meanwhile, and another of the same name may use its directory. Runs in a thread; a restart removes what is left."""
    with contextlib.suppress(OSError):
        for name in files.list(directory):
            if name.endswith(CLEANED) and offset_of(name) is not None:
                files.remove(os.path.join(directory, name))
