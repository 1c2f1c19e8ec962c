"""The README's table: rows that exist, in words that stand by themselves."""

import json

import pytest

from bench import report, results
from bench.highlights import HIGHLIGHTS, highlights, verdict
from bench.rows import Figure, Row


def row(headrace: float, kafka: float, unit: str = "s", better: str = "less") -> Row:
    figures = {"headrace": Figure([headrace]), "kafka": Figure([kafka])}
    return Row("id", "work", unit, better, "one", figures=figures)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("compared", "words"),
    [
        (row(0.5, 2.0), "4.0 × faster"),
        (row(3.0, 2.0), "1.5 × slower"),
        (row(300, 100, "records/s", "more"), "3.0 × faster"),
        (row(100, 250, "commits/s", "more"), "2.5 × slower"),
        (row(40, 480, "MB"), "12 × less"),
        (row(101, 100, "records/s", "more"), "the same"),
    ],
)
def test_the_verdict_says_which_way_and_how_far(compared: Row, words: str) -> None:
    assert verdict(compared) == words


def test_every_highlight_is_a_row_that_was_measured_beside_kafka() -> None:
    assert [title for title, _ in highlights(results.load())] == list(HIGHLIGHTS.values())


def test_the_readme_shows_what_results_json_holds() -> None:
    table = report.highlights_table(results.load())
    assert table in (report.ROOT / "README.md").read_text(), "run make bench ARGS=--report"


def test_the_results_are_readable_json() -> None:
    assert json.loads(results.FILE.read_text())["parts"]
