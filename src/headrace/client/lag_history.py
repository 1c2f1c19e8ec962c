"""The lag of the last hours, in the compacted topic `__headrace_lag` and nowhere else.

Each group has a ring of keys, one for each interval of a day, so that compaction itself forgets what is older.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from headrace.client.admin import Admin
from headrace.client.control_topic import ControlTopic
from headrace.client.lag import GroupLag
from headrace.client.producer import Producer

TOPIC = "__headrace_lag"
KEEP = 86_400.0
"""Seconds after which an entry is overwritten."""
INTERVAL = 60.0


@dataclass(frozen=True, slots=True)
class Entry:
    group: str
    at: float
    state: str
    records: int
    seconds: float | None
    trend: float | None
    rate_in: float | None
    rate_out: float | None
    seconds_until_loss: float | None

    @classmethod
    def of(cls, lag: GroupLag) -> Entry:
        figures = lag.as_json()
        names = (
            "group",
            "at",
            "state",
            "records",
            "seconds",
            "trend",
            "rate_in",
            "rate_out",
            "seconds_until_loss",
        )
        return cls(**{name: figures[name] for name in names})

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Entry | None:
        try:
            return cls(**document)
        except TypeError:
            return None  # of another version

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


class LagHistory:
    def __init__(self, config: Mapping[str, object], interval: float = INTERVAL) -> None:
        """``interval`` is how often lag is recorded."""
        # What a group that is gone has left behind ends after a week.
        settings = {"cleanup.policy": "compact,delete", "retention.ms": str(7 * 86_400_000)}
        self._topic = ControlTopic(TOPIC, config, settings)
        self._interval = interval

    def ensure(self, admin: Admin) -> None:
        self._topic.ensure(admin)

    def record(self, producer: Producer[Any, Any], lags: Iterable[GroupLag]) -> None:
        for lag in lags:
            slot = int(lag.at / self._interval) % max(1, int(KEEP / self._interval))
            self._topic.put(producer, f"{lag.group_id}/{slot}", Entry.of(lag).as_json())

    def read(self, admin: Admin, groups: Iterable[str] = (), last: float = KEEP) -> list[Entry]:
        """In order of time; without ``groups``, those of all."""
        wanted, since = set(groups), time.time() - last
        found = (Entry.from_document(document) for document in self._topic.read(admin).values())
        kept = [
            each
            for each in found
            if each is not None and each.at >= since and (not wanted or each.group in wanted)
        ]
        return sorted(kept, key=lambda entry: (entry.at, entry.group))
