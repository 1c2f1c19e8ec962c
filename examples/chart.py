"""A line chart as an SVG file, with nothing but Python."""

from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 820, 360, 70, 20, 50, 50
COLOURS = ("#2563eb", "#dc2626", "#059669", "#d97706", "#7c3aed")

Points = Sequence[tuple[float, float]]


def line_chart(path: Path, title: str, across: str, up: str, series: Mapping[str, Points]) -> None:
    points = [point for line in series.values() for point in line]
    right = max((x for x, _ in points), default=1) or 1
    top = max((y for _, y in points), default=1) or 1

    def place(x: float, y: float) -> tuple[float, float]:
        wide, high = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM
        return LEFT + wide * x / right, TOP + high * (1 - y / top)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        f'<text x="{LEFT}" y="22" font-size="16">{escape(title)}</text>',
        f'<text x="{WIDTH / 2}" y="{HEIGHT - 10}" text-anchor="middle">{escape(across)}</text>',
        f'<text x="16" y="{HEIGHT / 2}" text-anchor="middle" transform="rotate(-90 16 {HEIGHT / 2})">{escape(up)}</text>',
    ]
    for step in range(5):
        _, y = place(0, top * step / 4)
        x, _ = place(right * step / 4, 0)
        parts += [
            f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}" stroke="#e5e7eb"/>',
            f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{top * step / 4:,.4g}</text>',
            f'<text x="{x:.1f}" y="{HEIGHT - BOTTOM + 16}" text-anchor="middle">{right * step / 4:,.4g}</text>',
        ]
    for number, (name, line) in enumerate(series.items()):
        colour = COLOURS[number % len(COLOURS)]
        drawn = " ".join(f"{x:.1f},{y:.1f}" for x, y in (place(*point) for point in line))
        parts += [
            f'<polyline points="{drawn}" fill="none" stroke="{colour}" stroke-width="2"/>',
            f'<text x="{LEFT + 170 * number}" y="42" fill="{colour}">{escape(name)}</text>',
        ]
    path.write_text("\n".join([*parts, "</svg>"]) + "\n")


def per_step(moments: Sequence[float], step: float, end: float) -> Points:
    """How many moments lie in each step of time, from 0 to `end`."""
    counts = [0] * (int(end / step) + 1)
    for moment in moments:
        counts[min(int(moment / step), len(counts) - 1)] += 1
    return [(number * step, count) for number, count in enumerate(counts)]
