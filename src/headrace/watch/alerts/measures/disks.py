"""Rules about disks that fill: how much is free now, and when nothing will be if it goes on like this."""

from __future__ import annotations

from collections import deque

from headrace.client.administration import log_dirs
from headrace.client.durations import show_seconds
from headrace.client.errors import ClientError
from headrace.client.sizes import show_bytes
from headrace.watch.alerts.conditions import DiskFilling
from headrace.watch.alerts.sight import Sight
from headrace.watch.alerts.states import Finding, Seen

_Disk = tuple[int, str]
_ENOUGH = 0.5
"""Of its window, for a forecast."""


class Disks:
    """Remembers how much was free, so keep it and ask again. One for each rule: windows differ."""

    def __init__(self) -> None:
        self._samples: dict[_Disk, deque[tuple[float, int]]] = {}

    def findings(self, condition: DiskFilling, sight: Sight) -> list[Finding]:
        """One for each log directory of each live broker."""
        found = []
        for broker in sight.brokers.brokers:
            if not broker.live:
                continue
            try:
                directories = log_dirs.describe(sight.session, broker.id, [])
            except ClientError:
                found += [self._missing(disk) for disk in self._samples if disk[0] == broker.id]
                continue
            for each in directories:
                disk = (broker.id, each.path)
                if each.error is not None or each.usable_bytes is None or not each.total_bytes:
                    found.append(self._missing(disk))
                else:
                    found.append(self._judge(condition, disk, sight.now, each.usable_bytes, each.total_bytes))
        return found

    def _judge(self, condition: DiskFilling, disk: _Disk, now: float, usable: int, total: int) -> Finding:
        samples = self._samples.setdefault(disk, deque())
        samples.append((now, usable))
        # The newest sample outside of the window stays, so that a full window spans all of it.
        while len(samples) > 2 and samples[1][0] < now - condition.window:
            samples.popleft()
        free, full_in = usable / total, _full_in(samples)
        where = (
            f"{disk[1]} on broker {disk[0]} has {free:.1%} free ({show_bytes(usable)} of {show_bytes(total)})"
        )
        if free < condition.min_free:
            return _finding(disk, Seen.ACTIVE, f"{where}, less than {condition.min_free:.0%}", full_in)
        if now - samples[0][0] < condition.window * _ENOUGH:
            return _finding(disk, Seen.MISSING, where, None)
        if full_in is not None and full_in < condition.within:
            return _finding(
                disk, Seen.ACTIVE, f"{where} and is full in {show_seconds(full_in)} at this pace", full_in
            )
        return _finding(disk, Seen.CLEAR, where, full_in)

    @staticmethod
    def _missing(disk: _Disk) -> Finding:
        return _finding(
            disk, Seen.MISSING, f"{disk[1]} on broker {disk[0]} does not say how full it is", None
        )


def _full_in(samples: deque[tuple[float, int]]) -> float | None:
    """Seconds until nothing is free, by the line of least squares; None while it does not get less."""
    count = len(samples)
    if count < 2:
        return None
    start = samples[0][0]
    mean_time = sum(at - start for at, _ in samples) / count
    mean_free = sum(free for _, free in samples) / count
    spread = sum((at - start - mean_time) ** 2 for at, _ in samples)
    slope = (
        sum((at - start - mean_time) * (free - mean_free) for at, free in samples) / spread if spread else 0.0
    )
    return samples[-1][1] / -slope if slope < 0 else None


def _finding(disk: _Disk, seen: Seen, summary: str, value: float | None) -> Finding:
    labels = (("broker", str(disk[0])), ("path", disk[1]))
    return Finding(labels, seen, summary, None if value is None else round(value, 1))
