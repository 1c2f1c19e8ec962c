"""Records in flight against a model that knows each of them alone; and what a new leader makes of what was stored."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from headrace.server.share.acknowledgement import Acknowledgement
from headrace.server.share.in_flight import InFlight
from headrace.server.share.runs import Change
from headrace.server.share.states import AcknowledgeType, DeadReason, RecordState, StateBatch
from headrace.wire.errors import ErrorCode, KafkaError

LIMIT = 3
LOCKS = 12
MEMBERS = st.sampled_from(["ann", "bob"])
TYPES = st.sampled_from(list(AcknowledgeType))


class Deliveries(RuleBasedStateMachine):
    """`stored` is what the coordinator has; `held` who may acknowledge what; `done` what must never be delivered again."""

    @initialize()
    def begin(self) -> None:
        self.log: list[tuple[int, int]] = []
        self.log_start = 0
        self.log_end = 0
        self.now = 0.0
        self.flight = InFlight(0)
        self.stored: dict[int, tuple[RecordState, int]] = {}
        self.start_stored = 0
        self.pending: list[Change] = []
        self.held: dict[int, tuple[str, float]] = {}
        self.counts: dict[int, int] = {}
        self.done: set[int] = set()

    @rule(size=st.integers(1, 4), hole=st.integers(0, 2))
    def append(self, size: int, hole: int) -> None:
        first = self.log_end + hole
        self.log.append((first, first + size - 1))
        self.log_end = first + size

    @rule(member=MEMBERS, most=st.integers(1, 6), exact=st.booleans(), batches=st.integers(1, 4))
    def acquire(self, member: str, most: int, exact: bool, batches: int) -> None:
        offset = self.flight.next_offset()
        found = [each for each in self.log if each[1] >= offset][:batches]
        read_to = found[-1][1] + 1 if found else offset
        given = self.flight.acquire(
            member, offset, found, read_to, most, self.now + 10, LOCKS, exact=exact, group_by=2
        )
        offsets = [each for one in given for each in range(one.first, one.last + 1)]
        assert offsets == sorted(set(offsets))
        there = {each for first, last in self.log for each in range(first, last + 1)}
        assert there.issuperset(offsets)
        if exact:
            assert len(offsets) <= most
            assert self.flight.in_flight <= LOCKS or not offsets or max(offsets) < self.flight.end
        for one in given:
            for each in range(one.first, one.last + 1):
                assert each not in self.held, "somebody holds it"
                assert each not in self.done, "it was done with"
                assert one.deliveries == self.counts.get(each, 0) + 1
                self.counts[each] = one.deliveries
                self.held[each] = (member, self.now + 10)

    @rule(member=MEMBERS, first=st.integers(0, 30), types=st.lists(TYPES, min_size=1, max_size=5))
    def acknowledge(self, member: str, first: int, types: list[AcknowledgeType]) -> None:
        last = first + len(types) - 1
        offsets = range(first, last + 1)
        alive = [each for each in offsets if each >= self.flight.start]
        allowed = all(self.held.get(each, ("", 0))[0] == member for each in alive)
        asked = [Acknowledgement(first, last, types)]
        if not allowed:
            with pytest.raises(KafkaError):
                self.flight.acknowledge(member, asked, LIMIT, renewed=self.now + 20)
            return
        change = self.flight.acknowledge(member, asked, LIMIT, renewed=self.now + 20)
        for offset, kind in zip(offsets, types, strict=True):
            if kind is AcknowledgeType.RENEW and offset in self.held:
                self.held[offset] = (member, self.now + 20)
            elif offset in self.held and offset >= self.flight.start:
                del self.held[offset]
        self.pending.append(change)

    @rule(seconds=st.integers(1, 15))
    def wait(self, seconds: int) -> None:
        self.now += seconds
        change = self.flight.expire(self.now, LIMIT)
        for batch in change.batches:
            for offset in range(batch.first, batch.last + 1):
                assert self.held.pop(offset)[1] <= self.now
        self.pending.append(change)
        assert all(deadline > self.now for _, deadline in self.held.values())

    @rule(member=MEMBERS)
    def leave(self, member: str) -> None:
        change = self.flight.release(member)
        for offset in [each for each, (who, _) in self.held.items() if who == member]:
            del self.held[offset]
        for batch in change.batches:
            assert batch.state is RecordState.AVAILABLE
        self.pending.append(change)

    @precondition(lambda self: self.pending)
    @rule()
    def store(self) -> None:
        change = self.pending.pop(0)
        self.start_stored, complete = self.flight.after([change])
        for batch in change.batches:
            for offset in range(batch.first, batch.last + 1):
                self.stored[offset] = (RecordState(batch.state), batch.deliveries)
                if offset >= self.flight.start:
                    self.counts[offset] = batch.deliveries
                if batch.state in (RecordState.ACKNOWLEDGED, RecordState.ARCHIVED):
                    self.done.add(offset)
                if batch.state is RecordState.AVAILABLE:
                    assert batch.deliveries < LIMIT
        self.flight.complete(change)
        assert self.flight.start == self.start_stored
        final = [
            run for run in self.flight.runs if run.state in (RecordState.ACKNOWLEDGED, RecordState.ARCHIVED)
        ]
        assert complete == sum(run.last - run.first + 1 for run in final)

    @precondition(lambda self: self.pending)
    @rule()
    def fail_to_store(self) -> None:
        change = self.pending.pop(0)
        self.flight.undo(change)
        for run in self.flight.runs:
            if run.state is RecordState.ACQUIRED and run.change is None:
                for offset in range(run.first, run.last + 1):
                    self.held[offset] = (run.member, run.deadline)

    @rule(by=st.integers(1, 5))
    def delete_from_the_log(self, by: int) -> None:
        self.log_start = min(self.log_start + by, self.log_end)
        self.log = [each for each in self.log if each[1] >= self.log_start]
        self.flight.move_start(self.log_start)
        for offset in [each for each in self.held if each < self.flight.start]:
            del self.held[offset]

    @rule()
    def change_the_leader(self) -> None:
        """Whatever was not stored is forgotten, and what was stored is not."""
        batches = [
            StateBatch(offset, offset, state, count)
            for offset, (state, count) in sorted(self.stored.items())
            if offset >= self.start_stored
        ]
        self.flight = InFlight(self.start_stored, batches)
        self.flight.move_start(self.log_start)
        self.pending, self.held = [], {}
        self.counts = {each.first: each.deliveries for each in batches}

    @invariant()
    def runs_are_whole(self) -> None:
        if not hasattr(self, "flight"):
            return
        position = self.flight.start
        for run in self.flight.runs:
            assert run.first == position <= run.last
            position = run.last + 1
        assert position == self.flight.end
        runs = self.flight.runs
        assert not runs or runs[0].state not in (RecordState.ACKNOWLEDGED, RecordState.ARCHIVED)


TestDeliveries: Any = Deliveries.TestCase
TestDeliveries.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)


def taken(flight: InFlight, member: str, count: int, most: int = 100) -> list[tuple[int, int, int]]:
    return [
        tuple(each)
        for each in flight.acquire(member, flight.next_offset(), [(0, count - 1)], count, most, 30.0, 2000)
    ]


def said(flight: InFlight, member: str, first: int, last: int, *types: AcknowledgeType) -> Change:
    return flight.acknowledge(member, [Acknowledgement(first, last, types)], 5, renewed=60.0)


def test_a_record_is_held_by_one_member_at_a_time() -> None:
    flight = InFlight(0)
    assert taken(flight, "ann", 10) == [(0, 9, 1)]
    assert taken(flight, "bob", 10) == []
    with pytest.raises(KafkaError) as refused:
        said(flight, "bob", 0, 0, AcknowledgeType.ACCEPT)
    assert refused.value.code is ErrorCode.INVALID_RECORD_STATE


def test_accepted_records_move_the_start_when_they_are_stored() -> None:
    flight = InFlight(0)
    taken(flight, "ann", 10)
    change = said(flight, "ann", 0, 3, AcknowledgeType.ACCEPT)
    assert (flight.start, flight.after([change])) == (0, (4, 0))
    flight.complete(change)
    assert (flight.start, flight.end) == (4, 10)


def test_what_is_done_with_behind_the_start_is_counted() -> None:
    flight = InFlight(0)
    taken(flight, "ann", 10)
    change = said(flight, "ann", 5, 6, AcknowledgeType.ACCEPT)
    assert flight.after([change]) == (0, 2)


def test_a_released_record_is_delivered_again_and_counted() -> None:
    flight = InFlight(0)
    taken(flight, "ann", 3)
    change = said(
        flight, "ann", 0, 2, AcknowledgeType.ACCEPT, AcknowledgeType.RELEASE, AcknowledgeType.ACCEPT
    )
    assert taken(flight, "bob", 3) == [], "not before it is stored"
    flight.complete(change)
    assert taken(flight, "bob", 3) == [(1, 1, 2)]


def test_a_change_that_cannot_be_stored_leaves_the_lock() -> None:
    flight = InFlight(0)
    taken(flight, "ann", 3)
    flight.undo(said(flight, "ann", 0, 2, AcknowledgeType.ACCEPT))
    flight.complete(said(flight, "ann", 0, 2, AcknowledgeType.ACCEPT))
    assert flight.start == 3


def test_a_record_delivered_too_often_is_dead() -> None:
    flight = InFlight(0, [StateBatch(0, 0, RecordState.AVAILABLE, 4)])
    assert taken(flight, "ann", 1) == [(0, 0, 5)]
    change = flight.expire(30.0, 5)
    assert [(each.first, each.deliveries, each.reason) for each in change.dead] == [
        (0, 5, DeadReason.EXHAUSTED)
    ]
    flight.complete(change)
    assert flight.start == 1


def test_a_renewed_lock_lasts_longer() -> None:
    flight = InFlight(0)
    taken(flight, "ann", 1)
    said(flight, "ann", 0, 0, AcknowledgeType.RENEW)
    assert flight.expire(59.0, 5).batches == []
    assert flight.next_deadline() == 60.0


def test_a_member_that_leaves_has_had_no_delivery() -> None:
    flight = InFlight(0)
    taken(flight, "ann", 2)
    flight.complete(flight.release("ann"))
    assert taken(flight, "bob", 2) == [(0, 1, 1)]


def test_one_record_that_is_not_held_refuses_the_whole_acknowledgement() -> None:
    flight = InFlight(0)
    taken(flight, "ann", 4)
    flight.complete(said(flight, "ann", 2, 2, AcknowledgeType.ACCEPT))
    with pytest.raises(KafkaError):
        said(flight, "ann", 0, 3, AcknowledgeType.ACCEPT)
    flight.complete(said(flight, "ann", 0, 1, AcknowledgeType.ACCEPT))
    assert flight.start == 3
