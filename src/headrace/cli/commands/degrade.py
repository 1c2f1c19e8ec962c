"""`headrace degrade`: do less under load, and the rest later."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from headrace.cli import options
from headrace.cli.failure import Failure, Misuse
from headrace.cli.parsing import times
from headrace.cli.view import output

if TYPE_CHECKING:
    from headrace.client.degrade.control import Command
    from headrace.client.degrade.orders import GroupStatus, Orders

app = options.command_app("Switch the rules of running groups on and off, and replay what they dropped.")

_PATIENCE = 5.0
"""Seconds in which running instances confirm a command; they need a fraction of one."""

Rules = Annotated[
    list[str] | None,
    typer.Argument(metavar="[RULE…]", help="As `status` shows them. Default: all of the group."),
]
For = Annotated[
    str | None,
    typer.Option("--for", metavar="DURATION", help="Then back to `auto`. Default: until the next command."),
]
Why = Annotated[str | None, typer.Option("--why", metavar="TEXT", help="Shown by `status`.")]


@app.command(
    epilog=options.examples(
        "headrace degrade on billing sample",
        "headrace degrade on statistics group --for 2h --why 'sale until noon'",
        "headrace degrade on shop sms mail --json",
    )
)
def on(
    group: options.Group,
    rules: Annotated[list[str], typer.Argument(metavar="RULE…", help="As `status` shows them.")],
    for_: For = None,
    why: Why = None,
    json: options.Json = False,
    bootstrap: options.Bootstrap = options.DEFAULT_BOOTSTRAP,
    command_config: options.CommandConfig = None,
) -> None:
    """Engage rules of a running group within about a second, whatever its lag, until `off`, `auto` or --for ends it.

    The rule `group` switches off the whole group: it keeps its place, reads nothing, and catches up afterwards. A rule with the name
    of a handler switches that handler off.
    """
    _order("on", group, rules, for_, why, json, bootstrap, command_config)


@app.command(
    epilog=options.examples("headrace degrade off billing", "headrace degrade off billing sample --for 1h")
)
def off(
    group: options.Group,
    rules: Rules = None,
    for_: For = None,
    why: Why = None,
    json: options.Json = False,
    bootstrap: options.Bootstrap = options.DEFAULT_BOOTSTRAP,
    command_config: options.CommandConfig = None,
) -> None:
    """Keep rules from acting, whatever the lag, until `on`, `auto` or --for ends it."""
    _order("off", group, rules or [], for_, why, json, bootstrap, command_config)


@app.command(epilog=options.examples("headrace degrade auto billing", "headrace degrade auto billing sample"))
def auto(
    group: options.Group,
    rules: Rules = None,
    json: options.Json = False,
    bootstrap: options.Bootstrap = options.DEFAULT_BOOTSTRAP,
    command_config: options.CommandConfig = None,
) -> None:
    """Let rules act by their own conditions again, as they do without a command."""
    _order("auto", group, rules or [], None, None, json, bootstrap, command_config)


@app.command(epilog=options.examples("headrace degrade status", "headrace degrade status billing --json"))
def status(
    groups: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[GROUP…]", help="Default: all with rules.", autocompletion=options.complete_group
        ),
    ] = None,
    json: options.Json = False,
    bootstrap: options.Bootstrap = options.DEFAULT_BOOTSTRAP,
    command_config: options.CommandConfig = None,
) -> None:
    """Show where each rule stands, since when and why, how much it has dropped, and what of it is not replayed yet."""
    with _orders(bootstrap, command_config) as orders:
        found = orders.status(groups or ())
    if json:
        output.json_document([each.as_json() for each in found])
        return
    rows = [row for each in found for row in _rows(each)]
    if rows:
        output.table(("GROUP", "RULE", "DOES", "STATE", "SINCE", "DROPPED", "TO REPLAY", "WHY"), rows)
    else:
        output.note("No group has rules: none runs with degrade=, and nothing was ordered.")


@app.command(
    epilog=options.examples(
        "headrace degrade replay billing",
        "headrace degrade replay billing --rule sample --rate 500",
        "headrace degrade replay shop --to shop.late --json",
    )
)
def replay(
    group: options.Group,
    rules: Annotated[
        list[str] | None,
        typer.Option("--rule", metavar="RULE", help="Only what this rule dropped; repeatable."),
    ] = None,
    rate: Annotated[
        float | None, typer.Option("--rate", min=0.1, help="At most so many records a second.")
    ] = None,
    to: Annotated[
        str | None,
        typer.Option("--to", metavar="TOPIC", help="Default: GROUP.replay, which the group's runners read."),
    ] = None,
    json: options.Json = False,
    bootstrap: options.Bootstrap = options.DEFAULT_BOOTSTRAP,
    command_config: options.CommandConfig = None,
) -> None:
    """Bring dropped records back to the group that dropped them, from where they still are in their topics.

    May be interrupted, or killed, and run again: it goes on where it was, and sends nothing twice.
    """
    from headrace.cli.cluster.connection import connect
    from headrace.cli.view.progress import Progress
    from headrace.client.degrade.replay import Replay

    began = time.monotonic()
    cluster = connect(bootstrap, command_config)
    with cluster.failures(), _sentences():
        bar: Progress | None = None

        def found(total: int) -> None:
            nonlocal bar
            bar = Progress("Replaying", total, "records", shown=not json)
            bar.__enter__()

        def advance(count: int) -> None:
            assert bar is not None
            bar.advance(count)

        work = Replay(cluster.settings, group, rules=rules or (), to=to, rate=rate)
        try:
            outcome = work.run(advance, found)
        finally:
            if bar is not None:
                bar.__exit__(None, None, None)
    if json:
        document = {"group": group, "to": work.target, "replayed": outcome.replayed, "lost": outcome.lost}
        output.json_document({**document, "seconds": round(time.monotonic() - began, 3)})
        return
    print(f"Replayed {output.count(outcome.replayed, 'record')} of {group} into {work.target}.")
    if outcome.lost:
        output.note(
            f"{output.count(outcome.lost, 'record')} could not be: retention or compaction has deleted them."
        )


def _order(
    order: str,
    group: str,
    rules: list[str],
    lasting: str | None,
    why: str | None,
    json: bool,
    bootstrap: str,
    command_config: Path | None,
) -> None:
    from headrace.client.degrade.states import Order

    seconds = None if lasting is None else times.seconds_of(lasting)
    if seconds is not None and seconds <= 0:
        raise Misuse("--for takes a duration above 0, such as 2h.")
    with _orders(bootstrap, command_config) as orders:
        commands = orders.give(group, rules, Order(order), seconds=seconds, why=why)
        done, running = orders.confirmed(commands, _PATIENCE)
    if json:
        output.json_document({**_told(commands), "instances": running, "confirmed": done})
        return
    print(_said(order, group, [each.rule for each in commands]))
    if not running:
        output.note(f"Nothing with rules runs in {group} now: the command waits for it.")
    elif done < running:
        output.note(
            f"{done} of {running} instances have confirmed it within {_PATIENCE:.0f} s; see headrace degrade status {group}."
        )


def _said(order: str, group: str, rules: list[str]) -> str:
    """What happens now. "Switched statistics on" would be read as its opposite: the rule is on, and statistics get nothing."""
    names, one = ", ".join(rules), len(rules) == 1
    named = f"The rule{'' if one else 's'} {names} of {group}"
    if order == "auto":
        return f"{named} {'acts' if one else 'act'} by {'its' if one else 'their'} own condition{'' if one else 's'} again."
    if order == "off":
        return (
            f"{named} no longer {'acts' if one else 'act'}: nothing is left out by {'it' if one else 'them'}."
        )
    return f"{named} {'acts' if one else 'act'} now, whatever the lag: see headrace degrade status {group}."


def _told(commands: list[Command]) -> dict[str, object]:
    first = commands[0]
    return {
        "group": first.group,
        "rules": [each.rule for each in commands],
        "order": first.order.value,
        "by": first.by,
        "at": first.at,
        "until": first.until,
        "why": first.why,
    }


def _rows(status: GroupStatus) -> list[tuple[object, ...]]:
    rows: list[tuple[object, ...]] = []
    for each in status.rules:
        if not each.states:
            ordered = each.command is not None and each.command.at_time(time.time()).value != "auto"
            state = (
                f"not running ({each.command.order.value} ordered)"
                if ordered and each.command
                else "not running"
            )
        elif len(each.states) == 1:
            state = next(iter(each.states))
        else:
            state = ", ".join(f"{state} {count}x" for state, count in sorted(each.states.items()))
        does = each.does if each.handler is None else f"{each.does} {each.handler}"
        rows.append(
            (status.group, each.rule, does, state, _time(each.since), each.dropped, each.left, each.why)
        )
    return rows


def _time(at: float | None) -> str | None:
    return None if at is None else datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds")


@contextmanager
def _orders(bootstrap: str, command_config: Path | None) -> Iterator[Orders]:
    from headrace.cli.cluster.connection import connect
    from headrace.client.degrade.orders import Orders

    cluster = connect(bootstrap, command_config)
    with cluster.failures(), _sentences(), Orders(cluster.settings) as orders:
        yield orders


@contextmanager
def _sentences() -> Iterator[None]:
    from headrace.client import ConfigError

    try:
        yield
    except ConfigError as error:
        text = str(error)
        raise Failure(f"{text[:1].upper()}{text[1:]}{'' if text.endswith('?') else '.'}") from None
