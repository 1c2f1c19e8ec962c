"""`headrace lag`: watch how far groups are behind, check it in scripts, record it and look back."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated

import typer

from headrace.cli import options
from headrace.cli.failure import Exit, Failure
from headrace.cli.parsing import choices, times
from headrace.cli.view import lag as view
from headrace.cli.view import output

if TYPE_CHECKING:
    from collections.abc import Callable

    from headrace.cli.cluster.connection import Cluster
    from headrace.client.lag import GroupLag

app = options.command_app("Watch, check and record how far groups are behind.")

SomeGroups = Annotated[
    list[str] | None,
    typer.Argument(metavar="[GROUP…]", help="Default: every group.", autocompletion=options.complete_group),
]
WindowOption = Annotated[
    str,
    typer.Option(
        "--window",
        metavar="DURATION",
        help="Looks of this long make the state; longer than between two commits.",
    ),
]


@app.command(
    epilog=options.examples("headrace lag watch", "headrace lag watch billing shipping --interval 5")
)
def watch(
    groups: SomeGroups = None,
    interval: Annotated[float, typer.Option("--interval", min=0.2, help="Seconds between looks.")] = 2.0,
    window: WindowOption = "60s",
    json: options.Json = False,
    bootstrap: options.Bootstrap = options.DEFAULT_BOOTSTRAP,
    command_config: options.CommandConfig = None,
) -> None:
    """Show the groups' lag, state, rates and forecasts again and again, until Ctrl-C.

    On a terminal as a table that renews itself, elsewhere as plain tables; with --json as one JSON object per group and look.
    """
    import sys

    from headrace.cli.cluster.connection import connect
    from headrace.cli.cluster.lag import metering

    length = _window(window)
    cluster = connect(bootstrap, command_config)
    past: dict[str, list[float]] = {}
    with metering(cluster, length) as meter:
        measure = _measuring(cluster, groups, meter.measure)

        def look() -> list[GroupLag]:
            found = measure()
            for each in found:
                past[each.group_id] = [*past.get(each.group_id, [])[-view.SPARKS :], float(each.records)]
            return found

        def rows(found: list[GroupLag]) -> list[tuple[object, ...]]:
            return [view.row(each, past[each.group_id]) for each in found]

        if json or not sys.stdout.isatty():
            while True:
                found = look()
                if json:
                    print("\n".join(output.json_line(each.as_json()) for each in found))
                else:
                    print("\n".join(output.columns(view.HEADER, rows(found), view.RIGHT)))
                sys.stdout.flush()
                time.sleep(interval)
        from rich.live import Live

        from headrace.cli.view.redraw import redraw

        with Live(screen=False, auto_refresh=False) as live:
            while True:
                redraw(live, view.live_table(rows(look())))
                time.sleep(interval)


@app.command(
    epilog=options.examples(
        "headrace lag check",
        "headrace lag check billing --max-seconds 5m --max-records 100000",
        "headrace lag check --fail-on stalled,gone --min-until-loss 6h --json",
    )
)
def check(
    groups: SomeGroups = None,
    fail_on: Annotated[
        str, typer.Option("--fail-on", metavar="STATE,…", help="States that fail; 'none' for none.")
    ] = "growing,stalled,gone",
    max_records: Annotated[
        int | None, typer.Option("--max-records", min=0, help="More unread records fail.")
    ] = None,
    max_seconds: Annotated[
        str | None, typer.Option("--max-seconds", metavar="DURATION", help="An older next record fails.")
    ] = None,
    min_until_loss: Annotated[
        str | None,
        typer.Option(
            "--min-until-loss", metavar="DURATION", help="Fail when retention deletes unread records sooner."
        ),
    ] = "1h",
    window: WindowOption = "20s",
    json: options.Json = False,
    bootstrap: options.Bootstrap = options.DEFAULT_BOOTSTRAP,
    command_config: options.CommandConfig = None,
) -> None:
    """Judge the groups once, for cron and CI: exit status 0 when all is well, 1 when not, 3 when no broker answers.

    Takes as long as the window, unless every group's state is certain before.
    """
    from headrace.cli.cluster.connection import connect
    from headrace.cli.cluster.lag import metering
    from headrace.client.lag_check import Bounds, problems
    from headrace.client.lag_states import LagState

    named = "" if fail_on.strip().lower() == "none" else fail_on
    bounds = Bounds(
        frozenset(LagState(each) for each in choices.several(named, tuple(LagState), "states")),
        max_records,
        None if max_seconds is None else times.seconds_of(max_seconds),
        None if min_until_loss is None else times.seconds_of(min_until_loss),
    )
    length = _window(window)
    cluster = connect(bootstrap, command_config)
    with metering(cluster, length) as meter:
        measure = _measuring(cluster, groups, meter.measure)
        found = measure()
        deadline = time.monotonic() + length
        while any(each.state == LagState.UNKNOWN for each in found) and time.monotonic() < deadline:
            time.sleep(min(1.0, length / 10))
            found = measure()
    judged = [(each, problems(each, bounds)) for each in found]
    if json:
        output.json_document([{**each.as_json(), "problems": wrong} for each, wrong in judged])
    elif judged:
        output.table(
            ("GROUP", "STATE", "LAG", "BEHIND", "PROBLEMS"),
            [
                (
                    each.group_id,
                    each.state.value,
                    each.records,
                    times.show_seconds(each.seconds),
                    "; ".join(wrong) or None,
                )
                for each, wrong in judged
            ],
        )
    else:
        output.note("There are no groups.")
    if any(wrong for _, wrong in judged):
        raise SystemExit(Exit.FAILED)


@app.command(epilog=options.examples("headrace lag history billing", "headrace lag history --last 6h --json"))
def history(
    groups: SomeGroups = None,
    last: Annotated[
        str, typer.Option("--last", metavar="DURATION", help="How far back, up to a day.")
    ] = "3h",
    json: options.Json = False,
    bootstrap: options.Bootstrap = options.DEFAULT_BOOTSTRAP,
    command_config: options.CommandConfig = None,
) -> None:
    """Show the lag of the last hours, as 'headrace lag record' wrote it to a topic."""
    from headrace.cli.cluster.connection import connect
    from headrace.client import Admin
    from headrace.client.lag_history import TOPIC, LagHistory

    back = times.seconds_of(last)
    cluster = connect(bootstrap, command_config)
    with cluster.failures(), Admin(cluster.settings) as admin:
        found = LagHistory(cluster.settings).read(admin, groups or (), back)
    if json:
        output.json_document([each.as_json() for each in found])
        return
    if not found:
        raise Failure(
            f"The topic {TOPIC} has nothing of {', '.join(groups) if groups else 'any group'} in the last {last}; "
            "'headrace lag record' writes it."
        )
    for group in sorted({each.group for each in found}):
        line = view.sparkline([float(each.records) for each in found if each.group == group])
        print(f"{group}: {line}")
    print()
    print("\n".join(output.columns(view.HISTORY_HEADER, view.history_rows(found), view.RIGHT)))


@app.command(epilog=options.examples("headrace lag record", "headrace lag record billing --interval 30s"))
def record(
    groups: SomeGroups = None,
    interval: Annotated[
        str, typer.Option("--interval", metavar="DURATION", help="How often, at least every second.")
    ] = "60s",
    bootstrap: options.Bootstrap = options.DEFAULT_BOOTSTRAP,
    command_config: options.CommandConfig = None,
) -> None:
    """Write the groups' lag to the compacted topic __headrace_lag, until Ctrl-C; 'headrace lag history' shows the last day."""
    import logging
    import threading

    from headrace.cli.cluster.connection import connect
    from headrace.client.lag_recorder import LagRecorder

    seconds = times.seconds_of(interval)
    if seconds < 1:
        raise Failure("--interval takes a duration of at least 1s.", Exit.USAGE)
    logging.basicConfig(level=logging.WARNING, format="headrace: %(message)s")
    cluster = connect(bootstrap, command_config)
    with cluster.failures(), LagRecorder(cluster.settings, groups or (), seconds) as recorder:
        lags = recorder.record()
        output.note(f"Recording the lag of {output.count(len(lags), 'group')} every {interval}.")
        stop = threading.Event()
        stop.wait(seconds)
        recorder.run(stop)


def _window(text: str) -> float:
    seconds = times.seconds_of(text)
    if seconds <= 0:
        raise Failure("--window takes a duration above 0, such as 60s.", Exit.USAGE)
    return seconds


def _measuring(
    cluster: Cluster, groups: list[str] | None, measure: Callable[[str], GroupLag]
) -> Callable[[], list[GroupLag]]:
    """A look at the groups named, which must be there, or at all there are at that moment."""
    from headrace.cli.cluster.groups import describe
    from headrace.client.administration.groups import ALL_TYPES, listings

    for group in groups or ():
        describe(cluster, group)

    def look() -> list[GroupLag]:
        names = groups or [each.group for each in cluster.call(listings, types=ALL_TYPES)]
        with cluster.failures():
            return [measure(name) for name in names]

    return look
