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

from headrace.client.admin import Admin
from headrace.client.config import Config, connection_settings, merged
from headrace.client.consumer import Consumer
from headrace.client.record import TopicPartition

State = Literal["caught up", "draining", "steady", "growing", "stalled", "unknown"]
_READ_TIMEOUT = 5.0


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
        self._consumer: Consumer[bytes, bytes] = Consumer(connection)
        self._window = window
        self._history: dict[str, deque[tuple[float, int, int]]] = {}
        self._times: dict[TopicPartition, tuple[int, int]] = {}

    def measure(self, group_id: str, topics: Iterable[str] = ()) -> GroupLag:
        """The lag of the partitions the group has committed for, and of all partitions of ``topics``."""
        committed = self._admin.group_offsets(group_id)
        partitions = sorted({*committed, *self._admin.partitions_of(*topics)})
        first = self._admin.offsets("earliest", partitions)
        ends = self._admin.offsets("latest", partitions)
        # A committed offset may lie before the beginning of the log by now, and no commit means all of it.
        starts = {each: max(committed.get(each, 0), first[each]) for each in partitions}
        behind = {each: start for each, start in starts.items() if start < ends[each]}
        times = self._times_of(behind)
        now = time.time()
        measured = tuple(
            PartitionLag(
                each,
                committed.get(each),
                ends[each],
                max(0, ends[each] - starts[each]),
                _age(now, times.get(each)) if each in behind else 0.0,
            )
            for each in partitions
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

    def _times_of(self, starts: dict[TopicPartition, int]) -> dict[TopicPartition, int]:
        """The timestamp of the record at each offset; what was read before is not read again."""
        unknown = {
            each: offset for each, offset in starts.items() if self._times.get(each, (-1, 0))[0] != offset
        }
        deadline = time.monotonic() + _READ_TIMEOUT
        self._consumer.assign(unknown)
        while unknown and time.monotonic() < deadline:
            for record in self._consumer.poll(0.2, max_records=len(unknown)):
                start = unknown.pop(record.topic_partition, None)
                if start is not None:
                    self._times[record.topic_partition] = start, record.timestamp
        self._consumer.assign([])
        return {each: self._times[each][1] for each in starts if each in self._times and each not in unknown}


def _age(now: float, timestamp: int | None) -> float | None:
    return None if timestamp is None or timestamp < 0 else max(0.0, now - timestamp / 1000)


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
