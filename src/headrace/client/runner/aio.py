"""The runner for coroutine functions. All state is touched by the event loop alone.

Up to ``concurrency`` worker tasks take records in turn; those without work wait in ``_idle``.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import threading
import time
from collections import deque
from collections.abc import Awaitable, Collection
from typing import Any

from headrace.client.aio_consumer import AsyncConsumer
from headrace.client.errors import BrokerError, ClientError
from headrace.client.positions import Offsets
from headrace.client.record import TopicPartition
from headrace.client.runner.base import POLL_SECONDS, BaseRunner, K, V, log
from headrace.client.runner.schedule import Task

_TURNS = 100


class AsyncRunner(BaseRunner[K, V, Awaitable[object]]):
    """``Runner`` for an ``async def`` handler: the same options, run with ``await runner.run()``."""

    default_concurrency = 100

    def _prepare(self) -> None:
        self._workers: set[asyncio.Task[None]] = set()
        self._idle: deque[asyncio.Future[None]] = deque()
        self._stopping = asyncio.Event()
        self._one_less_running = asyncio.Event()
        self._ended = False
        self._loop: asyncio.AbstractEventLoop | None = None

    def stop(self) -> None:
        """End ``run``: what is being handled is finished and committed. May be called from any thread."""
        if self._loop is None:
            self._stopping.set()
        else:
            with contextlib.suppress(RuntimeError):  # the loop is closed: the run has ended
                self._loop.call_soon_threadsafe(self._stopping.set)

    async def run(self) -> None:
        """Handle records until ``stop``, SIGTERM or SIGINT; raises what stopped it otherwise."""
        self._loop = loop = asyncio.get_running_loop()
        consumer: AsyncConsumer[Any, Any] = AsyncConsumer(
            self._config,
            key_deserializer=self._key_deserializer,
            value_deserializer=self._value_deserializer,
            on_commit=self._on_commit,
        )

        def revoked(partitions: Collection[TopicPartition]) -> None:
            drained = asyncio.run_coroutine_threadsafe(self._drained(partitions), loop).result()
            self._commit_last(consumer, drained)

        def lost(partitions: Collection[TopicPartition]) -> None:
            asyncio.run_coroutine_threadsafe(self._forget(partitions), loop).result()

        signals = _main_thread_signals()
        for number in signals:
            loop.add_signal_handler(number, self._stopping.set)
        try:
            await consumer.subscribe(
                *self._topics,
                pattern=self._pattern,
                on_assign=self._where_to_start,
                on_revoke=revoked,
                on_lost=lost,
            )
            while not self._stopping.is_set():
                await self._turn(consumer)
        finally:
            await self._finish(consumer)
            for number in signals:
                loop.remove_signal_handler(number)
        if self._failure is not None:
            raise self._failure

    async def _turn(self, consumer: AsyncConsumer[Any, Any]) -> None:
        stuck, eased, room = self._pressure(consumer.assignment(), consumer.paused())
        if stuck:
            await consumer.pause(*stuck)
        if eased:
            await consumer.resume(*eased)
        if offsets := self._offsets_due():
            await consumer.commit_async(offsets)
        if not room:
            await self._until_one_less(POLL_SECONDS)
        # Without room one record is read all the same: reading is also what serves rebalances.
        records = await (consumer.poll(POLL_SECONDS) if room else consumer.poll(0, max_records=1))
        self._wake(sum(self._schedule.add(record) for record in records))

    async def _finish(self, consumer: AsyncConsumer[Any, Any]) -> None:
        self._stopping.set()
        offsets = await self._drained(consumer.assignment())
        self._ended = True
        self._wake(len(self._idle))
        await asyncio.to_thread(self._commit_last, consumer, offsets)
        await consumer.close()
        if self._dead_letters is not None:
            await asyncio.to_thread(self._dead_letters.close)

    async def _drained(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        """Let what runs finish, forget the rest; returns what may be committed."""
        self._schedule.stop(partitions)
        deadline = time.monotonic() + self._drain_timeout
        while self._schedule.busy(partitions) and (left := deadline - time.monotonic()) > 0:
            await self._until_one_less(left)
        committable = self._schedule.committable()
        await self._forget(partitions)
        return {each: committable[each] for each in partitions if each in committable}

    async def _forget(self, partitions: Collection[TopicPartition]) -> None:
        self._schedule.forget(partitions)
        for partition in partitions:
            self._requested.pop(partition, None)

    def _commit_last(self, consumer: AsyncConsumer[Any, Any], offsets: Offsets) -> None:
        try:
            consumer.sync.commit(offsets)
        except BrokerError as error:
            log.warning("%s; the finished records will be handled again", error)
        else:
            self._tell("committed", offsets)

    async def _until_one_less(self, timeout: float) -> None:
        self._one_less_running.clear()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._one_less_running.wait(), timeout)

    def _wake(self, count: int) -> None:
        """Let so many more workers look for work; makes them as long as there may be more."""
        for _ in range(count):
            if self._idle:
                waiting = self._idle.popleft()
                if not waiting.done():
                    waiting.set_result(None)
            elif len(self._workers) < self._concurrency and not self._ended:
                worker = asyncio.ensure_future(self._work())
                self._workers.add(worker)
                worker.add_done_callback(self._workers.discard)
            else:
                return

    async def _work(self) -> None:
        taken = 0
        while not self._ended:
            task = self._schedule.take(time.monotonic())
            if task is None:
                waiting = asyncio.get_running_loop().create_future()
                self._idle.append(waiting)
                await waiting
                continue
            try:
                await self._handle(task)
            except BaseException as error:
                self._failure = error
                self._stopping.set()
                self._schedule.abandon(task)
            self._one_less_running.set()
            # A handler that never waits must not keep the loop from everything else.
            taken += 1
            if taken % _TURNS == 0:
                await asyncio.sleep(0)

    def _again(self, task: Task, delay: float) -> None:
        self._schedule.retry(task, time.monotonic() + delay)
        # A little later than due, so that the worker does not look a moment too early and go back to sleep.
        asyncio.get_running_loop().call_later(delay + 0.002, self._wake, 1)

    async def _handle(self, task: Task) -> None:
        task.calls += 1
        if task.giving_up is None:
            started = time.monotonic()
            try:
                with self._around(task):
                    await self._handler(task.record)
            except Exception as error:
                delay = self._after_failure(task, error)
                if delay is not None:
                    self._again(task, delay)
                    return
            else:
                self._tell("handled", task.record, time.monotonic() - started)
                self._schedule.finish(task)
                return
        await self._bury(task)

    async def _bury(self, task: Task) -> None:
        if self._dead_letters is None or task.giving_up is None:
            raise self._without_dead_letters(task)
        try:
            sent = await asyncio.to_thread(self._dead_letters.send, task.record, task.giving_up, task.attempt)
            await asyncio.wrap_future(sent)
        except ClientError as problem:
            self._again(task, self._after_failed_burial(task, problem))
        else:
            self._buried(task)
            self._schedule.finish(task)


def _main_thread_signals() -> tuple[signal.Signals, ...]:
    main = threading.current_thread() is threading.main_thread()
    return (signal.SIGTERM, signal.SIGINT) if main else ()
