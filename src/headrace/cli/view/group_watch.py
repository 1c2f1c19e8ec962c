"""The live table of `headrace groups describe --watch`."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

from headrace.cli.parsing import times
from headrace.cli.view import output
from headrace.cli.view.groups import LAG_HEADER, Look, headline, lag_rows
from headrace.cli.view.redraw import redraw

Looks = list[Look]


def watch(look: Callable[[], Looks], interval: float, *, json: bool) -> None:
    """Look again and again until Ctrl-C: a table that renews itself on a terminal, plain tables or JSON lines elsewhere."""
    if json or not sys.stdout.isatty():
        while True:
            _print(look(), json)
            time.sleep(interval)
    from rich.console import Group
    from rich.live import Live

    with Live(screen=False, auto_refresh=False) as live:
        while True:
            redraw(live, Group(*map(_table, look())))
            time.sleep(interval)


def _print(looks: Looks, json: bool) -> None:
    for one in looks:
        if json:
            print(output.json_line(one))
        else:
            print(headline(one))
            print("\n".join(f"  {line}" for line in output.columns(LAG_HEADER, lag_rows(one))))
    sys.stdout.flush()


def _trend(look: Look) -> str:
    """How the lag moves, and when it will be gone at that pace."""
    pace, left = look["trend"], look["seconds_to_catch_up"]
    if pace is None or look["lag"] is None:
        return ""
    if abs(pace) < 0.5:
        return "steady"
    if pace > 0:
        return f"growing by {pace:,.0f}/s"
    return f"shrinking by {-pace:,.0f}/s" + (f", gone in {times.show_seconds(left)}" if left else "")


def _table(look: Look) -> Any:
    from rich.table import Table

    trend = _trend(look)
    title = headline(look) + (f" ({trend})" if trend else "")
    table = Table(
        title=title, title_justify="left", title_style="bold", box=None, pad_edge=False, header_style="dim"
    )
    for name in LAG_HEADER:
        table.add_column(
            name, justify="right" if name in ("PARTITION", "COMMITTED", "END", "LAG", "BEHIND") else "left"
        )
    for row in lag_rows(look):
        behind = bool(row[4])
        table.add_row(
            *(output.MISSING if v is None else str(v) for v in row), style="yellow" if behind else None
        )
    return table
