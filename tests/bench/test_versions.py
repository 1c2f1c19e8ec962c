"""Every figure names the version it was measured with, and pages made of several versions of Kafka say so."""

from pathlib import Path

from bench import chart, report, results
from bench.results import PartResult
from bench.rows import Bar, Figure, Row
from bench.session import Session


def part(name: str, order: int, kafka: str) -> PartResult:
    figures = {"headrace": Figure([2.0], version="0.1.0"), "kafka": Figure([1.0], version=kafka)}
    row = Row(f"{name}-row", f"the work of {name}", "s", "more", "one", [Bar(1, "at least")], figures)
    return PartResult(name, f"Part {name}", order, "2026-01-01 00:00 UTC", 1.0, "a machine", [row])


def test_a_part_that_was_measured_gives_its_rows_the_versions_of_its_systems() -> None:
    row = Row("id", "work", "s", "more", "one", figures={"headrace": Figure([1.0]), "kafka": Figure([1.0])})
    result = results.part_result("startup", "Start", 1, 1.0, [row])
    assert result.versions() == {name: row.figures[name].version for name in ("headrace", "kafka")}
    assert all(result.versions().values())


def test_rows_keep_their_version_when_another_part_is_measured_with_a_newer_kafka(tmp_path: Path) -> None:
    file = tmp_path / "results.json"
    results.merge([part("produce", 1, "4.1.0"), part("consume", 2, "4.1.0")], file)
    results.merge([part("consume", 2, "4.10.0")], file)
    merged = results.load(file)
    assert merged["produce"].rows[0].figures["kafka"].version == "4.1.0"
    assert results.opponents(merged.values()) == ["4.10.0", "4.1.0"], "newest first, by number"


def test_one_version_is_named_once() -> None:
    merged = {"produce": part("produce", 1, "4.3.0")}
    assert report.opponent(merged) == "All figures are beside Apache Kafka 4.3.0."
    assert "Apache Kafka 4.3.0, same machine" in chart.chart(merged)


def test_parts_measured_with_an_older_kafka_are_named_beside_the_figures() -> None:
    merged = {"produce": part("produce", 1, "4.1.0"), "consume": part("consume", 2, "4.3.0")}
    assert "except those of parts not measured since: produce (4.1.0)" in report.opponent(merged)
    assert report.opponent(merged) in report.results_page(merged)
    assert "4.3.0 and 4.1.0" in chart.chart(merged)


def test_the_sentence_fills_its_place_in_a_page(tmp_path: Path) -> None:
    page = tmp_path / "README.md"
    page.write_text("before\n<!-- bench:opponent -->\nold\n<!-- /bench:opponent -->\nafter\n")
    report.fill_markers(page, {"produce": part("produce", 1, "4.3.0")})
    assert "\nAll figures are beside Apache Kafka 4.3.0.\n" in page.read_text()
    assert "old" not in page.read_text()


def test_a_run_with_few_rounds_says_how_many() -> None:
    assert "rounds: 1." in report.results_page({"produce": part("produce", 1, "4.3.0")})
    assert Session(most_rounds=2).rounds(5) == 2
    assert Session(most_rounds=2, quick=True).rounds(5) == 2
    assert Session(most_rounds=9).rounds(5) == 5
    assert Session().rounds(5) == 5
