"""`kafka_network_requestmetrics_*`: how many requests of each API there were, and how long they took, phase by phase.

The quantiles are those of the last one to two minutes, as far as somebody scraped; counts and sums are since the broker started.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from headrace.server.metrics.text import COUNTER, HISTOGRAM, SUMMARY, Family, labels, several
from headrace.server.net.request_times import BOUNDS, RequestStatistics, RequestTimes

PHASES = (
    (
        "requestqueuetimems",
        "queue",
        "Milliseconds that requests waited behind earlier ones of their connection.",
    ),
    ("localtimems", "local", "Milliseconds that the broker worked on requests."),
    ("remotetimems", "remote", "Milliseconds that requests waited for replicas, records or members."),
    (
        "responsequeuetimems",
        "response_queue",
        "Milliseconds that replies waited behind earlier ones of their connection.",
    ),
    (
        "responsesendtimems",
        "response_send",
        "Milliseconds from the start of a reply until the kernel had all of it.",
    ),
    ("totaltimems", "total", "Milliseconds from the arrival of requests until the kernel had their replies."),
)
QUANTILES = (0.5, 0.75, 0.95, 0.98, 0.99, 0.999)
LE = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
"""Bounds of the histogram, in seconds, each one of `BOUNDS`."""
RENEWED_SECONDS = 60.0


def distribution(times: RequestTimes, phase: str) -> tuple[list[int], float]:
    """(requests in each bucket, seconds altogether) of one phase. Every request has every phase, most of them at no length."""
    at_once, others = times.at_once, times.total
    if phase == "local":
        return _sum(at_once.buckets, times.local.buckets), at_once.sum + times.local.sum
    if phase == "total":
        return _sum(at_once.buckets, others.buckets), at_once.sum + others.sum
    spread = getattr(times, phase)
    buckets = list(spread.buckets)
    buckets[0] += sum(at_once.buckets) + sum(others.buckets) - sum(buckets)
    return buckets, spread.sum


def _sum(one: Sequence[int], other: Sequence[int]) -> list[int]:
    return [a + b for a, b in zip(one, other, strict=True)]


def quantile(buckets: Sequence[int], share: float) -> float:
    """In milliseconds, on a straight line within a bucket; NaN when nothing was counted."""
    count = sum(buckets)
    if not count:
        return float("nan")
    wanted, below = share * count, 0
    for number, held in enumerate(buckets):
        if held and below + held >= wanted:
            low = BOUNDS[number - 1] if number else 0.0
            high = BOUNDS[min(number, len(BOUNDS) - 1)]
            return 1000 * (low + (high - low) * (wanted - below) / held)
        below += held
    return 1000 * BOUNDS[-1]


class RequestFamilies:
    def __init__(self, statistics: RequestStatistics, monotonic: Callable[[], float]) -> None:
        self._statistics = statistics
        self._monotonic = monotonic
        self._recent: dict[tuple[int, str], list[int]] = {}
        """The buckets as they were when the present minute began, and the minute before."""
        self._before: dict[tuple[int, str], list[int]] = {}
        self._since = monotonic()
        self._labels: dict[int, tuple[str, tuple[str, ...]]] = {}

    def families(self) -> Iterator[Family]:
        known = sorted(self._statistics.values(), key=lambda times: times.key)
        counted = ((self._label(times.key)[0], _count(times)) for times in known)
        yield several(
            "kafka_network_requestmetrics_requests_total", COUNTER, "Requests served, by API.", counted
        )
        renews = self._monotonic() - self._since >= RENEWED_SECONDS
        taken: dict[tuple[int, str], list[int]] = {}
        for name, phase, help_ in PHASES:
            full = f"kafka_network_requestmetrics_{name}"
            yield Family(full, SUMMARY, help_, self._summary(full, phase, known, taken))
        if renews:
            self._before, self._recent, self._since = self._recent, taken, self._monotonic()
        yield Family(
            "headrace_request_duration_seconds",
            HISTOGRAM,
            "Time from the arrival of requests until the kernel had their replies.",
            self._histogram("headrace_request_duration_seconds", known),
        )

    def _label(self, key: int) -> tuple[str, tuple[str, ...]]:
        found = self._labels.get(key)
        if found is None:
            name = self._statistics.name(key)
            found = (
                labels(request=name),
                tuple(labels(request=name, quantile=f"{share:g}") for share in QUANTILES),
            )
            self._labels[key] = found
        return found

    def _summary(
        self,
        name: str,
        phase: str,
        known: Sequence[RequestTimes],
        taken: dict[tuple[int, str], list[int]],
    ) -> Iterator[str]:
        for times in known:
            buckets, seconds = distribution(times, phase)
            taken[times.key, phase] = buckets
            earlier = self._before.get((times.key, phase)) or self._recent.get((times.key, phase))
            recent = buckets if earlier is None else [a - b for a, b in zip(buckets, earlier, strict=True)]
            label, quantiles = self._label(times.key)
            for share, each in zip(QUANTILES, quantiles, strict=True):
                yield f"{name}{each} {_number(quantile(recent, share))}\n"
            yield f"{name}_sum{label} {seconds * 1000:.6g}\n"
            yield f"{name}_count{label} {sum(buckets)}\n"

    def _histogram(self, name: str, known: Sequence[RequestTimes]) -> Iterator[str]:
        for times in known:
            buckets, seconds = distribution(times, "total")
            request = self._statistics.name(times.key)
            below, number = 0, 0
            for bound in LE:
                while number < len(BOUNDS) and BOUNDS[number] <= bound:
                    below += buckets[number]
                    number += 1
                yield f"{name}_bucket{labels(request=request, le=bound)} {below}\n"
            yield f"{name}_bucket{labels(request=request, le='+Inf')} {sum(buckets)}\n"
            yield f"{name}_sum{labels(request=request)} {seconds:.6f}\n"
            yield f"{name}_count{labels(request=request)} {sum(buckets)}\n"


def _count(times: RequestTimes) -> int:
    return sum(times.at_once.buckets) + sum(times.total.buckets)


def _number(value: float) -> str:
    return "NaN" if value != value else f"{value:.4g}"
