"""Which record may run now, and what may be committed. No I/O, no threads, no clock: the runner owns those.

A lane holds the records that must run one after the other. Its first record is ready, running or waiting for
its next attempt; the others are behind it. Only the contiguous finished beginning of a partition may be
committed, so a crash repeats records but never skips one. A partition about to be given up starts nothing new
but fills the gaps before what has finished already, so that its next owner repeats nothing.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections import deque
from collections.abc import Collection, Hashable
from dataclasses import dataclass, field
from typing import Any, Literal

from headrace.client.record import Record, TopicPartition

Order = Literal["key", "partition", "none"]


@dataclass(slots=True, eq=False)
class Progress:
    """One assignment of one partition: what came, in order, and which of it is finished."""

    partition: TopicPartition
    offsets: deque[int] = field(default_factory=deque)
    finished: set[int] = field(default_factory=set)
    running: set[int] = field(default_factory=set)
    committable: int | None = None
    limit: float = math.inf
    """No record after this offset may start; finite once the partition is being given up."""

    def finish(self, offset: int) -> None:
        self.finished.add(offset)
        while self.offsets and self.offsets[0] in self.finished:
            first = self.offsets.popleft()
            self.finished.remove(first)
            self.committable = first + 1


@dataclass(slots=True, eq=False)
class Task:
    record: Record[Any, Any]
    lane: Hashable
    progress: Progress
    attempt: int = 1
    calls: int = 0
    """Every try, also those that do not count as an attempt."""
    giving_up: BaseException | None = None
    """Set when only the dead letter is left to be written."""

    @property
    def may_run(self) -> bool:
        """True for what runs already, too, until it is abandoned."""
        return self.record.offset <= self.progress.limit


class Schedule:
    def __init__(self, order: Order) -> None:
        self._order = order
        self._partitions: dict[TopicPartition, Progress] = {}
        self._lanes: dict[Hashable, deque[Task]] = {}
        self._ready: deque[Task] = deque()
        self._waiting: list[tuple[float, int, Task]] = []
        self._sequence = itertools.count()

    def add(self, record: Record[Any, Any]) -> bool:
        """Take a record in; True when it can run at once."""
        partition = record.topic_partition
        progress = self._partitions.get(partition)
        if progress is None:
            progress = self._partitions[partition] = Progress(partition)
        progress.offsets.append(record.offset)
        task = Task(record, self._lane(record), progress)
        lane = self._lanes.get(task.lane)
        if lane is not None:
            lane.append(task)
            return False
        self._lanes[task.lane] = deque((task,))
        self._ready.append(task)
        return True

    def take(self, now: float) -> Task | None:
        """The next task to run; it stays at the head of its lane until ``finish`` or ``retry``."""
        while self._waiting and self._waiting[0][0] <= now:
            self._ready.append(heapq.heappop(self._waiting)[2])
        if not self._ready:
            return None
        task = self._ready.popleft()
        task.progress.running.add(task.record.offset)
        return task

    def next_due(self) -> float | None:
        """When the first waiting task may run again."""
        return self._waiting[0][0] if self._waiting else None

    def finish(self, task: Task) -> bool:
        """The record is done. True when another record of its lane can run now."""
        task.progress.running.discard(task.record.offset)
        task.progress.finish(task.record.offset)
        lane = self._lanes.get(task.lane)
        if lane is None or lane[0] is not task:
            return False
        lane.popleft()
        if not lane:
            del self._lanes[task.lane]
            return False
        self._ready.append(lane[0])
        return True

    def retry(self, task: Task, due: float) -> None:
        """Run it again later; its lane waits, the other lanes of the partition go on."""
        if math.isfinite(task.progress.limit):
            self.abandon(task)
        else:
            task.progress.running.discard(task.record.offset)
            heapq.heappush(self._waiting, (due, next(self._sequence), task))

    def abandon(self, task: Task) -> None:
        """It will not be finished here; neither, then, is there a use in finishing what comes after it."""
        task.progress.running.discard(task.record.offset)
        self._give_up(task.progress, task.record.offset - 1)
        self._sweep()

    def stop(self, partitions: Collection[TopicPartition]) -> None:
        """Start nothing of these partitions but what lies before something that has finished or runs."""
        for partition in partitions:
            progress = self._partitions.get(partition)
            if progress is not None:
                self._give_up(progress, max((*progress.finished, *progress.running), default=-1))
        for _, _, task in self._waiting:
            if math.isfinite(task.progress.limit):
                self._give_up(task.progress, task.record.offset - 1)
        self._sweep()

    def forget(self, partitions: Collection[TopicPartition]) -> None:
        """These partitions are no longer ours; what still runs there no longer counts."""
        for partition in partitions:
            progress = self._partitions.pop(partition, None)
            if progress is not None:
                progress.running.clear()
                self._give_up(progress, -1)
        self._sweep()

    def busy(self, partitions: Collection[TopicPartition]) -> bool:
        """Whether something of these partitions runs or may still start."""
        return any(lane[0].progress.partition in partitions for lane in self._lanes.values())

    def load(self) -> dict[TopicPartition, int]:
        """Records of each partition from the first unfinished one on: what a crash now would repeat."""
        return {partition: len(progress.offsets) for partition, progress in self._partitions.items()}

    def committable(self) -> dict[TopicPartition, int]:
        return {
            partition: progress.committable
            for partition, progress in self._partitions.items()
            if progress.committable is not None
        }

    def _give_up(self, progress: Progress, limit: float) -> None:
        progress.limit = min(progress.limit, limit)

    def _sweep(self) -> None:
        """Remove what may not start any more."""
        lanes: dict[Hashable, deque[Task]] = {}
        for name, lane in self._lanes.items():
            left = deque(task for task in lane if task.may_run)
            if left:
                lanes[name] = left
        self._lanes = lanes
        self._ready = deque(task for task in self._ready if task.may_run)
        self._waiting = [entry for entry in self._waiting if entry[2].may_run]
        heapq.heapify(self._waiting)

    def _lane(self, record: Record[Any, Any]) -> Hashable:
        if self._order == "partition":
            return record.topic, record.partition
        if self._order == "key" and record.raw_key is not None:
            return record.topic, record.partition, record.raw_key
        return record.topic, record.partition, None, record.offset
