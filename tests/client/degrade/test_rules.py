"""What rules drop, when they engage, and which states they may be in."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.client import (
    ConfigError,
    DropWhere,
    GroupLag,
    LagBounds,
    PartitionLag,
    PastDeadline,
    Record,
    SampleByKey,
    SwitchOff,
    TopicPartition,
    serializers,
)
from headrace.client.degrade.control import Board, Command
from headrace.client.degrade.rules import Rule, completed
from headrace.client.degrade.states import Order, RuleState, Signal, after
from headrace.client.degrade.switchboard import Switchboard
from headrace.client.lag_states import LagState

NOW = 1_700_000_000.0


def record(
    key: bytes | None = None,
    value: bytes = b"",
    headers: tuple[tuple[str, bytes | None], ...] = (),
    age: float = 0,
    offset: int = 0,
) -> Record:
    decode = serializers.json().deserialize
    return Record("orders", 0, offset, key, value, headers, round((NOW - age) * 1000), None, decode)


def lag(
    records: int = 0, seconds: float | None = 0.0, state: LagState = LagState.OK, **figures: float
) -> GroupLag:
    partition = PartitionLag(TopicPartition("orders", 0), 0, records, records, seconds, state, **figures)  # type: ignore[arg-type]
    return GroupLag("billing", NOW, (partition,), state)


@pytest.mark.parametrize(
    ("rule", "late", "in_time"),
    [
        (PastDeadline(max_age=10), record(age=10.5), record(age=9.5)),
        (
            PastDeadline(header="deadline"),
            record(headers=(("deadline", str(int(NOW - 1) * 1000).encode()),)),
            record(headers=(("deadline", str(int(NOW + 1) * 1000).encode()),)),
        ),
        (
            PastDeadline(header="deadline"),
            record(headers=(("deadline", b"2023-11-14T22:13:19Z"),)),
            record(headers=(("deadline", b"2023-11-14T22:13:21+00:00"),)),
        ),
        (
            PastDeadline(field="until"),
            record(value=b'{"until": 1699999999000}'),
            record(value=b'{"until": "2023-11-14T22:13:21"}'),
        ),
    ],
)
def test_what_is_past_its_deadline_is_dropped(rule: Rule, late: Record, in_time: Record) -> None:
    assert rule.reason(late, NOW)
    assert rule.reason(in_time, NOW) is None


@pytest.mark.parametrize(
    "kept",
    [
        record(value=b"{}"),
        record(value=b"[1]"),
        record(value=b"no json"),
        record(value=b'{"until": "soon"}'),
        record(value=b'{"until": null}'),
    ],
)
def test_a_record_without_a_readable_deadline_is_kept(kept: Record) -> None:
    assert PastDeadline(field="until").reason(kept, NOW) is None
    assert PastDeadline(header="until").reason(kept, NOW) is None


@given(st.sets(st.binary(min_size=1), max_size=50), st.floats(0, 0.99), st.floats(0, 0.99))
def test_a_sample_keeps_the_same_keys_always_and_a_larger_one_keeps_those_too(
    keys: set[bytes], one: float, other: float
) -> None:
    small, large = sorted((one, other))

    def kept(share: float) -> set[bytes]:
        rule = SampleByKey(keep=share)
        first = {key for key in keys if rule.reason(record(key, offset=1), NOW) is None}
        assert first == {key for key in keys if rule.reason(record(key, age=50, offset=9), NOW) is None}
        return first

    assert kept(small) <= kept(large)


def test_a_sample_keeps_about_its_share_of_keys_and_of_records_without_one() -> None:
    rule = SampleByKey(keep=0.1)
    keys = sum(rule.reason(record(f"buyer-{n}".encode()), NOW) is None for n in range(10_000))
    alone = sum(rule.reason(record(None, offset=n), NOW) is None for n in range(10_000))
    assert 850 < keys < 1150
    assert 850 < alone < 1150


def test_a_predicate_drops_what_it_is_true_for_and_keeps_what_it_fails_on() -> None:
    rule = DropWhere(predicate=lambda each: each.value["bot"])  # type: ignore[index]
    assert rule.reason(record(value=b'{"bot": true}'), NOW)
    assert rule.reason(record(value=b'{"bot": false}'), NOW) is None
    assert rule.reason(record(value=b"{}"), NOW) is None


@given(
    st.integers(0, 10**6),
    st.integers(0, 10**6),
    st.lists(st.one_of(st.none(), st.integers(0, 2 * 10**6)), max_size=60),
)
def test_a_rule_engages_at_its_upper_bound_and_is_released_only_at_the_lower_one(
    one: int, other: int, lags: list[int | None]
) -> None:
    release, engage = sorted((one, other))
    if engage == release:
        engage += 1
    board = Switchboard("billing", [SampleByKey(keep=0, when=LagBounds(records=(engage, release)))], NOW)
    acts = False
    for number, records in enumerate(lags):
        board.step(Board(), lambda _, at=records: None if at is None else lag(at), NOW + number)  # type: ignore[misc]
        if records is not None and records >= engage:
            acts = True
        elif records is not None and records <= release:
            acts = False
        assert bool(board.active().rules) == acts


@given(st.lists(st.tuples(st.sampled_from(Order), st.sampled_from(Signal)), max_size=40))
def test_a_command_wins_over_the_condition_until_auto(events: list[tuple[Order, Signal]]) -> None:
    state = RuleState.OFF
    for order, signal in events:
        before, state = state, after(state, order, signal)
        if order is Order.ON:
            assert state is RuleState.HELD_ON
        elif order is Order.OFF:
            assert state is RuleState.HELD_OFF
        elif signal is Signal.STAY:
            assert state.acts == (before is RuleState.ENGAGED)
        else:
            assert state is (RuleState.ENGAGED if signal is Signal.ENGAGE else RuleState.OFF)


@pytest.mark.parametrize(
    ("bounds", "engages", "stays", "releases"),
    [
        (LagBounds(seconds=(30, 5)), lag(9, 31), lag(9, 10), lag(9, 4)),
        (LagBounds(seconds=(30, 5)), lag(9, 30), lag(9, None), lag(0, 0)),
        (LagBounds(catch_up=(60, 10)), lag(610, trend=-10.0), lag(300, trend=-10.0), lag(50, trend=-10.0)),
        (
            LagBounds(until_loss=(60, 600)),
            lag(9, seconds_until_loss=59.0),
            lag(9, seconds_until_loss=300.0),
            lag(9, seconds_until_loss=None),  # type: ignore[arg-type]
        ),
        (
            LagBounds(states=("growing", "stalled")),
            lag(9, state=LagState.GROWING),
            lag(9, state=LagState.DRAINING),
            lag(0, state=LagState.OK),
        ),
    ],
)
def test_each_figure_of_a_lag_has_two_bounds(
    bounds: LagBounds, engages: GroupLag, stays: GroupLag, releases: GroupLag
) -> None:
    assert bounds.signal(engages)[0] is Signal.ENGAGE
    assert bounds.signal(stays)[0] is Signal.STAY
    assert bounds.signal(releases)[0] is Signal.RELEASE
    assert bounds.signal(None)[0] is Signal.STAY


def test_of_several_bounds_one_engages_and_all_release() -> None:
    bounds = LagBounds(records=(100, 10), seconds=(30, 5))
    assert bounds.signal(lag(1, 40))[0] is Signal.ENGAGE
    assert bounds.signal(lag(200, 1))[0] is Signal.ENGAGE
    assert bounds.signal(lag(50, 1))[0] is Signal.STAY
    assert bounds.signal(lag(5, 1))[0] is Signal.RELEASE


def test_a_replay_that_waits_is_no_load_that_engages_a_rule() -> None:
    board = Switchboard("billing", [SampleByKey(keep=0, when=LagBounds(records=(50, 5)))], NOW)
    waiting = PartitionLag(TopicPartition("billing.replay", 0), 0, 900, 900, 0.0)
    board.step(Board(), lambda _: GroupLag("billing", NOW, (waiting,), LagState.GROWING), NOW)
    assert not board.active().rules
    new = PartitionLag(TopicPartition("orders", 0), 0, 90, 90, 0.0)
    board.step(Board(), lambda _: GroupLag("billing", NOW, (waiting, new), LagState.GROWING), NOW)
    assert board.active().rules


def test_a_command_ends_when_its_time_is_up() -> None:
    board = Switchboard("billing", [SwitchOff()], NOW)
    ordered = Board({("billing", "group"): Command("billing", "group", Order.ON, "ann@ops", NOW, NOW + 60)})
    board.step(ordered, lambda _: None, NOW + 1)
    assert board.active().group_is_off
    assert board.places["group"].why == "by ann@ops at 2023-11-14T22:13:20+00:00"
    board.step(ordered, lambda _: None, NOW + 61)
    assert not board.active().group_is_off


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: LagBounds(), "needs a bound"),
        (lambda: LagBounds(records=(10, 100)), "where release is lower"),
        (lambda: LagBounds(until_loss=(100, 10)), "where release is higher"),
        (lambda: LagBounds(states=("slow",)), "choose from unknown, draining"),
        (lambda: PastDeadline(), "exactly one of"),
        (lambda: PastDeadline(max_age=5, header="deadline"), "exactly one of"),
        (lambda: SampleByKey(keep=1), "a share from 0 to below 1"),
        (lambda: SampleByKey(keep=0.5, when="sometimes"), "give LagBounds"),  # type: ignore[arg-type]
        (lambda: SwitchOff(when="always"), "need not be there"),
        (
            lambda: completed((SampleByKey(keep=0), SampleByKey(keep=0.5)), "g", ()),
            "two rules are called 'sample'",
        ),
        (
            lambda: completed((SwitchOff(handler="sms"),), "g", ("mail",)),
            "which this runner has not: it has mail",
        ),
        (lambda: completed((SwitchOff(when=LagBounds(records=(9, 1))),), "g", ()), "which only grows then"),
        (lambda: completed((), "one/two", ()), "letters, digits"),
        (lambda: completed((), "g" * 240, ()), "at most 230"),
        (lambda: completed((0.1,), "g", ()), "takes rules such as"),  # type: ignore[arg-type]
    ],
)
def test_rules_that_make_no_sense_are_refused_with_a_sentence(make: object, sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        make()  # type: ignore[operator]
