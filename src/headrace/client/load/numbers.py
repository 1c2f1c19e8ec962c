"""Throughput and latency: counted for the whole run and for the window since the last report."""

from __future__ import annotations

import time
from array import array
from collections.abc import Sequence
from dataclasses import dataclass

MEBIBYTE = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Throughput:
    records: int
    bytes: int
    seconds: float

    @property
    def records_per_second(self) -> float:
        return self.records / self.seconds if self.seconds else 0.0

    @property
    def mebibytes_per_second(self) -> float:
        return self.bytes / MEBIBYTE / self.seconds if self.seconds else 0.0


class Latencies:
    """Latencies in seconds, each of them kept, in four bytes."""

    def __init__(self) -> None:
        self._values = array("f")
        self.add = self._values.append  # called for every record: no frame of our own in between

    def __len__(self) -> int:
        return len(self._values)

    def since(self, start: int) -> array[float]:
        """Those after the first `start`."""
        return self._values[start:]

    def percentile(self, share: float) -> float:
        """In milliseconds; 0 when there are none."""
        return _percentile(sorted(self._values), share)

    def summary(self) -> LatencySummary:
        ordered = sorted(self._values)
        if not ordered:
            return LatencySummary(0, 0, 0, 0, 0, 0)

        def percentile(share: float) -> float:
            return _percentile(ordered, share)

        return LatencySummary(
            average=sum(ordered) / len(ordered) * 1000,
            p50=percentile(0.5),
            p95=percentile(0.95),
            p99=percentile(0.99),
            p999=percentile(0.999),
            max=ordered[-1] * 1000,
        )


def _percentile(ordered: Sequence[float], share: float) -> float:
    return ordered[min(int(share * len(ordered)), len(ordered) - 1)] * 1000 if ordered else 0.0


@dataclass(frozen=True, slots=True)
class LatencySummary:
    """Milliseconds."""

    average: float
    p50: float
    p95: float
    p99: float
    p999: float
    max: float


class SteadyRate:
    """Holds a sender to so many records a second; None is as fast as it can."""

    def __init__(self, per_second: float | None) -> None:
        self._interval = 1 / per_second if per_second else 0.0
        self._start = time.perf_counter()

    def wait_seconds(self, sent: int) -> float:
        """How long to wait before the next record, after `sent` of them."""
        return self._start + sent * self._interval - time.perf_counter() if self._interval else 0.0
