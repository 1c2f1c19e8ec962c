"""Threads in which plain (`def`) implementations run, so that a slow one never holds up the event loop.

All bookkeeping happens on the loop; threads only take work and hand back outcomes. With every thread busy and the
queue full a call is refused at once, as Dubbo's fixed pool does.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextvars import Context
from queue import SimpleQueue

from headrace.services.errors import ServicesError

_Work = tuple["asyncio.Future[object]", Context, Callable[..., object], Sequence[object]]


class PoolExhaustedError(ServicesError):
    """Every thread is busy and no more calls may wait."""


class WorkerPool:
    """At most `threads` threads, started when needed, and `queues` calls waiting for one."""

    def __init__(self, loop: asyncio.AbstractEventLoop, threads: int, queues: int, name: str) -> None:
        self._loop = loop
        self._threads = threads
        self._queues = queues
        self._name = name
        self._work: SimpleQueue[_Work | None] = SimpleQueue()
        self._waiting: deque[_Work] = deque()
        self._outcomes: deque[tuple[asyncio.Future[object], object, BaseException | None]] = deque()
        self._started = 0
        self._active = 0

    def run(
        self, context: Context, function: Callable[..., object], arguments: Sequence[object]
    ) -> asyncio.Future[object]:
        """Run `function(*arguments)` in a thread; the future resolves on the loop."""
        future = self._loop.create_future()
        work: _Work = (future, context, function, arguments)
        if self._active < self._threads:
            self._begin(work)
        elif len(self._waiting) < self._queues:
            self._waiting.append(work)
        else:
            raise PoolExhaustedError(
                f"Thread pool is EXHAUSTED! Thread Name: {self._name}, Pool Size: {self._threads} "
                f"(active: {self._active}, max: {self._threads}), Task: {len(self._waiting)} waiting"
            )
        return future

    def resize(self, threads: int, queues: int) -> None:
        """Other limits from now on; calls that are running or waiting stay."""
        self._threads = threads
        self._queues = queues
        self._begin_waiting()

    def close(self) -> None:
        """Let the threads end once their present work is done."""
        for _ in range(self._started):
            self._work.put(None)
        self._started = 0

    def _begin_waiting(self) -> None:
        while self._waiting and self._active < self._threads:
            self._begin(self._waiting.popleft())

    def _begin(self, work: _Work) -> None:
        self._active += 1
        if self._active > self._started:
            self._started += 1
            threading.Thread(target=self._serve, name=f"{self._name}-{self._started}", daemon=True).start()
        self._work.put(work)

    def _serve(self) -> None:
        while (work := self._work.get()) is not None:
            future, context, function, arguments = work
            outcome: object = None
            error: BaseException | None = None
            try:
                outcome = context.run(function, *arguments)
            except BaseException as raised:  # an exit in a handler must not end the thread
                error = raised
            self._outcomes.append((future, outcome, error))
            del work, future, context, function, arguments, outcome, error
            try:
                self._loop.call_soon_threadsafe(self._deliver)
            except RuntimeError:  # the loop is closed, so no call is waiting
                return

    def _deliver(self) -> None:
        while self._outcomes:
            future, outcome, error = self._outcomes.popleft()
            self._active -= 1
            self._begin_waiting()
            if future.done():  # cancelled while it ran
                continue
            if error is None:
                future.set_result(outcome)
            elif isinstance(error, Exception) and not isinstance(error, StopIteration):
                future.set_exception(error)
            else:
                future.set_exception(RuntimeError(f"{type(error).__name__}: {error}"))
