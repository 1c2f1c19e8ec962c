"""What `headrace connect` shows: a table that renews itself on a terminal, lines or JSON elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

from headrace.cli import output, times

if TYPE_CHECKING:
    from headrace.connectors.state import Status

Facts = dict[str, Any]
HEADER = ("CONNECTOR", "TYPE", "TOPIC", "STATE", "ROWS", "ROWS/s", "BATCH", "LAST")
_RIGHT = {"ROWS", "ROWS/s", "BATCH", "LAST"}
_LINES_EVERY = 5.0
_STYLES = {"failed": "red", "stopped": "dim", "done": "dim"}


class Draw(Protocol):
    def __call__(self, jobs: Sequence[Facts], *, last: bool = False) -> None: ...


@contextmanager
def show(*, json: bool) -> Iterator[Draw]:
    """What to call with the numbers, as often as one likes."""
    if json or not sys.stdout.isatty():
        yield _lines(json)
        return
    from rich.live import Live

    with Live(auto_refresh=False) as live:

        def draw(jobs: Sequence[Facts], *, last: bool = False) -> None:
            live.update(_table(jobs), refresh=True)

        yield draw


def print_states(states: Sequence[Status], json: bool) -> None:
    """For `list`: one line a connector."""
    looks = [_now(status) for status in states]
    if json:
        output.json_document(looks)
        return
    output.table(
        ("CONNECTOR", "TYPE", "TOPIC", "STATE", "PID", "FILE"),
        [
            (look["connector"], look.get("type"), _topic(look), look["state"], look["pid"], look.get("file"))
            for look in looks
        ],
    )


def print_status(states: Sequence[Status], json: bool) -> None:
    """For `status`: the last numbers, and the reason of a failure."""
    looks = [_now(status) for status in states]
    if json:
        output.json_document(looks)
        return
    output.table(HEADER, [_cells(look) for look in looks])
    for look in looks:
        if look.get("error"):
            print(f"{look['connector']}: {look['error']}")


def print_types(json: bool) -> None:
    from headrace.connectors import catalogue
    from headrace.connectors.errors import ConfigError

    rows: list[dict[str, str | None]] = []
    directions: tuple[catalogue.Direction, ...] = ("source", "sink")
    for direction in directions:
        for name in sorted(catalogue.known(direction)):
            try:
                kind = catalogue.find(direction, name)
                about, delivery = kind.summary, kind.delivery
            except ConfigError as error:
                about, delivery = str(error), None
            rows.append({"direction": direction, "type": name, "delivery": delivery, "about": about})
    if json:
        output.json_document(rows)
    else:
        output.table(("DIRECTION", "TYPE", "DELIVERY", "ABOUT"), [tuple(row.values()) for row in rows])


def _lines(json: bool) -> Draw:
    shown_at, shown = 0.0, ""

    def draw(jobs: Sequence[Facts], *, last: bool = False) -> None:
        nonlocal shown_at, shown
        if not last and time.monotonic() < shown_at + _LINES_EVERY:
            return
        shown_at = time.monotonic()
        text = "\n".join(output.json_line(job) if json else _line(job) for job in jobs)
        if json or text != shown:
            print(text, flush=True)
            shown = text

    return draw


def _line(job: Facts) -> str:
    parts = [f"{job['connector']}: {job['state']}", f"{job['rows']:,} rows"]
    if job.get("listening"):
        parts.append(f"listening on {job['listening']}")
    if job.get("refused"):
        parts.append(f"{job['refused']:,} requests turned away")
    return ", ".join(parts)


def _cells(job: Facts) -> tuple[object, ...]:
    seconds, updated, pace = job.get("batch_seconds"), job.get("updated"), job.get("rows_per_second")
    return (
        job["connector"],
        job.get("type"),
        _topic(job),
        job["state"] + (f" on {job['listening']}" if job.get("listening") else ""),
        f"{job.get('rows', 0):,}",
        None if pace is None else f"{pace:,.0f}",
        None if seconds is None else f"{seconds:.2f} s",
        None if updated is None else f"{times.show_seconds(max(0.0, time.time() - updated))} ago",
    )


def _table(jobs: Sequence[Facts]) -> Any:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="dim")
    for name in HEADER:
        table.add_column(name, justify="right" if name in _RIGHT else "left")
    for job in jobs:
        cells = [output.MISSING if cell is None else str(cell) for cell in _cells(job)]
        table.add_row(*cells, style=_STYLES.get(job["state"]))
    return table


def _now(status: Status) -> Facts:
    """The last report, with what is true now: one that died says so."""
    facts = {"connector": status.name, "state": "never run", **status.facts, "pid": status.pid}
    if facts["state"] in ("starting", "running") and status.pid is None:
        facts["state"] = "died"
    return facts


def _topic(job: Facts) -> str | None:
    topic = job.get("topic")
    if topic is None:
        return None
    arrow = "→ " if job.get("direction") == "source" else ""
    return arrow + (topic if isinstance(topic, str) else ",".join(topic))
