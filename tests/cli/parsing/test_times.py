from __future__ import annotations

import pytest

from headrace.cli.failure import Misuse
from headrace.cli.parsing.times import milliseconds_of, seconds_of, show_seconds


def test_a_time_without_a_zone_is_utc() -> None:
    assert milliseconds_of("1970-01-02T00:00:00.250") == 86_400_250


def test_a_zone_counts() -> None:
    assert milliseconds_of("1970-01-01T02:00:00+02:00") == milliseconds_of("1970-01-01T00:00:00Z") == 0


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90s", 90),
        ("1h30m", 5400),
        ("7d", 604_800),
        ("P1DT2H3M4.5S", 93_784.5),
        ("pt5m", 300),
        ("-PT1M", -60),
    ],
)
def test_durations_are_read_in_both_notations(text: str, seconds: float) -> None:
    assert seconds_of(text) == seconds


@pytest.mark.parametrize("text", ["", "P", "5", "1x", "PT", "1..5s"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(Misuse, match="is no duration"):
        seconds_of(text)


@pytest.mark.parametrize("text", ["yesterday", "2024-13-01", ""])
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(Misuse, match="is no time"):
        milliseconds_of(text)


def test_durations_read_at_a_glance() -> None:
    assert [show_seconds(s) for s in (0.42, 12, 200, 18_720, 356_400, 60)] == [
        "0.4 s", "12 s", "3 min 20 s", "5 h 12 min", "4 d 3 h", "1 min",
    ]  # fmt: skip
