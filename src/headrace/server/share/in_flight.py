"""The records of one partition between a share group's start offset and the last one it was given, each in a named state.

Pure: no log, no clock, no coordinator. Neighbours in the same state are one run, and the runs cover every offset from
`start` to `end`. What ends a delivery (an acknowledgement, a lock that ran out) is a `Change`: it is decided here, stored by
the share coordinator, and only then takes effect; until then nobody else gets the records, and if it cannot be stored they
are as they were.

    AVAILABLE ── acquire ──► ACQUIRED ── accept ───────────────► ACKNOWLEDGED
        ▲                     │  │  └─── reject, gap ──────────► ARCHIVED
        └── release, time ────┘  └────── release or time, delivered too often ──► ARCHIVED
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from headrace.server.share.states import (
    AFTER,
    FINAL,
    AcknowledgeType,
    DeadReason,
    DeadRecords,
    RecordState,
    StateBatch,
)
from headrace.wire.errors import ErrorCode, KafkaError

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


class Acknowledgement(NamedTuple):
    first: int
    last: int
    types: Sequence[int]
    """One for all of them, or one for each."""


class Acquired(NamedTuple):
    first: int
    last: int
    deliveries: int


class InFlight:
    def __init__(self, start: int, batches: Iterable[StateBatch] = ()) -> None:
        """As it was stored. What lies between batches has been handed out to members that have not answered."""
        self.start = start
        """Everything below is done with."""
        self.end = start
        """The first offset that was never handed out."""
        self._runs: list[Run] = []
        for batch in sorted(batches):
            if batch.last < self.end:
                continue
            self._extend(batch.first)
            first = max(batch.first, self.end)
            self._runs.append(Run(first, batch.last, RecordState(batch.state), batch.deliveries))
            self.end = batch.last + 1
        self.advance()

    # Questions

    @property
    def runs(self) -> Sequence[Run]:
        return self._runs

    @property
    def in_flight(self) -> int:
        return self.end - self.start

    def next_offset(self) -> int:
        """Where the next records to hand out begin."""
        return next((run.first for run in self._runs if run.is_available), self.end)

    def has_acquired(self) -> bool:
        return any(run.state is RecordState.ACQUIRED for run in self._runs)

    def next_deadline(self) -> float | None:
        return min((run.deadline for run in self._runs if run.is_acquired), default=None)

    def after(self, changes: Sequence[Change]) -> tuple[int, int]:
        """Where the start will be when these changes are stored, and how many records behind it are done with."""
        start, complete, leading = self.start, 0, True
        for run in self._runs:
            decided = run.next if run.change is not None and run.change in changes else run.state
            if decided not in FINAL:
                leading = False
            elif leading:
                start = run.last + 1
            else:
                complete += run.last - run.first + 1
        return start, complete

    # Handing out

    def archive(self, first: int, last: int) -> None:
        """There is nothing to deliver at these offsets: what was not handed out before never will be."""
        if last < max(first, self.start):
            return
        self._extend(last + 1)
        for run in self._cut(max(first, self.start), last):
            if run.is_available:
                run.state = RecordState.ARCHIVED
        self._join(first, last)

    def acquire(
        self,
        member: str,
        offset: int,
        batches: Iterable[tuple[int, int]],
        read_to: int,
        most: int,
        deadline: float,
        most_locks: int,
        *,
        exact: bool = False,
        group_by: int = 0,
    ) -> list[Acquired]:
        """Give a member what is available in the log from `offset` to before `read_to`.

        `batches` are its record batches (first and last offset each); between them is nothing to deliver: markers, aborted
        records, holes that compaction has left. The batch that reaches `most` records is given whole unless `exact`. New
        records are taken only while fewer than `most_locks` are in flight. Neighbours are reported together, but cut at
        the batch where `group_by` records are reached.
        """
        given: list[Acquired] = []
        count = 0
        position = max(offset, self.start)
        for first, last in batches:
            first = max(first, position)
            if count >= most:
                break
            if last < first:
                continue
            room = most_locks - self.in_flight
            if last >= self.end:
                if room <= 0:
                    if first >= self.end:
                        break
                    last = self.end - 1
                elif exact:
                    waiting = self._available_in(first, self.end - 1)
                    last = min(last, max(first, self.end) + max(min(room, most - count - waiting), 0) - 1)
            self.archive(position, first - 1)
            self._extend(last + 1)
            for run in self._cut(first, last):
                if not run.is_available:
                    continue
                size = min(run.last - run.first + 1, most - count) if exact else run.last - run.first + 1
                if size == 0:
                    break
                self._split(run.first + size)
                run.state, run.member, run.deadline = RecordState.ACQUIRED, member, deadline
                run.count += 1
                count += size
                before = given[-1] if given else None
                if (
                    before is not None
                    and before.last + 1 == run.first
                    and before.deliveries == run.count
                    and not (0 < group_by <= run.first - before.first and run.first == first)
                ):
                    given[-1] = Acquired(before.first, run.last, run.count)
                else:
                    given.append(Acquired(run.first, run.last, run.count))
            self._join(first, last)
            position = last + 1
        else:
            if count < most and most_locks > self.in_flight:
                self.archive(position, read_to - 1)
        self.advance()
        return given

    def _available_in(self, first: int, last: int) -> int:
        return sum(run.last - run.first + 1 for run in self._cut(first, last) if run.is_available)

    # Ending deliveries

    def acknowledge(
        self,
        member: str,
        acknowledgements: Iterable[Acknowledgement],
        limit: int,
        renewed: float | None,
    ) -> Change:
        """What a member says of records that it holds: all of it, or INVALID_RECORD_STATE and nothing.

        Records delivered `limit` times are not released for another delivery. Renewed locks last until `renewed` (None: not
        allowed).
        """
        decided: list[tuple[int, int, AcknowledgeType]] = []
        for first, last, types in acknowledgements:
            decided += _by_type(first, last, types)
        for first, last, kind in decided:
            if kind is AcknowledgeType.RENEW and renewed is None:
                raise KafkaError(
                    ErrorCode.INVALID_RECORD_STATE,
                    "Renewing locks is switched off for this group by share.renew.acknowledge.enable.",
                )
            if last < self.start:
                continue  # deleted from the log meanwhile
            if last >= self.end:
                raise _not_held(first, last)
            for run in self._between(max(first, self.start), last):
                if not run.is_acquired or run.member != member:
                    raise _not_held(max(first, run.first), min(last, run.last))
        change = Change()
        for first, last, kind in decided:
            for run in self._cut(max(first, self.start), last):
                if run.change is not None:
                    self.undo(change)
                    raise _not_held(run.first, run.last)  # named twice in one request
                if kind is AcknowledgeType.RENEW:
                    assert renewed is not None
                    run.deadline = renewed
                else:
                    reason = DeadReason.REJECTED if kind is AcknowledgeType.REJECT else None
                    self._decide(change, run, AFTER[kind], run.count, limit, reason)
        return change

    def release(self, member: str) -> Change:
        """A member is gone: what it still holds is free again, as if it had never been delivered."""
        change = Change()
        for run in self._runs:
            if run.is_acquired and run.member == member:
                self._decide(change, run, RecordState.AVAILABLE, run.count - 1, limit=0)
        return change

    def expire(self, now: float, limit: int) -> Change:
        """Locks that have ended: the records are free again, or done with when they were delivered `limit` times."""
        change = Change()
        for run in self._runs:
            if run.is_acquired and run.deadline <= now:
                self._decide(change, run, RecordState.AVAILABLE, run.count, limit)
        return change

    def _decide(
        self,
        change: Change,
        run: Run,
        state: RecordState,
        count: int,
        limit: int,
        reason: DeadReason | None = None,
    ) -> None:
        if state is RecordState.AVAILABLE and limit and count >= limit:
            state, reason = RecordState.ARCHIVED, DeadReason.EXHAUSTED
        run.change, run.next, run.next_count = change, state, count
        change.batches.append(StateBatch(run.first, run.last, state, count))
        if reason is not None:
            change.dead.append(DeadRecords(run.first, run.last, count, reason))
        change.first = run.first if change.first < 0 else min(change.first, run.first)
        change.last = max(change.last, run.last)

    def complete(self, change: Change) -> None:
        """It is stored: it takes effect."""
        for run in self._between(max(change.first, self.start), change.last):
            if run.change is change:
                run.state, run.count = run.next, run.next_count
                _settle(run)
        self._join(change.first, change.last)
        self.advance()

    def undo(self, change: Change) -> None:
        """It could not be stored: the member still holds the records, until its lock ends."""
        for run in self._between(max(change.first, self.start), change.last):
            if run.change is change:
                run.change = None
                run.next, run.next_count = RecordState.AVAILABLE, 0

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
        """The log begins at `offset` now: what lay before is gone, whoever held it."""
        if offset <= self.start:
            return
        if offset >= self.end:
            self._runs.clear()
            self.start = self.end = offset
            return
        self._cut(offset, offset)
        del self._runs[: self._index(offset)]
        self.start = offset
        self.advance()

    # Runs

    def _extend(self, end: int) -> None:
        """Cover the offsets up to `end`."""
        if end > self.end:
            self._runs.append(Run(self.end, end - 1, RecordState.AVAILABLE))
            self.end = end

    def _index(self, offset: int) -> int:
        return bisect_right(self._runs, offset, key=_first) - 1

    def _between(self, first: int, last: int) -> list[Run]:
        """The runs that touch these offsets."""
        if last < first or not self._runs:
            return []
        return self._runs[max(self._index(first), 0) : self._index(last) + 1]

    def _cut(self, first: int, last: int) -> list[Run]:
        """The runs that are exactly these offsets, split off from their neighbours."""
        if last < first or first >= self.end or last < self.start:
            return []
        self._split(first)
        self._split(last + 1)
        return self._runs[self._index(first) : self._index(last) + 1]

    def _split(self, offset: int) -> None:
        """A run begins at `offset`."""
        if self.start < offset < self.end:
            index = self._index(offset)
            run = self._runs[index]
            if run.first < offset:
                self._runs.insert(index + 1, replace(run, first=offset))
                run.last = offset - 1

    def _join(self, first: int, last: int) -> None:
        """Make one of neighbours that have become equal, in and next to these offsets."""
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


def _settle(run: Run) -> None:
    run.change, run.member, run.deadline = None, NOBODY, 0.0
    run.next, run.next_count = RecordState.AVAILABLE, 0


def _by_type(first: int, last: int, types: Sequence[int]) -> list[tuple[int, int, AcknowledgeType]]:
    """Stretches of one acknowledgement with the same type."""
    if last < first or len(types) not in (1, last - first + 1):
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            f"An acknowledgement of offsets {first} to {last} has {len(types)} types; it needs one, or one for each.",
        )
    try:
        kinds = [AcknowledgeType(each) for each in types]
    except ValueError:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, f"{list(types)} holds an unknown acknowledge type."
        ) from None
    if len(kinds) == 1:
        return [(first, last, kinds[0])]
    stretches: list[tuple[int, int, AcknowledgeType]] = []
    for offset, kind in enumerate(kinds, first):
        if stretches and stretches[-1][2] is kind:
            stretches[-1] = (stretches[-1][0], offset, kind)
        else:
            stretches.append((offset, offset, kind))
    return stretches


def _not_held(first: int, last: int) -> KafkaError:
    return KafkaError(
        ErrorCode.INVALID_RECORD_STATE,
        f"The member does not hold the records {first} to {last}; its lock may have ended.",
    )
