"""What `headrace pipeline run` shows: a table that renews itself on a terminal, lines or JSON elsewhere."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Protocol

from headrace.cli.parsing import times
from headrace.cli.view import output
from headrace.cli.view.fitting import Column, Facts, details, fit, screen
from headrace.cli.view.redraw import redraw

if TYPE_CHECKING:
    from headrace.pipelines.progress import FlowStatus

_LINES_EVERY = 5.0
_STYLES = {"failed": "red", "waiting": "yellow", "switched off": "yellow", "done": "dim", "starting": "dim"}


class Draw(Protocol):
    def __call__(self, statuses: Sequence[FlowStatus], *, last: bool = False) -> None: ...


@contextmanager
def show(name: str, version: str | None, *, json: bool) -> Iterator[Draw]:
    """A function to call with the latest numbers, as often as needed."""
    title = name if version is None else f"{name}, version {version}"
    if json or not sys.stdout.isatty():
        yield _lines(title, json)
        return
    from rich.live import Live

    began = time.monotonic()
    with Live(auto_refresh=False, vertical_overflow="crop") as live:

        def draw(statuses: Sequence[FlowStatus], *, last: bool = False) -> None:
            age = times.show_seconds(round(time.monotonic() - began))
            head = f"{title}: done after {age}" if last else f"{title}: running for {age}, Ctrl-C stops it"
            flows = [each.as_json() for each in statuses]
            shown = screen(
                fit(COLUMNS, flows, live.console.width),
                [_STYLES.get(each.state, "") for each in statuses],
                head=head,
                troubles=[f"{flow['flow']}: {flow['error']}" for flow in flows if _is_in_trouble(flow)],
            )
            redraw(live, shown)

        yield draw


def print_status(look: dict[str, Any]) -> None:
    """The numbers that a run has left, for `headrace pipeline status`."""
    version = f", version {look['version']}" if look.get("version") else ""
    age = f" ({times.show_seconds(time.time() - look['updated'])} ago)" if "updated" in look else ""
    print(f"{look.get('pipeline', look['project'])}{version}: {look['state']}{age}")
    if look.get("error"):
        print(f"  {look['error']}")
    if look["flows"]:
        width = shutil.get_terminal_size().columns - 2 if sys.stdout.isatty() else None
        print("\n".join(f"  {line}" for line in fit(COLUMNS, look["flows"], width).lines))
    for flow in look["flows"]:
        if flow["error"]:
            print(f"  {flow['flow']}: {flow['error']}")


def _lines(title: str, json: bool) -> Draw:
    shown_at = 0.0
    shown: dict[object, str] = {}

    def draw(statuses: Sequence[FlowStatus], *, last: bool = False) -> None:
        """Now and then, and only the flows of which there is something new to say."""
        nonlocal shown_at
        if not last and time.monotonic() < shown_at + _LINES_EVERY:
            return
        shown_at = time.monotonic()
        flows = [each.as_json() for each in statuses]
        if json:
            print(output.json_line({"pipeline": title, "flows": flows}), flush=True)
            return
        for flow in flows:
            line = _line(flow)
            if shown.get(flow["flow"]) != line:
                shown[flow["flow"]] = line
                print(line, flush=True)

    return draw


def _line(flow: Facts) -> str:
    """A flow in one line, for a log: totals, and what is worth knowing."""
    parts = [
        f"{flow['flow']}: {flow['state']}",
        f"{flow['rows_in']:,} rows in ({_number(flow['rows_in_per_second'])}/s)",
        f"{flow['rows_out']:,} out ({_number(flow['rows_out_per_second'])}/s)",
    ]
    if flow["lag_rows"] is not None:
        behind = _behind(flow) if flow["lag_rows"] else None
        parts.append(f"lag {flow['lag_rows']:,}" + (f" ({behind})" if behind else ""))
    if flow["batch_seconds"] is not None:
        parts.append(f"batch {flow['batch_seconds']:.2f} s")
    parts += details([each for each in COLUMNS if each.name != "TO"], flow)
    if flow["dead_letters"]:
        parts.append(output.count(flow["dead_letters"], "dead letter"))
    if _is_in_trouble(flow):
        parts.append(flow["error"])
    return ", ".join(parts)


def _is_in_trouble(flow: Facts) -> bool:
    return bool(flow["error"]) and flow["state"] in ("failed", "waiting")


def _number(count: float) -> str:
    """Few are not none."""
    return f"{count:,.1f}" if 0 < count < 10 else f"{count:,.0f}"


def _behind(flow: Facts) -> str | None:
    seconds = flow["lag_seconds"]
    return "0 s" if seconds is not None and seconds < 0.05 else times.show_seconds(seconds)


def _state(flow: Facts) -> str | None:
    return f"{flow['state_rows']:,} ({output.size(flow['state_bytes'])})" if flow["state_rows"] else None


def _watermark(flow: Facts) -> str | None:
    """The time of day when it is today's."""
    if not flow["watermark"]:
        return None
    at = datetime.fromisoformat(flow["watermark"])
    return at.strftime("%H:%M:%S" if at.date() == datetime.now(UTC).date() else "%Y-%m-%d %H:%M")


COLUMNS = (
    Column("FLOW", lambda flow: str(flow["flow"]), left=True),
    Column("TO", lambda flow: str(flow["output"]), left=True, detail=lambda text: f"→ {text}"),
    Column("STATUS", lambda flow: str(flow["state"]), left=True),
    Column("IN/s", lambda flow: _number(flow["rows_in_per_second"])),
    Column("OUT/s", lambda flow: _number(flow["rows_out_per_second"])),
    Column("LAG", lambda flow: None if flow["lag_rows"] is None else f"{flow['lag_rows']:,}"),
    Column("BEHIND", _behind),
    Column("BATCH", lambda flow: None if flow["batch_seconds"] is None else f"{flow['batch_seconds']:.2f} s"),
    Column(
        "STATE",
        _state,
        tells=lambda flow: bool(flow["state_rows"]),
        detail=lambda text: f"state {text.replace(' (', ' rows (')}",
    ),
    Column(
        "WATERMARK",
        _watermark,
        tells=lambda flow: bool(flow["watermark"]),
        detail=lambda text: f"watermark {text}",
    ),
    Column("DEAD", lambda flow: f"{flow['dead_letters']:,}"),
    Column(
        "DROPPED",
        lambda flow: f"{flow['dropped']:,}",
        tells=lambda flow: bool(flow["dropped"]),
        detail=lambda text: f"{text} dropped",
    ),
)
