"""Fairness between connections: those with heavy traffic yield to those with small requests.

A connection has the loop for a turn of so many bytes, then the others are served. While some of them ask little (a
record now and then, a heartbeat), turns are shorter, and a connection that moves much pauses between its turns for
eight times as long as the loop is late. A loop that is late shares its cores with busy processes: working without a rest
it would wait for their time slices, and every small request with it; after a rest the kernel lets it run at once. On a
machine with a core to spare the loop is not late, and nobody pauses.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

LONG_TURN = 1024 * 1024
SHORT_TURN = 256 * 1024
TURN_SECONDS = 0.05
"""A connection that spends a short turn this fast is heavy."""
HEAVY_SECONDS = 0.1
"""How long a connection counts as heavy."""
LIGHT_SECONDS = 0.05
"""How long heavy connections yield after a small request."""
LONGEST_PAUSE = 0.004


class Fairness:
    """What the connections of one event loop share."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self.now = now
        self.light_until = 0.0
        self._lateness = 0.0

    def pause(self) -> float:
        """Seconds that a heavy connection currently waits for its next turn."""
        return round(min(8 * self._lateness, LONGEST_PAUSE), 3) if self.now() < self.light_until else 0.0

    def next_turn(self, go_on: Callable[[], None], pause: float) -> None:
        loop, due = asyncio.get_running_loop(), self.now() + pause
        if pause:
            loop.call_later(pause, self._run, due, go_on)
        else:
            loop.call_soon(self._run, due, go_on)

    def _run(self, due: float, go_on: Callable[[], None]) -> None:
        self._lateness += (max(0.0, self.now() - due) - self._lateness) / 16
        go_on()


class Share:
    """One connection's part in it."""

    __slots__ = ("_began", "_fairness", "_heavy_until", "_spent")

    def __init__(self, fairness: Fairness) -> None:
        self._fairness = fairness
        self._spent = 0
        self._began = 0.0
        self._heavy_until = 0.0

    @property
    def hurried(self) -> bool:
        """This connection is heavy while others send small requests: prefer what costs the loop least."""
        now = self._fairness.now()
        return now < self._heavy_until and now < self._fairness.light_until

    def spend(self, count: int) -> bool:
        """Count bytes that were moved; True when the turn is over."""
        fairness = self._fairness
        now = fairness.now()
        self._spent += count
        if self._spent < SHORT_TURN:
            if now > self._heavy_until:
                fairness.light_until = now + LIGHT_SECONDS
            return False
        if now < self._began + TURN_SECONDS:
            self._heavy_until = now + HEAVY_SECONDS
        return self._spent >= LONG_TURN or now < fairness.light_until or now > self._heavy_until

    def give_way(self, go_on: Callable[[], None]) -> None:
        """The turn is over; `go_on` is called when the next one begins."""
        fairness = self._fairness
        self._spent = 0
        self._began = fairness.now()
        fairness.next_turn(go_on, fairness.pause() if self._began < self._heavy_until else 0.0)
