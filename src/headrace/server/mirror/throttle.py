"""Limits the bytes per second of a link on this broker: bytes fetched are a debt, paid off at that rate."""

from __future__ import annotations

from headrace.clock import Clock


class LinkThrottle:
    def __init__(self, rate: int, clock: Clock) -> None:
        """`rate` in bytes per second; 0 for no limit."""
        self._rate = rate
        self._clock = clock
        self._free_at = 0.0

    def count(self, size: int) -> None:
        if self._rate:
            self._free_at = max(self._free_at, self._clock.monotonic()) + size / self._rate

    def seconds_left(self) -> float:
        return max(0.0, self._free_at - self._clock.monotonic()) if self._rate else 0.0
