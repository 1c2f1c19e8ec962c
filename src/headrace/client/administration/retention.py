"""When retention may delete a record: what a topic's settings allow, and how large its partitions are.

A cluster that does not let us read settings or sizes leaves those limits unknown; it does not fail a measurement of lag.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from headrace.client.administration import configs, log_dirs
from headrace.client.administration import topics as admin
from headrace.client.administration.errors import NotPossible
from headrace.client.administration.names import Partition
from headrace.client.administration.session import Session
from headrace.client.errors import BrokerError, ConfigError

_FRESH = 60.0
"""Seconds for which settings and sizes are taken as they were read."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What a topic keeps; None is without a limit."""

    seconds: float | None = None
    bytes: int | None = None


class Retention:
    """Limits of topics and sizes of partitions, read again after a minute."""

    def __init__(self) -> None:
        self._limits: dict[str, tuple[float, Limits]] = {}
        self._sizes: dict[Partition, tuple[float, int | None]] = {}

    def limits(self, session: Session, topics: Collection[str]) -> dict[str, Limits]:
        now = time.monotonic()
        for topic in topics:
            if topic not in self._limits or self._limits[topic][0] < now - _FRESH:
                self._limits[topic] = now, _limits(session, topic)
        return {topic: self._limits[topic][1] for topic in topics}

    def sizes(self, session: Session, partitions: Iterable[Partition]) -> dict[Partition, int]:
        """In bytes, of the partitions whose size can be read."""
        wanted = list(partitions)
        now = time.monotonic()
        stale = [each for each in wanted if self._sizes.get(each, (-_FRESH * 2, 0))[0] < now - _FRESH]
        if stale:
            found = _sizes(session, stale)
            self._sizes.update({each: (now, found.get(each)) for each in stale})
        return {each: size for each in wanted if (size := self._sizes[each][1]) is not None}


def _limits(session: Session, topic: str) -> Limits:
    try:
        settings = {each.name: each.value for each in configs.describe(session, "topic", [topic])[topic]}
    except (BrokerError, ConfigError, NotPossible):
        return Limits()
    if "delete" not in (settings.get("cleanup.policy") or "delete").split(","):
        return Limits()  # compaction keeps the newest record of every key
    age, size = int(settings.get("retention.ms") or -1), int(settings.get("retention.bytes") or -1)
    return Limits(age / 1000 if age >= 0 else None, size if size >= 0 else None)


def _sizes(session: Session, partitions: Collection[Partition]) -> dict[Partition, int]:
    found: dict[Partition, int] = {}
    try:
        leaders: dict[int, list[Partition]] = {}
        for each in admin.partition_states(session, partitions):
            if each.leader is not None:
                leaders.setdefault(each.leader, []).append(each.key)
        for leader, led in leaders.items():
            for directory in log_dirs.describe(session, leader, led):
                found.update({(r.topic, r.partition): r.size for r in directory.replicas if not r.is_future})
    except (BrokerError, ConfigError, NotPossible):
        return found
    return found


def seconds_until_loss(
    limits: Limits,
    *,
    age: float | None,
    ageing: float | None,
    unread: int,
    trend: float | None,
    bytes_per_record: float | None,
) -> float | None:
    """Until retention may delete the next record to read, if things go on as they do; None when they lead nowhere near it.

    The earliest moment: a log is deleted by whole segments, so a record may live longer.
    """
    if unread <= 0:
        return None
    found = []
    pace = 1.0 if ageing is None else ageing  # at worst, the group does not move
    if limits.seconds is not None and age is not None:
        left = limits.seconds - age
        if left <= 0:
            found.append(0.0)
        elif pace > 0:
            found.append(left / pace)
    if limits.bytes is not None and bytes_per_record is not None:
        room = limits.bytes - unread * bytes_per_record
        if room <= 0:
            found.append(0.0)
        elif trend is not None and trend > 0 and bytes_per_record > 0:
            found.append(room / (trend * bytes_per_record))
    return min(found, default=None)
