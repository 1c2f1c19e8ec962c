"""Virtual time: one queue of events in the order of their times, random numbers by purpose, and the trace of a run.

Everything that happens in a simulation is an event here, so the same seed gives the same run. Random numbers come in streams, one
for each purpose: leaving out a fault does not change how the network behaves until that fault would have come.
"""

from __future__ import annotations

import heapq
import random
import zlib
from collections import deque
from collections.abc import Callable

LINES_KEPT = 400


class Event:
    __slots__ = ("args", "callback")

    def __init__(self, callback: Callable[..., object], args: tuple[object, ...]) -> None:
        self.callback: Callable[..., object] | None = callback
        self.args = args

    def cancel(self) -> None:
        self.callback = None
        self.args = ()


class World:
    def __init__(self, seed: object, show: Callable[[str], None] | None = None) -> None:
        """`show` is given each line of the trace as it is written."""
        self.seed = seed
        self.now = 0.0
        self.steps = 0
        self.troubles: list[str] = []
        """What must never happen, and did."""
        self.acting = ""
        """The process whose code runs."""
        self.digest = 0
        self.lines: deque[str] = deque(maxlen=LINES_KEPT)
        self._show = show
        self._events: list[tuple[float, int, Event]] = []
        self._number = 0
        self._jitter = self.stream("jitter").random

    def stream(self, purpose: str) -> random.Random:
        return random.Random(f"{self.seed}/{purpose}")

    def after(self, seconds: float, callback: Callable[..., object], *args: object) -> Event:
        event = Event(callback, args)
        self._number += 1
        heapq.heappush(self._events, (self.now + seconds, self._number, event))
        return event

    def soon(self, callback: Callable[..., object], *args: object) -> Event:
        """Within a few microseconds, before or after whatever else happens soon: the seed decides."""
        return self.after(self._jitter() * 20e-6, callback, *args)

    def run(self, ended: Callable[[], bool], until: float) -> None:
        """Let events happen until `ended`, or until this time."""
        events = self._events
        while events and not ended():
            if events[0][0] > until:
                self.now = until
                return
            when, _, event = heapq.heappop(events)
            if event.callback is not None:
                self.now = when
                self.steps += 1
                event.callback(*event.args)

    def trace(self, line: str) -> None:
        """Write down what happened: part of what two runs of a seed are compared by."""
        line = f"{self.now:11.6f} {line}"
        self.digest = zlib.crc32(line.encode(), self.digest)
        self.lines.append(line)
        if self._show is not None:
            self._show(line)

    def trouble(self, sentence: str) -> None:
        self.trace(f"TROUBLE {sentence}")
        self.troubles.append(sentence)
