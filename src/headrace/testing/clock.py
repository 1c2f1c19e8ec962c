"""Real time that a test can move forward.

Brokers set every deadline on their clock, so moving it makes a seven-day retention or a session timeout happen now,
with real clients on real sockets. Between moves time passes as usual, and nothing ever hangs.
"""

from __future__ import annotations

import asyncio
import itertools
import threading
import time
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import TypeVar

T = TypeVar("T")

PATIENCE_SECONDS = 30.0


class MovableClock:
    """One clock may serve several brokers, each on its own event loop; `advance` may be called from any thread."""

    def __init__(self) -> None:
        self._ahead = 0.0
        self._lock = threading.Lock()
        self._timers: dict[asyncio.AbstractEventLoop, set[_Timer]] = {}
        self._numbers = itertools.count()

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000 + round(self._ahead * 1000)

    def monotonic(self) -> float:
        return time.monotonic() + self._ahead

    def call_later(self, seconds: float, callback: Callable[[], object]) -> _Timer:
        loop = asyncio.get_running_loop()
        timer = _Timer(self, loop, self.monotonic() + seconds, next(self._numbers), callback)
        with self._lock:
            self._timers.setdefault(loop, set()).add(timer)
        timer.arm()
        return timer

    async def sleep(self, seconds: float) -> None:
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        over: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def wake() -> None:
            if not over.done():
                over.set_result(None)

        timer = self.call_later(seconds, wake)
        try:
            await over
        finally:
            timer.cancel()

    async def wait_for(self, awaitable: Awaitable[T], seconds: float) -> T:
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(None) as limit:
            timer = self.call_later(seconds, lambda: limit.reschedule(loop.time()))
            try:
                return await awaitable
            finally:
                timer.cancel()

    def advance(self, by: float | timedelta) -> None:
        """Move forward by seconds, or by a timedelta: what is due by then happens now, in order.

        It is one jump, as of a machine that slept: what comes round every minute comes round once. Returns when every
        deadline that was passed has been acted upon; what threads and other brokers make of that may take a moment.
        """
        seconds = by.total_seconds() if isinstance(by, timedelta) else by
        if seconds < 0:
            raise ValueError("Time only moves forward: advance() takes no negative time.")
        with self._lock:
            self._ahead += seconds
            for loop in [loop for loop in self._timers if loop.is_closed()]:
                del self._timers[loop]
            loops = list(self._timers)
        for loop in loops:
            self._pass_deadlines(loop)

    def _pass_deadlines(self, loop: asyncio.AbstractEventLoop) -> None:
        if loop is asyncio._get_running_loop():
            self._fire_due(loop)
            return
        fired = threading.Event()

        def fire() -> None:
            self._fire_due(loop)
            fired.set()

        try:
            loop.call_soon_threadsafe(fire)
        except RuntimeError:
            return  # The broker has stopped.
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not fired.wait(0.05) and loop.is_running() and time.monotonic() < deadline:
            pass

    def _fire_due(self, loop: asyncio.AbstractEventLoop) -> None:
        with self._lock:
            timers = sorted(self._timers.get(loop, ()), key=lambda timer: (timer.deadline, timer.number))
        now = self.monotonic()
        for timer in timers:
            if timer.deadline <= now:
                timer.fire()
            else:
                timer.arm()

    def forget(self, timer: _Timer) -> None:
        with self._lock:
            self._timers.get(timer.loop, set()).discard(timer)


class _Timer:
    def __init__(
        self,
        clock: MovableClock,
        loop: asyncio.AbstractEventLoop,
        deadline: float,
        number: int,
        callback: Callable[[], object],
    ) -> None:
        self.loop = loop
        self.deadline = deadline
        self.number = number
        self._clock = clock
        self._callback: Callable[[], object] | None = callback
        self._handle: asyncio.TimerHandle | None = None

    def arm(self) -> None:
        """Wait for what is left in real time."""
        if self._handle is not None:
            self._handle.cancel()
        if self._callback is not None:
            self._handle = self.loop.call_later(max(0.0, self.deadline - self._clock.monotonic()), self.fire)

    def fire(self) -> None:
        callback = self._callback
        self.cancel()
        if callback is not None:
            callback()

    def cancel(self) -> None:
        self._callback = None
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None
        self._clock.forget(self)
