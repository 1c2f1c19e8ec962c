"""The runner for coroutine functions. All state is touched by the event loop alone.

Up to ``concurrency`` worker tasks take records in turn; those without work wait in ``_idle``.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import time
from collections import deque
from collections.abc import Awaitable, Callable, Collection
from types import CoroutineType
from typing import Any

from headrace.client.aio_consumer import AsyncConsumer
from headrace.client.errors import BrokerError, ClientError, ConfigError
from headrace.client.positions import Offsets
from headrace.client.record import Record, TopicPartition
from headrace.client.runner.base import POLL_SECONDS, BaseRunner, K, V, log
from headrace.client.runner.degrading import in_turn_async
from headrace.client.runner.schedule import Task
from headrace.client.runner.signals import stop_on_signals
from headrace.client.runner.stepping_aside import SteppingAside
from headrace.client.to_the_end import to_the_end

_TURNS = 100


class AsyncRunner(BaseRunner[K, V, Awaitable[object]]):
    """``Runner`` for an ``async def`` handler: the same options, awaited.

    >>> await AsyncRunner(handle, "localhost:9092", topics="orders", group_id="billing").run()
    """

    default_concurrency = 100

    def _prepare(self) -> None:
        if self._group_type == "share":
            raise ConfigError("AsyncRunner does not join share groups: use Runner")
        self._workers: set[asyncio.Task[None]] = set()
        self._idle: deque[asyncio.Future[None]] = deque()
        self._stopping = asyncio.Event()
        self._room = asyncio.Event()
        self._one_less_running = asyncio.Event()
        self._draining = False
        self._ended = False
        self._loop: asyncio.AbstractEventLoop | None = None

    def _check_handler(self, handler: Callable[[Record[K, V]], Awaitable[object]]) -> None:
        """Only a call shows it: a lambda that returns a coroutine will do as well as an ``async def``."""

    def stop(self) -> None:
        """End ``run``: what is being handled is finished and committed. May be called from any thread."""
        if self._loop is None:
            self._stopping.set()
        else:
            with contextlib.suppress(RuntimeError):  # the loop is closed: the run has ended
                self._loop.call_soon_threadsafe(self._stopping.set)

    async def run(self) -> None:
        """Handle records until ``stop``, SIGTERM or SIGINT; raises what stopped it otherwise."""
        self._begin()
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
            if degrading is not None:
                degrading.ledger.forget(partitions)

        def lost(partitions: Collection[TopicPartition]) -> None:
            asyncio.run_coroutine_threadsafe(self._forget(partitions), loop).result()
            if degrading is not None:
                degrading.ledger.forget(partitions)

        degrading = self._degrading

        async def subscribe() -> None:
            await consumer.subscribe(
                *self._topics,
                pattern=self._pattern,
                on_assign=self._where_to_start
                if degrading is None
                else lambda partitions: degrading.starts(consumer.sync, partitions),
                on_revoke=revoked,
                on_lost=lost,
            )

        aside = self._stepping_aside()
        with stop_on_signals(self.stop):
            try:
                if degrading is not None:
                    await asyncio.to_thread(degrading.degrader.start, self._stopping.is_set)
                await subscribe()
                while not self._stopping.is_set():
                    if aside is not None and aside.is_asked:
                        await self._step_aside(consumer, aside)
                        if self._stopping.is_set():
                            break
                        await subscribe()
                    await self._turn(consumer)
            finally:
                try:
                    if aside is not None:
                        await to_the_end(asyncio.to_thread(aside.close))
                finally:
                    await to_the_end(self._finish(consumer))
        if self._failure is not None:
            raise self._failure

    async def _step_aside(self, consumer: AsyncConsumer[Any, Any], aside: SteppingAside) -> None:
        log.info("leaving group %s for a moment, for a divert", self._group_id)
        await consumer.unsubscribe()
        while aside.is_asked and not self._stopping.is_set():
            await consumer.poll(POLL_SECONDS, max_records=1)

    async def _turn(self, consumer: AsyncConsumer[Any, Any]) -> None:
        self._room.clear()
        off = self._is_switched_off()
        was_held, self._is_held = self._is_held, off
        if was_held and not off:
            self._wake(self._concurrency)
        stuck, eased, room = self._pressure(consumer.assignment(), consumer.paused())
        if stuck:
            await consumer.pause(*stuck)
        if eased:
            await consumer.resume(*eased)
        if (offsets := self._offsets_due()) and await self._is_written(offsets):
            await consumer.commit_async(offsets)
        if not room and await _until(self._room, POLL_SECONDS):
            return
        # Without room one record is read all the same: reading is also what serves rebalances.
        records = await consumer.poll(POLL_SECONDS if room else 0, max_records=self._batch if room else 1)
        if not self._stopping.is_set():
            self._wake(sum(map(self._schedule.add, self._to_handle(records))))
        if not records and await self._is_over():
            self._stopping.set()

    async def _is_over(self) -> bool:
        until = self._until
        if until is None or not until.look_is_due(self._schedule.load()):
            return False
        return await asyncio.to_thread(until.is_over)

    async def _is_written(self, offsets: Offsets) -> bool:
        return self._degrading is None or await asyncio.to_thread(self._written, offsets)

    async def _finish(self, consumer: AsyncConsumer[Any, Any]) -> None:
        self._stopping.set()
        try:
            offsets = await self._drained(consumer.assignment())
            await asyncio.to_thread(self._commit_last, consumer, offsets)
        finally:
            self._ended = True
            self._wake(len(self._idle))
            try:
                await consumer.close()
            finally:
                await asyncio.to_thread(self._close_companions)
                if self._hooks:
                    self._tell_load({}, 0)

    async def _drained(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        """Let what runs finish, forget the rest; returns what may be committed."""
        self._schedule.stop(partitions)
        deadline = time.monotonic() + self._drain_timeout
        self._draining = True
        if self._is_held:
            self._wake(self._concurrency)
        while self._schedule.busy(partitions) and (left := deadline - time.monotonic()) > 0:
            self._one_less_running.clear()
            await _until(self._one_less_running, left)
        self._draining = False
        committable = self._schedule.committable()
        await self._forget(partitions)
        return {each: committable[each] for each in partitions if each in committable}

    async def _forget(self, partitions: Collection[TopicPartition]) -> None:
        self._schedule.forget(partitions)
        for partition in partitions:
            self._requested.pop(partition, None)
        if self._until is not None:
            self._until.gone(partitions)

    def _commit_last(self, consumer: AsyncConsumer[Any, Any], offsets: Offsets) -> None:
        if not self._written(offsets):
            return
        try:
            consumer.sync.commit(offsets, timeout=self._drain_timeout)
        except BrokerError as error:
            log.warning("%s; the finished records will be handled again", error)
        else:
            self._tell("committed", offsets)

    def _wake(self, count: int) -> None:
        """Let so many more workers look for work; makes them as long as there may be more."""
        for _ in range(count):
            while self._idle and self._idle[0].done():
                self._idle.popleft()  # a worker that was cancelled
            if self._idle:
                self._idle.popleft().set_result(None)
            elif len(self._workers) < self._concurrency and not self._ended:
                worker = asyncio.ensure_future(self._work())
                self._workers.add(worker)
                worker.add_done_callback(self._workers.discard)
            else:
                return

    async def _work(self) -> None:
        taken = 0
        while not self._ended:
            held = self._is_held and not self._draining
            task = None if held else self._schedule.take(time.monotonic())
            if task is None:
                waiting = asyncio.get_running_loop().create_future()
                self._idle.append(waiting)
                await waiting
                continue
            try:
                if await self._handle(task):
                    self._schedule.finish(task)
                    if self._eased(task):
                        self._room.set()
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

    async def _handle(self, task: Task) -> bool:
        """True when the record is done: handled, or among the dead letters."""
        task.calls += 1
        if task.giving_up is not None:
            return await self._bury(task)
        handler, record = self._handler, task.record
        if self._degrading is not None:
            chosen = self._degrading.choose(task)
            if chosen is None:
                return True
            handler, record = in_turn_async(chosen), chosen.record
        started = time.monotonic() if self._hooks else 0.0
        awaited = False
        try:
            with self._around(task) if self._hooks else _NO_HOOKS:
                called = handler(record)
                if awaited := isinstance(called, CoroutineType) or inspect.isawaitable(called):
                    await called
        except (Exception, asyncio.CancelledError) as error:
            if isinstance(error, asyncio.CancelledError) and _being_cancelled():
                raise
            delay = self._after_failure(task, error)
            if delay is None:
                return await self._bury(task)
            self._again(task, delay)
            return False
        if not awaited:
            raise ConfigError("AsyncRunner takes an `async def`; for an ordinary function there is Runner")
        if self._hooks:
            self._tell("handled", task.record, time.monotonic() - started)
        return True

    async def _bury(self, task: Task) -> bool:
        if self._dead_letters is None or task.giving_up is None:
            raise self._without_dead_letters(task)
        try:
            sent = await asyncio.to_thread(self._dead_letters.send, task.record, task.giving_up, task.attempt)
            await asyncio.wrap_future(sent)
        except ClientError as problem:
            self._again(task, self._after_failed_burial(task, problem))
            return False
        self._buried(task)
        return True


_NO_HOOKS = contextlib.nullcontext()


def _being_cancelled() -> bool:
    """Whether this worker was asked to end; else the handler has let out what happened to a task of its own."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


async def _until(event: asyncio.Event, timeout: float) -> bool:
    """Whether it happened in time."""
    with contextlib.suppress(TimeoutError):
        return await asyncio.wait_for(event.wait(), timeout)
    return False
