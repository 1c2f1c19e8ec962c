"""Neighbouring records of a partition in the same state, as runs: no gaps, no overlaps, from the start offset to the end."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from headrace.server.share.states import FINAL, DeadRecords, RecordState, StateBatch

NOBODY = ""


class Change:
    """Deliveries that have ended, on the way into the share coordinator's log."""

    __slots__ = ("batches", "dead", "first", "last")

    def __init__(self) -> None:
        self.batches: list[StateBatch] = []
        self.dead: list[DeadRecords] = []
        """Those of them that go to a dead-letter topic, if the group has one."""
        self.first = -1
        self.last = -1


@dataclass(slots=True)
class Run:
    """Neighbouring records that have everything in common."""

    first: int
    last: int
    state: RecordState
    count: int = 0
    """How often they were delivered, this time included."""
    member: str = NOBODY
    deadline: float = 0.0
    change: Change | None = None
    """Set while what comes next is being stored."""
    next: RecordState = RecordState.AVAILABLE
    next_count: int = 0

    @property
    def is_available(self) -> bool:
        return self.state is RecordState.AVAILABLE and self.change is None

    @property
    def is_acquired(self) -> bool:
        """Locked by a member who has said nothing yet."""
        return self.state is RecordState.ACQUIRED and self.change is None

    def continues(self, before: Run) -> bool:
        return (
            self.state is before.state
            and self.count == before.count
            and self.member == before.member
            and self.deadline == before.deadline
            and self.change is before.change
            and self.next is before.next
            and self.next_count == before.next_count
        )

    def settle(self) -> None:
        """What came next has come: nobody holds the records, and nothing is being stored."""
        self.change, self.member, self.deadline = None, NOBODY, 0.0
        self.next, self.next_count = RecordState.AVAILABLE, 0


class Runs:
    def __init__(self, start: int, batches: Iterable[StateBatch] = ()) -> None:
        """As they were stored; what lies between batches is available."""
        self.start = start
        """Everything below is done with."""
        self.end = start
        """The first offset that was never handed out."""
        self._runs: list[Run] = []
        for batch in sorted(batches):
            if batch.last < self.end:
                continue
            self.extend(batch.first)
            first = max(batch.first, self.end)
            self._runs.append(Run(first, batch.last, RecordState(batch.state), batch.deliveries))
            self.end = batch.last + 1
        self.advance()

    def __iter__(self) -> Iterator[Run]:
        return iter(self._runs)

    @property
    def all(self) -> Sequence[Run]:
        return self._runs

    def advance(self) -> None:
        """Move the start past what is done with."""
        done = 0
        for run in self._runs:
            if run.state not in FINAL:
                break
            done += 1
            self.start = run.last + 1
        del self._runs[:done]

    def move_start(self, offset: int) -> None:
        """Forget everything before `offset`."""
        if offset <= self.start:
            return
        if offset >= self.end:
            self._runs.clear()
            self.start = self.end = offset
            return
        self.cut(offset, offset)
        del self._runs[: self._index(offset)]
        self.start = offset
        self.advance()

    def extend(self, end: int) -> None:
        """Cover the offsets up to `end`."""
        if end > self.end:
            self._runs.append(Run(self.end, end - 1, RecordState.AVAILABLE))
            self.end = end

    def _index(self, offset: int) -> int:
        return bisect_right(self._runs, offset, key=_first) - 1

    def between(self, first: int, last: int) -> list[Run]:
        """The runs that touch these offsets."""
        if last < first or not self._runs:
            return []
        return self._runs[max(self._index(first), 0) : self._index(last) + 1]

    def cut(self, first: int, last: int) -> list[Run]:
        """The runs that are exactly these offsets, split off from their neighbours."""
        if last < first or first >= self.end or last < self.start:
            return []
        self.split(first)
        self.split(last + 1)
        return self._runs[self._index(first) : self._index(last) + 1]

    def split(self, offset: int) -> None:
        """A run begins at `offset`."""
        if self.start < offset < self.end:
            index = self._index(offset)
            run = self._runs[index]
            if run.first < offset:
                self._runs.insert(index + 1, replace(run, first=offset))
                run.last = offset - 1

    def join(self, first: int, last: int) -> None:
        """Merge equal neighbours in and next to these offsets."""
        if not self._runs:
            return
        low = max(self._index(first) - 1, 0)
        high = min(self._index(last) + 1, len(self._runs) - 1)
        joined = [self._runs[low]]
        for run in self._runs[low + 1 : high + 1]:
            if run.continues(joined[-1]):
                joined[-1].last = run.last
            else:
                joined.append(run)
        self._runs[low : high + 1] = joined


def _first(run: Run) -> int:
    return run.first
