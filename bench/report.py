"""Tables in Markdown from the results, and their places between markers in the README and the docs.

A file that holds `<!-- bench:NAME -->` … `<!-- /bench:NAME -->` gets NAME's text between them.
NAME is a part, `summary` (every row that has a bar) or `opponent` (the versions of Kafka in the figures).
"""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from bench.highlights import highlights, verdict
from bench.results import PartResult, opponents
from bench.rows import Figure, Row
from bench.systems import NAMED

ROOT = Path(__file__).resolve().parent.parent
_TITLES = {kind.name: kind.title for kind in NAMED}


def number(value: float | None, unit: str = "") -> str:
    """A figure with three or so significant digits: 1.84 M, 56.2 k, 0.183."""
    if value is None:
        return ""
    if unit == "records/s":
        if value >= 1e6:
            return f"{value / 1e6:.2f} M"
        return f"{value / 1e3:.1f} k" if value >= 1e3 else f"{value:.0f}"
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}" if value >= 1 else f"{value:.3f}"


def with_spread(figure: Figure, unit: str) -> str:
    low, high = min(figure.samples), max(figure.samples)
    if len(figure.samples) == 1:
        return number(figure.median, unit)
    return f"{number(figure.median, unit)} ({number(low, unit)} – {number(high, unit)})"


def table(result: PartResult) -> str:
    """The part's table: medians (smallest – largest), ratio to what Headrace is compared with, and the
    broker's CPU and memory.
    """
    systems = [kind.name for kind in NAMED if any(kind.name in row.figures for row in result.rows)]
    compared = any(row.ratio() is not None for row in result.rows)
    head = ["work", *(_TITLES[name] for name in systems)]
    head += ["ratio"] if compared else []
    head += [f"CPU-s: {' / '.join(_TITLES[name] for name in systems)}", "RSS MB"]
    lines = [_line(head), _line("---" for _ in head)]
    for row in result.rows:
        cells = [f"{row.title} ({row.unit})"]
        cells += [with_spread(row.figures[name], row.unit) if name in row.figures else "" for name in systems]
        cells += [_ratio(row)] if compared else []
        cpu = " / ".join(
            number(row.figures[name].cpu_seconds) if name in row.figures else "–" for name in systems
        )
        memory = " / ".join(
            _whole(row.figures[name].rss_mb) if name in row.figures else "–" for name in systems
        )
        lines.append(_line([*cells, f"{cpu} per {row.work}", memory]))
    return "\n".join(lines)


def highlights_table(results: Mapping[str, PartResult]) -> str:
    """The few rows that the README quotes, for readers who have not seen the rest."""
    head = ["work", "Headrace", "Apache Kafka", "Headrace is"]
    lines = [_line(head), _line("---" for _ in head)]
    for title, row in highlights(results):
        figures = [
            f"{number(row.figures[name].median, row.unit)} {row.unit}" for name in ("headrace", "kafka")
        ]
        lines.append(_line([title, *figures, verdict(row)]))
    return "\n".join(lines)


def missed_goals(result: PartResult) -> list[str]:
    """A line for each row whose goal was not reached: for whoever ran it, not for the pages."""
    return [
        f"below its goal: {row.title}: {_ratio(row) or number(row.figures['headrace'].median, row.unit)}, "
        f"goal {row.bars_text()}"
        for row in result.rows
        if row.verdict() is False
    ]


def opponent(results: Mapping[str, PartResult]) -> str:
    """A sentence that names the version of Kafka the figures belong to, or says that there are several."""
    versions = opponents(results.values())
    if not versions:
        return "Nothing has been measured beside Apache Kafka yet."
    newest, *older = versions
    if not older:
        return f"All figures are beside Apache Kafka {newest}."
    parts = ", ".join(
        f"{result.name} ({version})"
        for result in results.values()
        if (version := result.versions().get("kafka", newest)) != newest
    )
    return f"The figures are beside Apache Kafka {newest}, except those of parts not measured since: {parts}."


def results_page(results: Mapping[str, PartResult]) -> str:
    """bench/RESULTS.md: every part's table under its own heading."""
    pieces = [
        "# Results",
        "Made by `make bench` from `bench/results.json`; how it measures is in `docs/benchmarks.md`. "
        "Each cell is the median of the rounds (smallest – largest). Ratio: Headrace ÷ Kafka. "
        "CPU-seconds and resident memory are the broker's.",
        opponent(results),
        "![Headrace and Apache Kafka](chart.svg)",
    ]
    for result in results.values():
        versions = ", ".join(f"{_TITLES[name]} {version}" for name, version in result.versions().items())
        rounds = " to ".join(map(str, sorted({min(result.rounds()), max(result.rounds())})))
        where = f"{result.measured}; {result.machine}; {versions}; rounds: {rounds}."
        pieces += [f"## {result.title}", where, table(result)]
    return "\n\n".join(pieces) + "\n"


def fill_markers(file: Path, results: Mapping[str, PartResult]) -> None:
    """Rewrites what stands between the markers of a file; a marker for an unknown or
    unmeasured part is left as it is.
    """
    if not file.exists():
        return
    text = file.read_text()

    def fill(match: re.Match[str]) -> str:
        name = match["name"]
        if name == "highlights" and results:
            made = highlights_table(results)
        elif name == "opponent" and results:
            made = opponent(results)
        elif name in results:
            made = table(results[name])
        else:
            return match[0]
        return f"<!-- bench:{name} -->\n{made}\n<!-- /bench:{name} -->"

    filled = re.sub(
        r"<!-- bench:(?P<name>[\w-]+) -->\n.*?<!-- /bench:(?P=name) -->", fill, text, flags=re.DOTALL
    )
    if filled != text:
        file.write_text(filled)


def _ratio(row: Row) -> str:
    ratio = row.ratio()
    return "" if ratio is None else f"{ratio:.2f} ×"


def _whole(value: float | None) -> str:
    return "–" if value is None else f"{value:,.0f}"


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"
