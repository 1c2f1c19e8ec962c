"""Group commit: many waiters, one fsync. A log has at most one flush under way; what is appended meanwhile
shares the next one."""

from __future__ import annotations

import asyncio
from concurrent.futures import Executor, Future
from functools import partial

from headrace.server.log.partition import PartitionLog
from headrace.wire.errors import ErrorCode, KafkaError

Waiter = tuple[int, "asyncio.Future[None]"]


class GroupFlusher:
    """Belongs to the event loop; the waiting for the disk happens in the executor's threads."""

    __slots__ = ("_executor", "_waiters")

    def __init__(self, executor: Executor) -> None:
        self._executor = executor
        self._waiters: dict[PartitionLog, list[Waiter]] = {}

    def flush_through(self, log: PartitionLog, offset: int) -> asyncio.Future[None]:
        """Done when everything before `offset` is on disk; fails with KAFKA_STORAGE_ERROR when it never will be."""
        loop = asyncio.get_running_loop()
        done: asyncio.Future[None] = loop.create_future()
        if log.recovery_point >= offset:
            done.set_result(None)
            return done
        waiters = self._waiters.get(log)
        if waiters is not None:
            waiters.append((offset, done))
        else:
            self._waiters[log] = [(offset, done)]
            self._start(log, loop)
        return done

    def _start(self, log: PartitionLog, loop: asyncio.AbstractEventLoop) -> None:
        try:
            running = self._executor.submit(log.prepare_flush().run)
        except KafkaError as error:
            self._fail(log, error)
            return
        except RuntimeError as refused:  # No thread can be started now: the next caller tries again.
            sentence = f"{log.name} cannot be flushed right now: {refused}."
            self._fail(log, KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, sentence))
            return
        running.add_done_callback(
            lambda future: loop.call_soon_threadsafe(partial(self._ended, log, loop, future))
        )

    def _ended(self, log: PartitionLog, loop: asyncio.AbstractEventLoop, future: Future[int]) -> None:
        error = future.exception()
        if isinstance(error, KafkaError):
            self._fail(log, error)
            return
        if error is not None:
            raise error
        reached = log.recovery_point
        waiting = []
        for offset, done in self._waiters.pop(log):
            if done.done():
                continue
            if offset <= reached:
                done.set_result(None)
            elif offset <= log.log_end_offset:
                waiting.append((offset, done))
            else:
                done.set_exception(log.storage_error("a truncation removed what was to be flushed"))
        if waiting:
            self._waiters[log] = waiting
            self._start(log, loop)

    def _fail(self, log: PartitionLog, error: KafkaError) -> None:
        for _, done in self._waiters.pop(log):
            if not done.done():
                done.set_exception(KafkaError(error.code, error.message))
