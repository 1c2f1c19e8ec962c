"""The life of an alert, as a state machine that is told anything in any order."""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.watch.alerts.states import (
    Alert,
    Outcome,
    Phase,
    Seen,
    Told,
    begin,
    due,
    key_of,
    step,
    tell,
)

REPEAT = {"pager": 100.0}
GAP = 50.0


def fresh(at: float = 0.0, wait: float = 0.0) -> Alert:
    bare = Alert("rule", "rule", (), Phase.PENDING, at, at, receivers=("pager",))
    return begin(bare, at, wait)


def test_without_for_it_fires_at_once() -> None:
    assert fresh().phase is Phase.FIRING


def test_it_is_pending_for_as_long_as_for_says() -> None:
    alert = fresh(wait=60)
    assert alert.phase is Phase.PENDING
    alert = step(alert, Seen.ACTIVE, 30, 60, GAP)
    assert alert is not None
    assert alert.phase is Phase.PENDING
    alert = step(alert, Seen.ACTIVE, 60, 60, GAP)
    assert alert is not None
    assert alert.phase is Phase.FIRING
    assert (alert.since, alert.fired_at) == (0, 60)


def test_time_in_which_nobody_looked_does_not_count_towards_for() -> None:
    alert = fresh(wait=60)
    for now in (0, 100, 130):
        stepped = step(alert, Seen.ACTIVE, now, 60, GAP)
        assert stepped is not None
        assert stepped.phase is Phase.PENDING
        alert = stepped
    fired = step(alert, Seen.ACTIVE, 160, 60, GAP)
    assert fired is not None
    assert fired.phase is Phase.FIRING


def test_missing_data_neither_fires_nor_resolves() -> None:
    pending, firing = fresh(wait=60), fresh()
    assert step(pending, Seen.MISSING, 1000, 60, GAP) == pending
    assert step(firing, Seen.MISSING, 1000, 0, GAP) == firing


def test_who_was_told_hears_that_it_is_over_and_then_it_is_forgotten() -> None:
    alert = tell(fresh(), "pager", Phase.FIRING, 0, Outcome.SENT)
    alert = step(alert, Seen.CLEAR, 10, 0, GAP)
    assert alert is not None
    assert alert.phase is Phase.RESOLVED
    assert due(alert, 10, REPEAT, silenced=False) == [("pager", Phase.RESOLVED)]
    assert step(alert, Seen.CLEAR, 11, 0, GAP) == alert, "it is kept until that is delivered"
    alert = tell(alert, "pager", Phase.RESOLVED, 12, Outcome.SENT)
    assert due(alert, 12, REPEAT, silenced=False) == []
    assert step(alert, Seen.CLEAR, 13, 0, GAP) is None


def test_who_was_never_told_hears_nothing_of_the_end() -> None:
    for told in ({}, {"pager": Told(Phase.FIRING, 0, Outcome.FAILED)}):
        alert = Alert("rule", "rule", (), Phase.FIRING, 0, 0, receivers=("pager",), told=told)
        over = step(alert, Seen.CLEAR, 10, 0, GAP)
        assert over is not None
        assert due(over, 10, REPEAT, silenced=False) == []


def test_a_notice_that_may_have_arrived_gets_its_end() -> None:
    alert = tell(fresh(), "pager", Phase.FIRING, 0, Outcome.DOUBTFUL)
    over = step(alert, Seen.CLEAR, 10, 0, GAP)
    assert over is not None
    assert due(over, 10, REPEAT, silenced=False) == [("pager", Phase.RESOLVED)]


def test_a_silence_holds_back_the_firing_but_not_the_end() -> None:
    alert = fresh()
    assert due(alert, 0, REPEAT, silenced=True) == []
    told = tell(alert, "pager", Phase.FIRING, 0, Outcome.SENT)
    assert due(told, 500, REPEAT, silenced=True) == []
    over = step(told, Seen.CLEAR, 510, 0, GAP)
    assert over is not None
    assert due(over, 510, REPEAT, silenced=True) == [("pager", Phase.RESOLVED)]


def test_what_was_being_sent_when_an_instance_died_is_sent_again() -> None:
    alert = tell(fresh(), "pager", Phase.FIRING, 0, Outcome.SENDING)
    restored = Alert.from_document(alert.as_document())
    assert restored == alert
    assert due(restored, 1, REPEAT, silenced=False) == [("pager", Phase.FIRING)]


def test_what_returns_before_its_end_was_told_is_not_told_again() -> None:
    alert = tell(fresh(), "pager", Phase.FIRING, 0, Outcome.SENT)
    over = step(alert, Seen.CLEAR, 10, 0, GAP)
    assert over is not None
    back = step(over, Seen.ACTIVE, 11, 0, GAP)
    assert back is not None
    assert back.phase is Phase.FIRING
    assert due(back, 11, REPEAT, silenced=False) == []


def test_a_document_of_another_version_is_none() -> None:
    assert Alert.from_document({"key": "x"}) is None
    assert Alert.from_document({**fresh().as_document(), "phase": "sleeping"}) is None


def test_keys_do_not_depend_on_the_order_of_labels() -> None:
    assert key_of("r", [("b", "2"), ("a", "1")]) == key_of("r", [("a", "1"), ("b", "2")]) == "r/a=1/b=2"


@dataclass
class World:
    """What an outsider sees: looks in, delivered notices out."""

    alert: Alert | None = None
    now: float = 0.0
    told: list[Phase] = field(default_factory=list)
    held: float = 0.0
    """For how long the condition has been seen, without a break that counts."""


MOVES = st.lists(
    st.tuples(
        st.sampled_from(list(Seen)),
        st.floats(0.1, 40),
        st.booleans(),  # silenced?
        st.sampled_from([Outcome.SENT, Outcome.FAILED, Outcome.DOUBTFUL, None]),  # None: still under way
        st.booleans(),  # restart?
    ),
    max_size=60,
)


@settings(max_examples=60)
@given(MOVES, st.sampled_from([0.0, 30.0, 90.0]))
def test_whatever_happens_notices_make_sense(
    moves: list[tuple[Seen, float, bool, Outcome | None, bool]], wait: float
) -> None:
    world = World()
    for seen, passed, silenced, outcome, restart in moves:
        world.now += passed
        before = world.alert
        if before is None:
            world.alert = fresh(world.now, wait) if seen is Seen.ACTIVE else None
        else:
            world.alert = step(before, seen, world.now, wait, GAP)
        after = world.alert
        if seen is Seen.MISSING:
            assert after == before, "nothing changes without data"
        if seen is Seen.CLEAR:
            assert after is None or after.phase is Phase.RESOLVED
        if (
            after is not None
            and after.phase is Phase.FIRING
            and (before is None or before.phase is not Phase.FIRING)
        ):
            assert seen is Seen.ACTIVE
            assert world.now - after.since >= wait
        if after is None:
            assert before is None or not before.told_of_firing()
            continue
        if restart:
            assert Alert.from_document(after.as_document()) == after
        notices = due(after, world.now, REPEAT, silenced=silenced)
        assert len(notices) <= 1
        for receiver, phase in notices:
            assert phase is after.phase
            assert not (silenced and phase is Phase.FIRING)
            if phase is Phase.RESOLVED:
                told = after.told[receiver]
                assert told.phase is Phase.FIRING or told.outcome is Outcome.SENDING
            taken = outcome or Outcome.SENDING
            world.alert = tell(after, receiver, phase, world.now, taken)
            if (
                phase is Phase.FIRING
                and taken is Outcome.SENT
                and world.told
                and world.told[-1] is Phase.FIRING
            ):
                last = after.told[receiver]
                assert last.outcome is not Outcome.SENT or world.now - last.at >= REPEAT[receiver]
            # A firing counts when it may have arrived; an end counts when nothing more will be said of it.
            if taken is not (Outcome.FAILED if phase is Phase.FIRING else Outcome.SENDING):
                world.told.append(phase)
    pairs = zip(world.told, world.told[1:], strict=False)
    assert (Phase.RESOLVED, Phase.RESOLVED) not in pairs


@settings(max_examples=60)
@given(st.lists(st.sampled_from(list(Seen)), min_size=1, max_size=40))
def test_it_fires_once_until_it_is_over(looks: list[Seen]) -> None:
    alert: Alert | None = None
    fired = 0
    for now, seen in enumerate(looks):
        before = alert.phase if alert else None
        alert = step(alert, seen, now, 2, GAP) if alert else fresh(now, 2) if seen is Seen.ACTIVE else None
        fired += alert is not None and alert.phase is Phase.FIRING and before is not Phase.FIRING
    runs = 0
    held: int | None = None
    for now, seen in enumerate(looks):
        if seen is Seen.CLEAR:
            held = None
        elif seen is Seen.ACTIVE:
            held = now if held is None else held
            runs += held >= 0 and now - held >= 2
            if held >= 0 and now - held >= 2:
                held = -1  # counted until it is clear again
    assert fired == runs
