"""The one source of time.

Every timestamp, deadline and pause comes from a Clock, so that a test can hand in one it moves by hand and a
seven-day retention takes no time. `time.*`, `call_later`, `sleep` and `wait_for` appear nowhere else.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Protocol, TypeVar

T = TypeVar("T")


class Timer(Protocol):
    """A deadline that was set; cancelling twice, or after it fired, does nothing."""

    def cancel(self) -> None: ...


class Clock(Protocol):
    def now_ms(self) -> int:
        """Wall-clock time in milliseconds since 1970, for record timestamps and retention."""
        ...

    def monotonic(self) -> float:
        """Seconds that only ever grow, for deadlines and durations."""
        ...

    def call_later(self, seconds: float, callback: Callable[[], object]) -> Timer:
        """Run `callback` on the event loop after `seconds`."""
        ...

    async def sleep(self, seconds: float) -> None: ...

    async def wait_for(self, awaitable: Awaitable[T], seconds: float) -> T:
        """Like asyncio.wait_for: raises TimeoutError when `seconds` pass first."""
        ...


class SystemClock:
    """Real time, on the running event loop."""

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    monotonic = staticmethod(time.monotonic)

    def call_later(self, seconds: float, callback: Callable[[], object]) -> Timer:
        return asyncio.get_running_loop().call_later(seconds, callback)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def wait_for(self, awaitable: Awaitable[T], seconds: float) -> T:
        # asyncio.wait_for of Python 3.11 loses a cancellation that comes together with the result.
        async with asyncio.timeout(seconds):
            return await awaitable
