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

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from headrace.server.share.acknowledgement import Acknowledgement
from headrace.server.share.runs import Change, Run, Runs
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


class Acquired(NamedTuple):
    first: int
    last: int
    deliveries: int


class InFlight:
    def __init__(self, start: int, batches: Iterable[StateBatch] = ()) -> None:
        """As it was stored. What lies between batches has been handed out to members that have not answered."""
        self._runs = Runs(start, batches)

    # Questions

    @property
    def start(self) -> int:
        """Everything below is done with."""
        return self._runs.start

    @property
    def end(self) -> int:
        """The first offset that was never handed out."""
        return self._runs.end

    @property
    def runs(self) -> Sequence[Run]:
        return self._runs.all

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
        """Offsets with nothing to deliver: those not handed out yet never will be."""
        runs = self._runs
        if last < max(first, runs.start):
            return
        runs.extend(last + 1)
        for run in runs.cut(max(first, runs.start), last):
            if run.is_available:
                run.state = RecordState.ARCHIVED
        runs.join(first, last)

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
        runs = self._runs
        given: list[Acquired] = []
        count = 0
        position = max(offset, runs.start)
        for first, last in batches:
            first = max(first, position)
            if count >= most:
                break
            if last < first:
                continue
            room = most_locks - (runs.end - runs.start)
            if last >= runs.end:
                if room <= 0:
                    if first >= runs.end:
                        break
                    last = runs.end - 1
                elif exact:
                    waiting = self._available_in(first, runs.end - 1)
                    last = min(last, max(first, runs.end) + max(min(room, most - count - waiting), 0) - 1)
            self.archive(position, first - 1)
            runs.extend(last + 1)
            for run in runs.cut(first, last):
                if not run.is_available:
                    continue
                size = min(run.last - run.first + 1, most - count) if exact else run.last - run.first + 1
                if size == 0:
                    break
                runs.split(run.first + size)
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
            runs.join(first, last)
            position = last + 1
        else:
            if count < most and most_locks > runs.end - runs.start:
                self.archive(position, read_to - 1)
        runs.advance()
        return given

    def _available_in(self, first: int, last: int) -> int:
        return sum(run.last - run.first + 1 for run in self._runs.cut(first, last) if run.is_available)

    # Ending deliveries

    def acknowledge(
        self,
        member: str,
        acknowledgements: Iterable[Acknowledgement],
        limit: int,
        renewed: float | None,
    ) -> Change:
        """Decide what becomes of records that a member holds: all of them, or none and INVALID_RECORD_STATE.

        Records delivered `limit` times are not released for another delivery. Renewed locks last until `renewed` (None: not
        allowed).
        """
        decided: list[tuple[int, int, AcknowledgeType]] = []
        for each in acknowledgements:
            decided += each.by_type()
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
            for run in self._runs.between(max(first, self.start), last):
                if not run.is_acquired or run.member != member:
                    raise _not_held(max(first, run.first), min(last, run.last))
        change = Change()
        for first, last, kind in decided:
            for run in self._runs.cut(max(first, self.start), last):
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
        """The change is stored: apply it."""
        for run in self._runs.between(max(change.first, self.start), change.last):
            if run.change is change:
                run.state, run.count = run.next, run.next_count
                run.settle()
        self._runs.join(change.first, change.last)
        self._runs.advance()

    def undo(self, change: Change) -> None:
        """The change could not be stored: the member holds the records until its lock ends."""
        for run in self._runs.between(max(change.first, self.start), change.last):
            if run.change is change:
                run.change = None
                run.next, run.next_count = RecordState.AVAILABLE, 0

    def move_start(self, offset: int) -> None:
        """The log now begins at `offset`: forget everything before it, including locked records."""
        self._runs.move_start(offset)


def _not_held(first: int, last: int) -> KafkaError:
    return KafkaError(
        ErrorCode.INVALID_RECORD_STATE,
        f"The member does not hold the records {first} to {last}; its lock may have ended.",
    )
