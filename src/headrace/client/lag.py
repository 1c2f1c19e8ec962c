"""How far a group is behind: in records, in seconds, and which way it is going.

Seconds are the age of the next record the group will read. The trend comes from the measurements of the last
minute, so a monitor that is kept and asked again knows more than a new one.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from types import TracebackType
from typing import Literal, Self

from headrace.client.admin import Admin, session_of
from headrace.client.administration import lag, offsets
from headrace.client.config import Config, connection_settings, merged
from headrace.client.consumer import Consumer
from headrace.client.errors import BrokerError
from headrace.client.record import TopicPartition

State = Literal["caught up", "draining", "steady", "growing", "stalled", "unknown"]


@dataclass(frozen=True, slots=True)
class PartitionLag:
    partition: TopicPartition
    committed: int | None
    end: int
    records: int
    seconds: float | None
    """Age of the next record to be read; 0 when there is none, None when it could not be read in time."""


@dataclass(frozen=True, slots=True)
class GroupLag:
    group_id: str
    at: float
    partitions: tuple[PartitionLag, ...]
    state: State
    trend: float | None
    """Records per second by which the lag changes; negative when it shrinks, None when not known yet."""
    consumed: float | None
    """Records per second that the group commits."""

    @property
    def records(self) -> int:
        return sum(each.records for each in self.partitions)

    @property
    def seconds(self) -> float | None:
        """The worst partition's."""
        known = [each.seconds for each in self.partitions if each.seconds is not None]
        return max(known, default=None)

    @property
    def seconds_to_catch_up(self) -> float | None:
        """How long the group needs at this pace; None when it is not catching up, or has nothing to read."""
        if self.records == 0:
            return 0.0 if self.partitions else None
        return None if self.trend is None or self.trend >= 0 else self.records / -self.trend


class LagMonitor:
    """Measures the lag of groups of one cluster; ``window`` seconds of measurements make the trend.

    >>> with LagMonitor("localhost:9092") as monitor:
    ...     print(monitor.measure("billing").records)
    """

    def __init__(self, config: Config = None, /, *, window: float = 60.0, **settings: object) -> None:
        connection = connection_settings(merged(config, settings))
        self._admin = Admin(connection)
        self._consumer: Consumer[bytes, bytes] = Consumer({**connection, **lag.ONE_RECORD})
        self._times = lag.NextRecordTimes(self._consumer.librdkafka)
        self._window = window
        self._history: dict[str, deque[tuple[float, int, int]]] = {}

    def measure(self, group_id: str, topics: Iterable[str] = ()) -> GroupLag:
        """The lag of the partitions the group has committed for, and of all partitions of ``topics``."""
        session = session_of(self._admin)
        found = lag.positions(session, group_id, self._admin.partitions_of(*topics))
        ends: dict[TopicPartition, int] = {}
        for each, position in found.items():
            if isinstance(position.end, BrokerError):
                raise position.end
            ends[TopicPartition(*each)] = position.end
        committed = {each: found[each].committed for each in ends}
        first = offsets.earliest(session, list(ends))
        # A committed offset may lie before the beginning of the log by now, and no commit means all of it.
        starts = {each: max(committed[each] or 0, first[each]) for each in ends}
        behind: dict[tuple[str, int], int] = {
            each: start for each, start in starts.items() if start < ends[each]
        }
        ages = self._times.ages(behind)
        now = time.time()
        measured = tuple(
            PartitionLag(
                each,
                committed[each],
                end,
                max(0, end - starts[each]),
                ages.get(each) if each in behind else 0.0,
            )
            for each, end in ends.items()
        )
        trend, consumed = self._trend(group_id, now, measured, starts)
        state = _state(sum(each.records for each in measured), trend, consumed) if measured else "unknown"
        return GroupLag(group_id, now, measured, state, trend, consumed)

    def close(self) -> None:
        self._consumer.close()
        self._admin.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _trend(
        self, group_id: str, now: float, measured: Iterable[PartitionLag], starts: dict[TopicPartition, int]
    ) -> tuple[float | None, float | None]:
        history = self._history.setdefault(group_id, deque())
        history.append((now, sum(each.records for each in measured), sum(starts.values())))
        while history[0][0] < now - self._window:
            history.popleft()
        then, records, position = history[0]
        if now - then < 1e-3:
            return None, None
        return (history[-1][1] - records) / (now - then), (history[-1][2] - position) / (now - then)


def _state(records: int, trend: float | None, consumed: float | None) -> State:
    if records == 0:
        return "caught up"
    if trend is None or consumed is None:
        return "unknown"
    if consumed <= 0:
        return "stalled"
    # A change of less than a hundredth of what is consumed is noise.
    noise = consumed / 100
    return "draining" if trend < -noise else "growing" if trend > noise else "steady"
