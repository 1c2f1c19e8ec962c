"""Kafka's arithmetic of quotas: a rate over sliding samples, and a token bucket. No clock in here: times are milliseconds.

A rate is averaged over a number of samples of equal length. While there is too little history the missing samples count
as if they were empty, so a client that begins may send (samples - 1) samples' worth at once.
"""

from __future__ import annotations

import math
from collections import deque
from typing import NamedTuple

INT_MAX = 2**31 - 1


class Window(NamedTuple):
    """quota.window.num and quota.window.size.seconds."""

    samples: int
    sample_ms: int

    @property
    def span_ms(self) -> int:
        return self.samples * self.sample_ms


class _Sample:
    __slots__ = ("last", "start", "value")

    def __init__(self, now: int) -> None:
        self.start = self.last = now
        self.value = 0.0


class Rate:
    """What one client used, per second, over a sliding window."""

    __slots__ = ("_sample_ms", "_samples", "_span_ms", "_total", "_whole", "_whole_ms")

    def __init__(self, window: Window) -> None:
        self._sample_ms = window.sample_ms
        self._span_ms = window.span_ms
        self._whole = window.samples - 1
        """Samples that are over count as if there were this many, at least."""
        self._whole_ms = self._whole * window.sample_ms
        self._samples: deque[_Sample] = deque()
        self._total = 0.0

    def record(self, value: float, now: int) -> None:
        samples = self._samples
        if not samples or now - samples[-1].start >= self._sample_ms:
            self._drop_old(now)
            samples.append(_Sample(now))
        current = samples[-1]
        current.value += value
        current.last = now
        self._total += value

    def use(self, value: float, limit: float, now: int) -> int:
        """Record, and say how long to wait: what every request does."""
        self.record(value, now)
        if self._total * 1000 <= limit * self._whole_ms:
            return 0  # The window is never shorter than that, and what is too old may count.
        return self.throttle_ms(limit, now)

    def throttle_ms(self, limit: float, now: int) -> int:
        """How long to add to the window so that the rate over it comes down to `limit`; 0 while it is within."""
        span = self._elapsed_ms(now)
        rate = self._total * 1000 / span
        if rate <= limit:
            return 0
        return _rounded((rate - limit) / limit * span)

    def spent(self, now: int) -> bool:
        """Whether nothing that was recorded counts any more: as good as new."""
        self._drop_old(now)
        return not self._samples

    def _elapsed_ms(self, now: int) -> int:
        self._drop_old(now)
        samples = self._samples
        elapsed = now - samples[0].start if samples else 0
        missing = self._whole - elapsed // self._sample_ms
        if missing > 0:
            elapsed += missing * self._sample_ms
        return elapsed or 1

    def _drop_old(self, now: int) -> None:
        """A sample that overlaps the window counts in full, even if it began before."""
        samples = self._samples
        while samples and now - samples[0].last >= self._span_ms:
            self._total -= samples.popleft().value
        if not samples:
            self._total = 0.0  # What rounding has left.


class TokenBucket:
    """Fills at the rate of the quota up to a whole window's worth. It may be overdrawn once, and then has to fill up again."""

    __slots__ = ("_limit", "_tokens", "_updated", "_window")

    def __init__(self, window: Window) -> None:
        self._window = window
        self._limit = 0.0
        """The quota when it was last used."""
        self._tokens = math.inf
        """As many as fit."""
        self._updated = 0

    def take(self, value: float, limit: float, now: int) -> None:
        """Take tokens, or give some back when negative."""
        self._fill(limit, now)
        self._tokens = min(self._most(limit), self._tokens - value)

    def throttle_ms(self, limit: float, now: int) -> int:
        """How long it takes until the bucket is no longer overdrawn; 0 when it is not."""
        self._fill(limit, now)
        return _rounded(-self._tokens / limit * 1000) if self._tokens < 0 else 0

    def spent(self, now: int) -> bool:
        """Whether it is full, so that nothing that was taken counts any more: as good as new."""
        self._fill(self._limit, now)
        return self._tokens >= self._most(self._limit)

    def _fill(self, limit: float, now: int) -> None:
        self._limit = limit
        self._tokens = min(self._most(limit), self._tokens + limit * (now - self._updated) / 1000)
        self._updated = now

    def _most(self, limit: float) -> float:
        return self._window.span_ms / 1000 * limit


def _rounded(milliseconds: float) -> int:
    return min(math.floor(milliseconds + 0.5), INT_MAX)
