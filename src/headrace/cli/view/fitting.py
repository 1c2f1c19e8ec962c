"""Tables of what runs that fit the terminal: one line for each thing where the width allows it, else two.

A column with nothing to show, such as the watermark of flows without one, is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from headrace.cli.view import output

Facts = Mapping[str, Any]
_SHORTEST_NAME = 8


@dataclass(frozen=True, slots=True)
class Column:
    name: str
    text: Callable[[Facts], str | None]
    left: bool = False
    tells: Callable[[Facts], bool] = lambda facts: True
    detail: Callable[[str], str] | None = None
    """How it reads in the second line, for a column that moves there when the width is short."""


@dataclass(frozen=True, slots=True)
class Fitted:
    header: str
    rows: list[list[str]]
    """The one or two lines of each thing."""

    @property
    def lines(self) -> list[str]:
        return [self.header, *(line for lines in self.rows for line in lines)]


def fit(columns: Sequence[Column], things: Sequence[Facts], width: int | None = None) -> Fitted:
    """Lines that are no longer than ``width``, if need be with the names in the first column cut; None is endless."""
    telling = [each for each in columns if any(map(each.tells, things))]
    lines = _aligned(telling, things)
    if width is None or max(map(len, lines)) <= width:
        return Fitted(lines[0], [[line] for line in lines[1:]])
    first = [each for each in telling if each.detail is None]
    lines = _aligned(first, things)
    if (excess := max(map(len, lines)) - width) > 0:
        names = [str(first[0].text(each)) for each in things]
        room = max(max(map(len, names)) - excess, _SHORTEST_NAME)
        cut = {name: _cut(name, room) for name in names}
        named = Column(first[0].name, lambda facts: cut[str(first[0].text(facts))], left=True)
        lines = _aligned([named, *first[1:]], things)
    seconds = (" · ".join(details(telling, each)) for each in things)
    return Fitted(
        lines[0],
        [
            [line] + ([_cut(f"  {more}", width)] if more else [])
            for line, more in zip(lines[1:], seconds, strict=True)
        ],
    )


def details(columns: Sequence[Column], facts: Facts) -> list[str]:
    """The columns of the second line, each as a phrase."""
    return [
        each.detail(text)
        for each in columns
        if each.detail is not None and each.tells(facts) and (text := each.text(facts))
    ]


def screen(table: Fitted, styles: Sequence[str], *, head: str = "", troubles: Sequence[str] = ()) -> Any:
    """A table for rich to draw, never wrapped; ``troubles`` stand below it in full."""
    from rich.console import Group
    from rich.text import Text

    drawn = Text(no_wrap=True, overflow="ellipsis")
    if head:
        drawn.append(f"{head}\n", style="bold")
    drawn.append(table.header, style="dim")
    for lines, style in zip(table.rows, styles, strict=True):
        drawn.append(f"\n{lines[0]}", style=style)
        for more in lines[1:]:
            drawn.append(f"\n{more}", style="dim")
    return Group(drawn, *(Text(text, style="yellow") for text in troubles))


def _aligned(columns: Sequence[Column], things: Sequence[Facts]) -> list[str]:
    right = [each.name for each in columns if not each.left]
    rows = [[each.text(facts) for each in columns] for facts in things]
    return output.columns([each.name for each in columns], rows, right)


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"
