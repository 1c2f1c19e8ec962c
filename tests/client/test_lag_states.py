"""The state machine of lag: each rule alone, and what holds for every history."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from headrace.client.lag_states import LagState, Look, Window, is_worse, worst

LENGTH = 10.0


def after(*looks: Look) -> Window:
    window = Window(LENGTH)
    for look in looks:
        window = window.take(look)
    return window


def at(seconds: float, position: int, end: int, **more: bool) -> Look:
    return Look(seconds, position, end, **more)


def test_nothing_unread_is_ok_also_without_members() -> None:
    assert after(at(0, 5, 5)).state == LagState.OK
    assert after(at(0, 5, 5, attended=False)).state == LagState.OK


def test_one_look_that_finds_a_lag_cannot_tell() -> None:
    assert after().state == LagState.UNKNOWN
    assert after(at(0, 0, 5)).state == LagState.UNKNOWN


def test_unread_records_and_no_members_is_gone_at_once() -> None:
    assert after(at(0, 0, 5, attended=False)).state == LagState.GONE


def test_a_group_that_reads_all_that_was_there_when_the_window_began_is_ok() -> None:
    assert after(at(0, 0, 100), at(5, 100, 300), at(10, 120, 500)).state == LagState.OK


def test_fewer_unread_records_is_draining() -> None:
    assert after(at(0, 0, 100), at(1, 50, 120)).state == LagState.DRAINING


def test_reading_without_getting_nearer_is_growing_once_the_window_is_full() -> None:
    looks = [at(second, 10 * second, 1000 + 20 * second) for second in range(11)]
    assert after(*looks[:5]).state == LagState.UNKNOWN
    assert after(*looks).state == LagState.GROWING


def test_no_commit_for_a_whole_window_is_stalled() -> None:
    looks = [at(second, 7, 100) for second in range(11)]
    assert after(*looks[:-1]).state == LagState.UNKNOWN
    assert after(*looks).state == LagState.STALLED


def test_a_commit_that_goes_back_is_rewound_until_the_group_is_where_it_was() -> None:
    window = after(at(0, 90, 100), at(1, 10, 100))
    assert window.state == LagState.REWOUND
    assert window.take(at(2, 50, 100)).state == LagState.REWOUND
    assert window.take(at(2, 90, 110)).state != LagState.REWOUND
    assert window.take(at(2, 100, 100)).state == LagState.OK


def test_a_rewind_is_forgotten_when_the_window_has_passed_it() -> None:
    window = after(at(0, 90, 100), at(1, 10, 100))
    for second in range(2, 14):
        window = window.take(at(second, 10 + second, 100))
    assert window.state == LagState.DRAINING


def test_a_topic_that_was_made_anew_is_not_rewound() -> None:
    window = after(at(0, 90, 100), at(1, 0, 3))
    assert window.looks == (at(1, 0, 3),)
    assert window.state == LagState.UNKNOWN


def test_nobody_knows_of_a_partition_without_a_commit() -> None:
    looks = [at(second, 0, 5, committed=False) for second in range(20)]
    assert after(*looks).state == LagState.UNKNOWN


def test_a_group_is_as_badly_off_as_its_worst_partition() -> None:
    assert worst([]) == LagState.UNKNOWN
    assert worst([LagState.OK, LagState.STALLED, LagState.DRAINING]) == LagState.STALLED
    assert is_worse(LagState.GONE, LagState.STALLED)
    assert not is_worse(LagState.OK, LagState.OK)


@st.composite
def histories(draw: st.DrawFn) -> list[Look]:
    """Looks as a partition may give them: time goes forward, the end does not go back, the position may go anywhere before it."""
    looks, second, end = [], 0.0, draw(st.integers(0, 50))
    for _ in range(draw(st.integers(1, 30))):
        second += draw(st.integers(1, 32)) / 8  # exact, whatever is added
        end += draw(st.integers(0, 20))
        looks.append(Look(second, draw(st.integers(0, end)), end, draw(st.booleans())))
    return looks


@given(histories())
def test_gone_means_unread_and_nobody_there(looks: list[Look]) -> None:
    last = looks[-1]
    assert (after(*looks).state == LagState.GONE) == (last.unread > 0 and not last.attended)


@given(histories())
def test_nothing_unread_is_always_ok(looks: list[Look]) -> None:
    last = looks[-1]
    assert after(*looks, Look(last.at + 1, last.end, last.end)).state == LagState.OK


@given(histories())
def test_rewound_needs_a_commit_that_went_back(looks: list[Look]) -> None:
    window = after(*looks)
    pairs = list(zip(window.looks, window.looks[1:], strict=False))
    if window.state == LagState.REWOUND:
        assert any(later.position < earlier.position for earlier, later in pairs)
    forward = sorted(look.position for look in looks)
    tidy = [Look(x.at, p, max(x.end, p), True) for x, p in zip(looks, forward, strict=True)]
    assert after(*tidy).state != LagState.REWOUND


@given(histories())
def test_stalled_needs_a_full_window_without_a_step_forward(looks: list[Look]) -> None:
    window = after(*looks)
    if window.state == LagState.STALLED:
        assert window.is_full
        assert len({look.position for look in window.looks}) == 1
    if window.state == LagState.GROWING:
        assert window.is_full
        assert window.looks[-1].unread >= window.looks[0].unread
    if window.state == LagState.DRAINING:
        assert window.looks[-1].unread < window.looks[0].unread


@given(histories())
def test_a_group_that_stops_is_stalled_after_a_window_and_ok_when_it_has_read_everything(
    looks: list[Look],
) -> None:
    last = looks[-1]
    window = after(*looks)
    for step in range(1, 25):
        window = window.take(Look(last.at + step, last.position, last.end + 1))
    assert window.state == LagState.STALLED
    assert window.take(Look(last.at + 25, last.end + 1, last.end + 1)).state == LagState.OK


@given(histories())
def test_a_window_holds_its_length_and_one_look_more(looks: list[Look]) -> None:
    window = after(*looks)
    assert window.looks[-1] == looks[-1]
    assert all(look.at > looks[-1].at - LENGTH for look in window.looks[1:])
    assert window.rate_out is None or window.rate_out >= 0
    assert window.rate_in is None or window.rate_in >= 0


@given(histories(), st.integers(1, 10_000))
def test_the_state_depends_neither_on_where_offsets_nor_when_clocks_begin(
    looks: list[Look], shift: int
) -> None:
    moved = [Look(x.at + shift, x.position + shift, x.end + shift, x.attended) for x in looks]
    assert after(*looks).state == after(*moved).state
