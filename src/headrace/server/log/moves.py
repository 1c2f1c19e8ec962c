"""Moves replicas between the data directories of this broker while they are in service.

Each move is a task: it copies the log in pieces, in threads, no faster than replica.alter.log.dirs.io.max.bytes.per.second allows
all of them together, brings the copy to the disk, copies what has come meanwhile, and when nothing is missing lets the log go on
with the copy's files, in one step of the event loop. Reads and writes go on all the time.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable
from concurrent.futures import Executor
from typing import TypeVar, TypeVarTuple

from headrace.server.log.config import LONG_MAX
from headrace.server.log.directory import LogDirectory
from headrace.server.log.futures import FutureLogs
from headrace.server.log.maintenance import LogMaintenance
from headrace.server.log.manager import LogManager
from headrace.server.log.partition import PartitionLog
from headrace.wire.errors import ErrorCode, KafkaError

logger = logging.getLogger(__name__)

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

PIECE = 1 << 20
FLUSH_EVERY = 64 << 20
"""So that a move that is interrupted goes on near where it was."""

LAST_PIECES = 16
"""How many pieces are copied on the event loop at the end; more are left to a thread."""

_LAST_PIECE = 64 << 10
RETRY_SECONDS = 1.0


class DiskMoves:
    def __init__(self, manager: LogManager, maintenance: LogMaintenance, executor: Executor) -> None:
        self._manager = manager
        self._maintenance = maintenance
        self._few_at_once = asyncio.Semaphore(len(manager.directories))
        self._futures: FutureLogs = manager.futures
        self._clock = manager.environment.clock
        self._executor = executor
        self._tasks: dict[PartitionLog, asyncio.Task[None]] = {}
        """By the copy that each of them makes."""
        self._rate = LONG_MAX
        self._free_at = 0.0
        """When the bytes copied so far are paid off at the rate."""

    def resume(self) -> None:
        """Go on with what was under way when the broker stopped."""
        for copy in self._futures.logs.values():
            self._begin(copy)

    def limit(self, rate: int) -> None:
        """Bytes per second from now on, for all moves together."""
        self._rate = rate
        self._free_at = min(self._free_at, self._clock.monotonic())

    async def stop(self) -> None:
        """Leave every move where it is. What threads are copying is finished first, because the logs are closed next."""
        for task in self._tasks.values():
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)

    def move(self, log: PartitionLog, directory: LogDirectory) -> None:
        """Bring a log to another directory, or end its move when that is where it is. KafkaError when it cannot begin."""
        copy = self._futures.get(log.topic, log.partition)
        if copy is not None:
            if copy in self._futures.inside(directory):
                return
            self._manager.stop_moving(log.topic, log.partition)
        if self._manager.directory_of(log) is not directory:
            self._begin(self._futures.create(log, directory))

    def _begin(self, copy: PartitionLog) -> None:
        task = asyncio.get_running_loop().create_task(self._carry_out(copy))
        self._tasks[copy] = task
        task.add_done_callback(lambda _: self._tasks.pop(copy, None))

    async def _carry_out(self, copy: PartitionLog) -> None:
        log = self._manager.get(copy.topic, copy.partition)
        if log is None:
            return
        logger.info("%s moves to %s.", copy.name, os.path.dirname(copy.directory))
        made_from = log.truncations
        while self._futures.holds(copy):
            try:
                if log.offline_reason is None:
                    async with self._few_at_once:
                        if log.truncations != made_from:
                            # It has lost records, or come back from a failure, and may have others at the same offsets.
                            made_from = log.truncations
                            copy.truncate_fully_and_start_at(log.log_start_offset)
                        if await self._copy_all(log, copy):
                            logger.info("%s is in %s now.", log.name, os.path.dirname(log.directory))
                            return
                    continue
            except KafkaError as error:
                if self._futures.holds(copy):
                    logger.warning("%s does not move on: %s", copy.name, error.message)
            except OSError as error:
                logger.warning("%s does not move on: %s.", copy.name, error)
            await self._clock.sleep(RETRY_SECONDS)

    async def _copy_all(self, log: PartitionLog, copy: PartitionLog) -> bool:
        """True when the log is in its new place; False when it has been truncated meanwhile."""
        truncations = log.truncations

        def undisturbed() -> bool:
            return log.truncations == truncations and self._futures.holds(copy)

        while await self._catch_up(log, copy, undisturbed):
            copy.advance_log_start(log.log_start_offset)  # What a crash finds must not begin earlier.
            await self._in_thread(copy.flush)
            await self._checkpoint(copy)
            await self._in_thread(self._futures.mark_finished, copy)
            for _ in range(LAST_PIECES):
                if not undisturbed():
                    break
                if copy.log_end_offset == log.log_end_offset:
                    self._replace(log, copy)
                    await self._in_thread(self._futures.clear_mark, log.directory)
                    return True
                _copy_piece(log, copy, _LAST_PIECE)
            self._futures.mark_unfinished(copy)
        return False

    async def _catch_up(self, log: PartitionLog, copy: PartitionLog, undisturbed: Callable[[], bool]) -> bool:
        """Copy what there is, at the rate allowed; False when the log is no longer what the copy was made of."""
        unflushed = 0
        while undisturbed():
            if copy.log_end_offset == log.log_end_offset:
                return True
            await self._wait_for_its_turn()
            size = await self._in_thread(_copy_piece, log, copy, min(PIECE, max(self._rate, _LAST_PIECE)))
            if self._rate != LONG_MAX:
                self._free_at = max(self._free_at, self._clock.monotonic()) + size / max(self._rate, 1)
            unflushed += size
            if unflushed >= FLUSH_EVERY:
                unflushed = 0
                await self._in_thread(copy.flush)
        return False

    async def _wait_for_its_turn(self) -> None:
        while self._rate == 0:
            await self._clock.sleep(RETRY_SECONDS)
        while (left := self._free_at - self._clock.monotonic()) > 0:
            await self._clock.sleep(min(left, RETRY_SECONDS))

    async def _checkpoint(self, copy: PartitionLog) -> None:
        directory = os.path.dirname(copy.directory)
        await self._maintenance.checkpoint_directory(directory)

    def _replace(self, log: PartitionLog, copy: PartitionLog) -> None:
        copy.advance_log_start(log.log_start_offset)
        if copy.recovery_point < log.recovery_point:
            copy.flush()  # A few last records that the log has on its disk already.
        self._manager.put_into_service(log, copy)

    async def _in_thread(self, call: Callable[[*Ts], T], *arguments: *Ts) -> T:
        """The result of a call in a thread. A task that is cancelled waits for its end, so that nothing is closed meanwhile."""
        running = asyncio.get_running_loop().run_in_executor(self._executor, call, *arguments)
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            await asyncio.wait([running])
            raise


def _copy_piece(log: PartitionLog, copy: PartitionLog, size: int) -> int:
    """Copy the next batches. Only one thread at a time, or the loop, does that for a copy."""
    if copy.log_end_offset < log.log_start_offset:
        copy.truncate_fully_and_start_at(log.log_start_offset)
    try:
        found = log.read(copy.log_end_offset, size)
        if found.first_offset < copy.log_end_offset == copy.log_start_offset:
            # DeleteRecords left the log beginning inside a batch.
            copy.truncate_fully_and_start_at(found.first_offset)
        records = found.read()
        copy.append_as_follower(memoryview(records))
    except KafkaError as error:
        if error.code is not ErrorCode.OFFSET_OUT_OF_RANGE:
            raise
        # The log was truncated, or compacted so that its batches are not those that were copied.
        copy.truncate_fully_and_start_at(log.log_start_offset)
        return 0
    return len(records)
