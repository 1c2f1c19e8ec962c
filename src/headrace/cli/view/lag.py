"""How lag looks: rows of a table, and a sparkline of what it was."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from headrace.cli.parsing import times
from headrace.cli.view import output

if TYPE_CHECKING:
    from headrace.client.lag import GroupLag
    from headrace.client.lag_history import Entry

HEADER = ("GROUP", "STATE", "LAG", "BEHIND", "IN/S", "OUT/S", "CAUGHT UP IN", "LOSS IN", "HISTORY")
RIGHT = ("LAG", "BEHIND", "IN/S", "OUT/S", "CAUGHT UP IN", "LOSS IN")
HISTORY_HEADER = ("TIME", "GROUP", "STATE", "LAG", "BEHIND", "IN/S", "OUT/S", "LOSS IN")
STYLES = {
    "draining": "yellow",
    "growing": "red",
    "rewound": "magenta",
    "stalled": "bold red",
    "gone": "bold red",
}
_BARS = "▁▂▃▄▅▆▇█"
SPARKS = 20


def sparkline(values: Sequence[float]) -> str:
    """The last values as bars, from zero to the largest of them."""
    shown = values[-SPARKS:]
    top = max(shown, default=0)
    if top <= 0:
        return _BARS[0] * len(shown)
    return "".join(_BARS[min(len(_BARS) - 1, int(value / top * (len(_BARS) - 1) + 0.5))] for value in shown)


def row(lag: GroupLag, history: Sequence[float]) -> tuple[object, ...]:
    return (
        lag.group_id,
        lag.state.value,
        f"{lag.records:,}",
        times.show_seconds(lag.seconds),
        rate(lag.rate_in),
        rate(lag.rate_out),
        times.show_seconds(lag.seconds_to_catch_up) if lag.records else None,
        times.show_seconds(lag.seconds_until_loss),
        sparkline(history),
    )


def history_rows(entries: Iterable[Entry]) -> list[tuple[object, ...]]:
    from datetime import UTC, datetime

    return [
        (
            datetime.fromtimestamp(each.at, UTC).isoformat(timespec="seconds"),
            each.group,
            each.state,
            f"{each.records:,}",
            times.show_seconds(each.seconds),
            rate(each.rate_in),
            rate(each.rate_out),
            times.show_seconds(each.seconds_until_loss),
        )
        for each in entries
    ]


def rate(value: float | None) -> str | None:
    return None if value is None else f"{value:,.0f}" if value >= 10 else f"{value:.1f}"


def live_table(rows: Sequence[tuple[object, ...]]) -> Any:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="dim")
    for name in HEADER:
        table.add_column(name, justify="right" if name in RIGHT else "left")
    for each in rows:
        cells = (output.MISSING if value is None else str(value) for value in each)
        table.add_row(*cells, style=STYLES.get(str(each[1])))
    return table
