"""`headrace top`: brokers, topics, groups and clients at work, on a terminal that renews itself."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Annotated

import typer

from headrace.cli import options
from headrace.cli.view import output
from headrace.cli.view.top import Screen, Subject, drawn, headline, plain

if TYPE_CHECKING:
    from collections.abc import Callable

    from headrace.client.activity import Activity

app = options.command_app("Watch brokers, topics, groups and clients at work.")


@app.command(
    epilog=options.examples(
        "headrace top",
        "headrace top --view groups --interval 5",
        "headrace top --once --view topics",
        "headrace top --once --json",
    )
)
def top(
    view: Annotated[
        Subject | None,
        typer.Option(
            "--view", help="What to show first; without a terminal the only thing, instead of everything."
        ),
    ] = None,
    interval: Annotated[float, typer.Option("--interval", min=0.2, help="Seconds between looks.")] = 2.0,
    once: Annotated[
        bool, typer.Option("--once", help="Look twice, one interval apart, print the figures and end.")
    ] = False,
    metrics: Annotated[
        str | None,
        typer.Option(
            "--metrics",
            metavar="HOST:PORT,…",
            help="Where the brokers serve /clients; default: what their settings say (headrace.metrics.listener).",
        ),
    ] = None,
    json: options.Json = False,
    bootstrap: options.Bootstrap = options.DEFAULT_BOOTSTRAP,
    command_config: options.CommandConfig = None,
) -> None:
    """Show the rates of brokers, topics, groups and clients, until q or Ctrl-C.

    Works with every Kafka cluster: records are counted by offsets, bytes by the growth of logs, clients by the members of groups.
    Brokers that serve /metrics and /clients tell more: exact bytes in and out, connections, requests.
    """
    from headrace.cli.cluster.clients import places_of
    from headrace.cli.cluster.connection import connect
    from headrace.cli.cluster.lag import metering
    from headrace.client.activity_meter import ActivityMeter
    from headrace.client.broker_pages import identified

    cluster = connect(bootstrap, command_config)
    with metering(cluster) as lag:
        meter = ActivityMeter(cluster.session, lag, identified(places_of(cluster, metrics)))

        def look() -> Activity:
            with cluster.failures():
                return meter.look()

        if once or json or not sys.stdout.isatty():
            _print(look, interval, view, once, json)
        else:
            _draw(look, interval, Screen().of(view or Subject.TOPICS), str(cluster.bootstrap))


def _print(
    look: Callable[[], Activity], interval: float, view: Subject | None, once: bool, json: bool
) -> None:
    """The first look has no rates yet, so it is not shown."""
    look()
    while True:
        time.sleep(interval)
        activity = look()
        if json:
            print(output.json_line(activity.as_json()))
        else:
            print("\n\n".join(plain(activity, Screen().of(each)) for each in ([view] if view else Subject)))
            for problem in activity.problems:
                output.note(f"headrace: {problem}")
        sys.stdout.flush()
        if once:
            return


def _draw(look: Callable[[], Activity], interval: float, screen: Screen, bootstrap: str) -> None:
    from rich.live import Live

    from headrace.cli.view.keys import keys
    from headrace.cli.view.redraw import redraw

    with keys() as pressed, Live(screen=True, auto_refresh=False) as live:
        while True:
            activity = look()
            due = time.monotonic() + (interval if activity.seconds is not None else min(interval, 1.0))
            while True:
                redraw(live, drawn(activity, screen, headline(activity, bootstrap), live.console.height))
                key = pressed.within(due - time.monotonic())
                if key == "q":
                    return
                if key is None:
                    break
                screen = screen.pressed(key)
