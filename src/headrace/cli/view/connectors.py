"""What `headrace connect` shows: a table that renews itself on a terminal, lines or JSON elsewhere."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

from headrace.cli.parsing import times
from headrace.cli.view import output
from headrace.cli.view.fitting import Column, Facts, fit, screen
from headrace.cli.view.redraw import redraw

if TYPE_CHECKING:
    from headrace.connectors.state import Status


_LINES_EVERY = 5.0
_STYLES = {"failed": "red", "waiting": "yellow", "stopped": "dim", "done": "dim"}


class Draw(Protocol):
    def __call__(self, jobs: Sequence[Facts], *, last: bool = False, troubles: bool = True) -> None:
        """``troubles``: with the reasons of failures; leave them out when the command's last sentence gives them."""
        ...


@contextmanager
def show(*, json: bool) -> Iterator[Draw]:
    """A function to call with the latest numbers, as often as needed."""
    if json or not sys.stdout.isatty():
        yield _lines(json)
        return
    from rich.live import Live

    # What goes to stderr meanwhile is put above the table; but only where both are on the terminal.
    with Live(auto_refresh=False, vertical_overflow="crop", redirect_stderr=sys.stderr.isatty()) as live:

        def draw(jobs: Sequence[Facts], *, last: bool = False, troubles: bool = True) -> None:
            styles = [_STYLES.get(job["state"], "") for job in jobs]
            reasons = [_trouble(job) for job in jobs if troubles and job.get("error")]
            shown = screen(fit(COLUMNS, jobs, live.console.width), styles, troubles=reasons)
            redraw(live, shown)

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
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    print("\n".join(fit(COLUMNS, looks, width).lines))
    for look in looks:
        if look.get("error"):
            print(_trouble(look))


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

    def draw(jobs: Sequence[Facts], *, last: bool = False, troubles: bool = True) -> None:
        nonlocal shown_at, shown
        if not last and time.monotonic() < shown_at + _LINES_EVERY:
            return
        shown_at = time.monotonic()
        text = "\n".join(output.json_line(job) if json else _line(job, troubles) for job in jobs)
        if json or text != shown:
            print(text, flush=True)
            shown = text

    return draw


def _line(job: Facts, with_trouble: bool) -> str:
    pace = _pace(job)
    parts = [
        f"{job['connector']}: {job['state']}",
        f"{job['rows']:,} {'row' if job['rows'] == 1 else 'rows'}" + (f" ({pace}/s)" if pace else ""),
    ]
    if "lag_rows" in job:
        parts.append(f"lag {job['lag_rows']:,}")
    if address := _listening(job):
        parts.append(f"listening on {address}")
    if job.get("refused"):
        parts.append(f"{job['refused']:,} requests turned away")
    return ", ".join(parts) + (f"; {job['error']}" if with_trouble and job.get("error") else "")


def _trouble(job: Facts) -> str:
    name, error = str(job["connector"]), str(job["error"])
    return error if error.startswith(name) else f"{name}: {error}"


def _pace(job: Facts) -> str | None:
    pace = job.get("rows_per_second")
    return None if pace is None else f"{pace:,.1f}" if 0 < pace < 10 else f"{pace:,.0f}"


def _behind(job: Facts) -> str | None:
    seconds = job.get("lag_seconds")
    return "0 s" if seconds is not None and seconds < 0.05 else times.show_seconds(seconds)


def _last(job: Facts) -> str | None:
    """How long ago rows came last."""
    if not job.get("at"):
        return None
    return f"{times.show_seconds(max(0.0, time.time() - job['at']))} ago"


def _now(status: Status) -> Facts:
    """The last report, with what is true now."""
    look = {"connector": status.name, "state": status.state, **status.facts, "pid": status.pid}
    return look | {"state": status.state}


def _topic(job: Facts) -> str | None:
    topic = job.get("topic")
    if topic is None:
        return None
    arrow = "→ " if job.get("direction") == "source" else ""
    return arrow + (topic if isinstance(topic, str) else ",".join(topic))


def _listening(job: Facts) -> str | None:
    return job.get("listening") if job["state"] in ("starting", "running", "waiting") else None


COLUMNS = (
    Column("CONNECTOR", lambda job: str(job["connector"]), left=True),
    Column("TYPE", lambda job: job.get("type"), left=True, detail=str),
    Column("TOPIC", _topic, left=True, detail=lambda text: text if "→" in text else f"{text} →"),
    Column("STATE", lambda job: str(job["state"]), left=True),
    Column("ROWS", lambda job: f"{job.get('rows', 0):,}"),
    Column("ROWS/s", _pace),
    Column(
        "BATCH",
        lambda job: f"{job['batch_seconds']:.2f} s" if "batch_seconds" in job else None,
        tells=lambda job: "batch_seconds" in job,
    ),
    Column(
        "LAG",
        lambda job: f"{job['lag_rows']:,}" if "lag_rows" in job else None,
        tells=lambda job: "lag_rows" in job,
    ),
    Column("BEHIND", _behind, tells=lambda job: job.get("lag_seconds") is not None),
    Column("LAST", _last, tells=lambda job: bool(job.get("at"))),
    Column(
        "LISTENING",
        _listening,
        left=True,
        tells=lambda job: bool(_listening(job)),
        detail=lambda text: f"listening on {text}",
    ),
    Column(
        "TURNED AWAY",
        lambda job: f"{job['refused']:,}" if "refused" in job else None,
        tells=lambda job: bool(job.get("refused")),
        detail=lambda text: f"{text} requests turned away",
    ),
)
