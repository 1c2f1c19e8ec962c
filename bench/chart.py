"""Charts of compared rows: one bar each, how many times better Headrace is than Kafka, on a log scale."""

import math
from collections.abc import Iterable, Mapping
from xml.sax.saxutils import escape

from bench.highlights import highlights
from bench.report import number
from bench.results import PartResult, opponents
from bench.rows import Row

_WIDTH, _LEFT, _RIGHT, _LINE, _TOP = 960, 430, 120, 24, 64


def chart(results: Mapping[str, PartResult]) -> str:
    """bench/chart.svg: every row that is compared with Kafka."""
    rows = [
        (f"{result.title}: {row.title}", row)
        for result in results.values()
        for row in result.rows
        if row.bars and row.against == "kafka"
    ]
    return _draw(rows, opponents(results.values()))


def highlights_chart(results: Mapping[str, PartResult]) -> str:
    """bench/highlights.svg: the rows that the README quotes."""
    rows = highlights(results)
    return _draw(rows, sorted({row.figures["kafka"].version for _, row in rows}, reverse=True))


def _draw(rows: Iterable[tuple[str, Row]], kafka: Iterable[str]) -> str:
    """Bars to the right of the line are rows where Headrace is ahead, to the left where Kafka is."""
    entries = [(title, advantage, row) for title, row in rows if (advantage := row.advantage()) is not None]
    reach = max((abs(math.log2(advantage)) for _, advantage, _ in entries), default=1.0)
    least = min((math.log2(advantage) for _, advantage, _ in entries), default=0.0)
    span = reach + max(-least, 0.0) or 1.0
    plot = _WIDTH - _LEFT - _RIGHT
    zero = _LEFT + plot * max(-least, 0.0) / span
    height = _TOP + _LINE * len(entries) + 24
    versions = " and ".join(kafka)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" font-family="sans-serif">',
        f'<rect width="{_WIDTH}" height="{height}" fill="#ffffff"/>',
        _text(
            16,
            26,
            f"Headrace compared with Apache Kafka {versions}, same machine, same run",
            16,
            weight="600",
        ),
        _text(
            16,
            46,
            "times better (right of the line) or worse (left), log scale; figures: Headrace | Kafka",
            12,
        ),
    ]
    for index, (title, advantage, row) in enumerate(entries):
        middle = _TOP + _LINE * index + _LINE / 2
        reached = zero + plot * math.log2(advantage) / span
        colour = "#1b7f79" if advantage >= 1 else "#c2543d"
        left, width = min(zero, reached), max(abs(reached - zero), 1)
        figures = " | ".join(number(row.figures[name].median, row.unit) for name in ("headrace", "kafka"))
        parts += [
            _text(_LEFT - 8, middle + 4, _shortened(title), 11, anchor="end"),
            f'<rect x="{left:.1f}" y="{middle - 8:.1f}" width="{width:.1f}" height="16" fill="{colour}"/>',
            _text(max(reached, zero) + 6, middle + 4, f"{advantage:.1f} ×  {figures} {row.unit}", 10),
        ]
    parts += [
        f'<line x1="{zero:.1f}" y1="{_TOP - 4}" x2="{zero:.1f}" y2="{height - 20}" stroke="#333333"/>',
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _shortened(text: str, longest: int = 70) -> str:
    return text if len(text) <= longest else text[: longest - 1] + "…"


def _text(x: float, y: float, text: str, size: int, *, anchor: str = "start", weight: str = "400") -> str:
    style = f'font-size="{size}" text-anchor="{anchor}" font-weight="{weight}" fill="#222222"'
    return f'<text x="{x:.1f}" y="{y:.1f}" {style}>{escape(text)}</text>'
