"""Which record may run now, and what may be committed. No I/O, no threads, no clock: the runner owns those.

A lane is the records of a partition that must run one after the other. Its first record is ready, running or
waiting for its next attempt; each knows the one behind it. Only the contiguous finished beginning of a partition
may be committed, so a crash repeats records but never skips one. A partition about to be given up starts nothing
new but fills the gaps before what has finished already, so that its next owner repeats nothing.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections import deque
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any, Literal

from headrace.client.record import Record, TopicPartition

Order = Literal["key", "partition", "none"]
_WHOLE_PARTITION = b""


@dataclass(slots=True, eq=False)
class Progress:
    """One assignment of one partition: what came, in order, and which of it is finished."""

    partition: TopicPartition
    offsets: deque[int] = field(default_factory=deque)
    """From the first unfinished record on."""
    finished: set[int] = field(default_factory=set)
    """What is finished after it."""
    running: set[int] = field(default_factory=set)
    lanes: dict[bytes, Task] = field(default_factory=dict)
    """The last record of each."""
    committable: int | None = None
    limit: float = math.inf
    """No record after this offset may start; finite once the partition is being given up."""

    def finish(self, offset: int) -> None:
        offsets, finished = self.offsets, self.finished
        if not offsets or offsets[0] != offset:
            finished.add(offset)
            return
        offsets.popleft()
        while offsets and offsets[0] in finished:
            offset = offsets.popleft()
            finished.remove(offset)
        self.committable = offset + 1

    @property
    def busy(self) -> bool:
        """Whether something that counts runs or may still start."""
        return bool(self.offsets) and self.offsets[0] <= self.limit


@dataclass(slots=True, eq=False)
class Task:
    record: Record[Any, Any]
    lane: bytes | None
    """None when it waits for no other record, and none for it."""
    progress: Progress
    behind: Task | None = None
    attempt: int = 1
    calls: int = 0
    """Every try, also those that do not count as an attempt."""
    done: tuple[str, ...] = ()
    """Of several handlers, those that need not be called again."""
    giving_up: BaseException | None = None
    """Set when only the dead letter is left to be written."""

    @property
    def may_run(self) -> bool:
        """True for what runs already, too, until it is abandoned."""
        return self.record.offset <= self.progress.limit


class Schedule:
    def __init__(self, order: Order) -> None:
        self._order = order
        self._partitions: dict[tuple[str, int], Progress] = {}
        self._ready: deque[Task] = deque()
        self._waiting: list[tuple[float, int, Task]] = []
        self._sequence = itertools.count()

    def add(self, record: Record[Any, Any]) -> bool:
        """Take a record in; True when it can run at once."""
        progress = self._partitions.get((record.topic, record.partition))
        if progress is None:
            progress = self._partitions[record.topic_partition] = Progress(record.topic_partition)
        progress.offsets.append(record.offset)
        lane = self._lane(record)
        task = Task(record, lane, progress)
        if lane is not None:
            last = progress.lanes.get(lane)
            progress.lanes[lane] = task
            if last is not None:
                last.behind = task
                return False
        self._ready.append(task)
        return True

    def take(self, now: float) -> Task | None:
        """The next task to run; its lane waits until ``finish``."""
        while self._waiting and self._waiting[0][0] <= now:
            self._ready.append(heapq.heappop(self._waiting)[2])
        while self._ready:
            task = self._ready.popleft()
            if task.may_run:
                task.progress.running.add(task.record.offset)
                return task
        return None

    def next_due(self) -> float | None:
        """When the first waiting task may run again."""
        return self._waiting[0][0] if self._waiting else None

    def finish(self, task: Task) -> bool:
        """The record is done. True when another record of its lane can run now."""
        progress = task.progress
        progress.running.discard(task.record.offset)
        progress.finish(task.record.offset)
        if task.lane is None:
            return False
        if task.behind is None:
            if progress.lanes.get(task.lane) is task:
                del progress.lanes[task.lane]
            return False
        if not task.behind.may_run:
            return False
        self._ready.append(task.behind)
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
        _give_up(task.progress, task.record.offset - 1)

    def stop(self, partitions: Collection[TopicPartition]) -> None:
        """Start nothing of these partitions but what lies before something that has finished or runs."""
        for partition in partitions:
            progress = self._partitions.get(partition)
            if progress is not None:
                _give_up(progress, max((*progress.finished, *progress.running), default=-1))
        for _, _, task in self._waiting:
            if math.isfinite(task.progress.limit):
                _give_up(task.progress, task.record.offset - 1)
        self._sweep()

    def forget(self, partitions: Collection[TopicPartition]) -> None:
        """These partitions are no longer ours; what still runs there no longer counts."""
        for partition in partitions:
            progress = self._partitions.pop(partition, None)
            if progress is not None:
                _give_up(progress, -1)
        self._sweep()

    def busy(self, partitions: Collection[TopicPartition]) -> bool:
        """Whether something of these partitions runs or may still start."""
        return any(each in self._partitions and self._partitions[each].busy for each in partitions)

    def load(self) -> dict[TopicPartition, int]:
        """Records of each partition from the first unfinished one on: what a crash now would repeat."""
        return {each.partition: len(each.offsets) for each in self._partitions.values()}

    def committable(self) -> dict[TopicPartition, int]:
        return {
            each.partition: each.committable
            for each in self._partitions.values()
            if each.committable is not None
        }

    def _sweep(self) -> None:
        """Let go of what may not start any more."""
        self._ready = deque(task for task in self._ready if task.may_run)
        self._waiting = [entry for entry in self._waiting if entry[2].may_run]
        heapq.heapify(self._waiting)

    def _lane(self, record: Record[Any, Any]) -> bytes | None:
        if self._order == "key":
            return record.raw_key
        return _WHOLE_PARTITION if self._order == "partition" else None


def _give_up(progress: Progress, limit: float) -> None:
    progress.limit = min(progress.limit, limit)
