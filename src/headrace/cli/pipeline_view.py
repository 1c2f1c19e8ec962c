"""The live table of `headrace pipeline run`: a table that renews itself on a terminal, lines or JSON elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

from headrace.cli import output, times

if TYPE_CHECKING:
    from headrace.pipelines.progress import FlowStatus

HEADER = (
    "FLOW",
    "TO",
    "STATE",
    "IN/s",
    "OUT/s",
    "LAG",
    "BEHIND",
    "BATCH",
    "STATE ROWS",
    "WATERMARK",
    "DEAD",
    "DROPPED",
)
_LEFT = {"FLOW", "TO", "STATE", "WATERMARK"}
_LINES_EVERY = 5.0


class Draw(Protocol):
    def __call__(self, statuses: Sequence[FlowStatus], *, last: bool = False) -> None: ...


@contextmanager
def show(name: str, version: str | None, *, json: bool) -> Iterator[Draw]:
    """What to call with the numbers, as often as one likes."""
    title = name if version is None else f"{name}, version {version}"
    if json or not sys.stdout.isatty():
        yield _lines(title, json)
        return
    from rich.live import Live

    with Live(auto_refresh=False) as live:

        def draw(statuses: Sequence[FlowStatus], *, last: bool = False) -> None:
            live.update(_table(title, statuses), refresh=True)

        yield draw


def print_status(look: dict[str, Any]) -> None:
    """The numbers that a run has left, for `headrace pipeline status`."""
    version = f", version {look['version']}" if look.get("version") else ""
    age = f" ({times.show_seconds(time.time() - look['updated'])} ago)" if "updated" in look else ""
    print(f"{look.get('pipeline', look['project'])}{version}: {look['state']}{age}")
    if look.get("error"):
        print(f"  {look['error']}")
    if look["flows"]:
        rows = [_cells(flow) for flow in look["flows"]]
        print("\n".join(f"  {line}" for line in output.columns(HEADER, rows)))
    for flow in look["flows"]:
        if flow["error"]:
            print(f"  {flow['flow']}: {flow['error']}")


def _lines(title: str, json: bool) -> Draw:
    shown_at = 0.0

    def draw(statuses: Sequence[FlowStatus], *, last: bool = False) -> None:
        nonlocal shown_at
        if not last and time.monotonic() < shown_at + _LINES_EVERY:
            return
        shown_at = time.monotonic()
        if json:
            print(output.json_line({"pipeline": title, "flows": [each.as_json() for each in statuses]}))
        else:
            for each in statuses:
                print(_line(each))
        sys.stdout.flush()

    return draw


def _line(status: FlowStatus) -> str:
    parts = [f"{status.flow}: {status.state}", f"{status.rows_in:,} rows in", f"{status.rows_out:,} out"]
    if status.lag_rows is not None:
        parts.append(f"lag {status.lag_rows:,}")
    if status.dead_letters:
        parts.append(f"{status.dead_letters:,} dead letters")
    if status.dropped:
        parts.append(f"{status.dropped:,} dropped")
    if status.error and status.state == "waiting":
        parts.append(status.error)
    return ", ".join(parts)


def _cells(flow: dict[str, Any]) -> tuple[object, ...]:
    batch = flow["batch_seconds"]
    return (
        flow["flow"],
        flow["output"],
        flow["state"],
        f"{flow['rows_in_per_second']:,.0f}",
        f"{flow['rows_out_per_second']:,.0f}",
        None if flow["lag_rows"] is None else f"{flow['lag_rows']:,}",
        times.show_seconds(flow["lag_seconds"]),
        None if batch is None else f"{batch:.2f} s",
        f"{flow['state_rows']:,}" + (f" ({_size(flow['state_bytes'])})" if flow["state_bytes"] else ""),
        (flow["watermark"] or "")[:19].replace("T", " ") or None,
        f"{flow['dead_letters']:,}",
        f"{flow['dropped']:,}",
    )


def _table(title: str, statuses: Sequence[FlowStatus]) -> Any:
    from rich.table import Table

    table = Table(
        title=title, title_justify="left", title_style="bold", box=None, pad_edge=False, header_style="dim"
    )
    for name in HEADER:
        table.add_column(name, justify="left" if name in _LEFT else "right")
    styles = {"failed": "red", "waiting": "yellow", "done": "dim"}
    for status in statuses:
        cells = [output.MISSING if cell is None else str(cell) for cell in _cells(status.as_json())]
        table.add_row(*cells, style=styles.get(status.state))
        if status.error and status.state in ("failed", "waiting"):
            table.add_row(f"  {status.error}", style="yellow")
    return table


def _size(size: int) -> str:
    for unit in ("B", "KiB", "MiB"):
        if size < 1024:
            return f"{size:,.0f} {unit}"
        size //= 1024
    return f"{size:,} GiB"
