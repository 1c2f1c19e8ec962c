"""`headrace alerts`: run the alerter, check its file, send a test, and see, silence and look back."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from headrace.cli import options
from headrace.cli.failure import Exit, Failure, Misuse, did_you_mean
from headrace.cli.parsing import times
from headrace.cli.view import output

if TYPE_CHECKING:
    from headrace.cli.cluster.connection import Cluster
    from headrace.client import Admin
    from headrace.watch.alerts.declared import Declaration
    from headrace.watch.alerts.store import Store

app = options.command_app(
    "Watch a cluster by rules, and tell people: run, check, test, list, silence, look back."
)

ConfigFile = Annotated[
    Path, typer.Option("--config", "-c", metavar="FILE", help="Rules and receivers (docs/alerts.md).")
]
DEFAULT_FILE = Path("alerts.toml")


@app.command(
    epilog=options.examples(
        "headrace alerts run",
        "headrace alerts run --config /etc/headrace/alerts.toml -b kafka1:9092,kafka2:9092",
    )
)
def run(
    config: ConfigFile = DEFAULT_FILE,
    bootstrap: options.Bootstrap = options.DEFAULT_BOOTSTRAP,
    command_config: options.CommandConfig = None,
) -> None:
    """Judge the rules again and again and send notices, until Ctrl-C or SIGTERM.

    Start it two or three times, on different machines: one instance acts, and another takes over when it is gone. It starts while
    the cluster is away, too, and says so.
    """
    import logging
    import threading

    from headrace.client.errors import ClientError
    from headrace.watch.alerts.alerter import Alerter

    declaration = _load(config)
    logging.basicConfig(level=logging.WARNING, format="headrace: %(message)s")
    settings = _settings(bootstrap, command_config)
    try:
        alerter = Alerter(declaration, settings)
        rules = output.count(len(declaration.rules), "rule")
        output.note(f"Judging {rules} every {declaration.interval:g} s as {alerter.instance}.")
        alerter.run(threading.Event())
    except ClientError as error:
        raise Failure(str(error)) from None


@app.command(
    epilog=options.examples(
        "headrace alerts check", "headrace alerts check --config deploy/alerts.toml --offline"
    )
)
def check(
    config: ConfigFile = DEFAULT_FILE,
    offline: Annotated[bool, typer.Option("--offline", help="Only the file; ask no cluster.")] = False,
    json: options.Json = False,
    bootstrap: options.Bootstrap = options.DEFAULT_BOOTSTRAP,
    command_config: options.CommandConfig = None,
) -> None:
    """Check the file, show every mistake in it, then judge each rule once and print what it finds. Sends nothing.

    Exit status 0 when the file can be used, 1 when it cannot, 3 when no broker answers. A single look knows no rates: states of lag and
    forecasts of disks have no data yet.
    """
    from headrace.cli.view import alerts as view

    declaration = _load(config)
    if offline:
        count = output.count(len(declaration.rules), "rule")
        summary = {"rules": len(declaration.rules), "receivers": len(declaration.receivers)}
        if json:
            output.json_document(summary)
        else:
            print(f"{config}: {count}, {output.count(len(declaration.receivers), 'receiver')}, no mistakes.")
        return
    from headrace.cli.cluster.connection import connect
    from headrace.watch.alerts.observer import Observer

    cluster = connect(bootstrap, command_config)
    with cluster.failures():
        observer = Observer(declaration, cluster.settings)
        look = observer.look()
        observer.close()
    if look.away is not None:
        raise Failure(f"{look.away}.", Exit.UNREACHABLE)
    if json:
        output.json_document(view.look_document(look))
    else:
        output.table(view.FINDINGS_HEADER, view.look_rows(look))


@app.command(
    "test",
    epilog=options.examples(
        "headrace alerts test",
        "headrace alerts test consumer-stalled",
        "headrace alerts test --receiver pager",
    ),
)
def try_out(
    rule: Annotated[str | None, typer.Argument(metavar="[RULE]", help="To this rule's receivers.")] = None,
    receiver: Annotated[
        str | None, typer.Option("--receiver", metavar="NAME", help="To this receiver alone.")
    ] = None,
    config: ConfigFile = DEFAULT_FILE,
    json: options.Json = False,
    bootstrap: options.Bootstrap = options.DEFAULT_BOOTSTRAP,
    command_config: options.CommandConfig = None,
) -> None:
    """Send one notice, marked as a test: to a rule's receivers, to one receiver, or to all. Exit status 1 when one did not take it."""
    from headrace.watch.alerts.trial import send_test

    declaration = _load(config)
    if rule is not None and receiver is not None:
        raise Misuse("Give a rule or --receiver, not both.")
    chosen = None
    names = list(declaration.receivers)
    if rule is not None:
        chosen = declaration.rule(rule)
        if chosen is None:
            known = [each.name for each in declaration.rules]
            raise Misuse(f"{config} has no rule '{rule}'.{did_you_mean(rule, known)}")
        names = list(chosen.receivers)
    elif receiver is not None:
        if receiver not in declaration.receivers:
            raise Misuse(f"{config} has no receiver '{receiver}'.{did_you_mean(receiver, names)}")
        names = [receiver]
    outcomes = send_test(declaration, _settings(bootstrap, command_config), names, chosen)
    if json:
        output.json_document(
            [{"receiver": name, "delivered": why is None, "reason": why} for name, why in outcomes.items()]
        )
    else:
        for name, why in outcomes.items():
            print(f"{name}: {'delivered' if why is None else f'not delivered: {why}'}")
    if any(outcomes.values()):
        raise SystemExit(Exit.FAILED)


@app.command("list", epilog=options.examples("headrace alerts list", "headrace alerts list --all --json"))
def list_(
    everything: Annotated[
        bool, typer.Option("--all", help="Also what is pending, and what has just been resolved.")
    ] = False,
    json: options.Json = False,
    bootstrap: options.Bootstrap = options.DEFAULT_BOOTSTRAP,
    command_config: options.CommandConfig = None,
) -> None:
    """Show what fires now, since when, and whether it is silenced."""
    from headrace.cli.view import alerts as view
    from headrace.client.admin import session_of
    from headrace.watch.alerts.election import is_watched
    from headrace.watch.alerts.notices import iso
    from headrace.watch.alerts.states import Phase

    now = time.time()
    with _stored(bootstrap, command_config) as (_, admin, store):
        stored = store.read(admin)
        silences = store.silences(admin)
        watched = is_watched(session_of(admin))
    shown = [each for each in stored.alerts.values() if everything or each.phase is Phase.FIRING]
    acting = stored.acting
    if json:
        output.json_document(
            {
                "watched": watched,
                "acting": None if acting is None else {**acting.as_document(), "since": iso(acting.since)},
                "alerts": [view.alert_document(each, silences, now) for each in view.in_order(shown)],
            }
        )
        return
    if acting is None:
        output.note("No alerter has run here; 'headrace alerts run' starts one.")
    else:
        since = f"{view.moment(acting.since)} UTC"
        who = (
            f"{acting.instance} has acted since {since}"
            if watched
            else f"No alerter runs now, so what follows may be old; {acting.instance} acted last, from {since}"
        )
        output.note(f"{who}: {output.count(acting.delivered, 'notice')} delivered, {acting.failed} not.")
    if shown:
        output.table(view.ALERTS_HEADER, view.alert_rows(shown, silences, now))
    else:
        output.note("Nothing fires.")


@app.command(
    epilog=options.examples(
        'headrace alerts silence consumer-stalled --for 2h --comment "restoring the database"',
        'headrace alerts silence --label group=billing --until 2026-12-01T06:00:00 --comment "moving"',
        'headrace alerts silence "disk-*" --label broker=3 --for 1d --author ann --comment "new disk ordered"',
    )
)
def silence(
    rule: Annotated[str | None, typer.Argument(metavar="[RULE]", help="A rule's name or a pattern.")] = None,
    label: Annotated[
        list[str] | None,
        typer.Option(
            "--label", "-l", metavar="NAME=VALUE", help="Only alerts with it; a pattern. Repeatable."
        ),
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Every alert there is.")] = False,
    for_: Annotated[
        str | None, typer.Option("--for", metavar="DURATION", help="How long, such as 2h.")
    ] = None,
    until: Annotated[
        str | None, typer.Option("--until", metavar="TIME", help="Or until when; UTC unless it has a zone.")
    ] = None,
    comment: Annotated[str, typer.Option("--comment", help="Why: the next person on call will ask.")] = "",
    author: Annotated[str | None, typer.Option("--author", help="Default: this machine's user.")] = None,
    json: options.Json = False,
    bootstrap: options.Bootstrap = options.DEFAULT_BOOTSTRAP,
    command_config: options.CommandConfig = None,
) -> None:
    """Send no notices of some alerts until a time. The alerts are still evaluated and listed, and the end of one that was notified is notified, too."""
    from headrace.cli.view import alerts as view
    from headrace.client import Producer
    from headrace.watch.alerts.silences import KEEP, Silence

    now = time.time()
    if (for_ is None) == (until is None):
        raise Misuse("A silence needs an end: give --for 2h or --until 2026-12-01T06:00:00.")
    end = now + times.seconds_of(for_) if for_ is not None else times.milliseconds_of(until or "") / 1000
    if end <= now:
        raise Misuse("The end of the silence has passed already.")
    if not comment.strip():
        raise Misuse('A silence needs a reason: --comment "…".')
    if everything == bool(rule or label):
        raise Misuse("Say what to silence: a rule, --label NAME=VALUE, or --all.")
    labels = dict(_label(each) for each in label or ())
    made = Silence.make(rule or "*", labels, end, author, comment.strip(), now)
    with (
        _stored(bootstrap, command_config) as (cluster, admin, store),
        Producer(cluster.settings) as producer,
    ):
        store.ensure(admin)
        for old in store.silences(admin):
            if old.is_over(now - KEEP):
                store.remove_silence(producer, old.id)
        store.put_silence(producer, made)
    if json:
        output.json_document(view.silence_document(made, now))
    else:
        print(
            f"Silenced as {made.id} until {view.moment(end)} UTC; 'headrace alerts unsilence {made.id}' ends it."
        )


@app.command(epilog=options.examples("headrace alerts silences", "headrace alerts silences --json"))
def silences(
    json: options.Json = False,
    bootstrap: options.Bootstrap = options.DEFAULT_BOOTSTRAP,
    command_config: options.CommandConfig = None,
) -> None:
    """Show the silences, and those of the last day that are over."""
    from headrace.cli.view import alerts as view

    now = time.time()
    with _stored(bootstrap, command_config) as (_, admin, store):
        found = store.silences(admin)
    if json:
        output.json_document([view.silence_document(each, now) for each in found])
    elif found:
        output.table(view.SILENCES_HEADER, view.silence_rows(found, now))
    else:
        output.note("There are no silences.")


@app.command(epilog=options.examples("headrace alerts unsilence 3f9a1c2e", "headrace alerts unsilence --all"))
def unsilence(
    ids: Annotated[
        list[str] | None, typer.Argument(metavar="[ID]…", help="As 'headrace alerts silences' shows them.")
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Every silence.")] = False,
    json: options.Json = False,
    bootstrap: options.Bootstrap = options.DEFAULT_BOOTSTRAP,
    command_config: options.CommandConfig = None,
) -> None:
    """End silences. What still fires tells its receivers again."""
    from headrace.client import Producer

    if bool(ids) == everything:
        raise Misuse("Name the silences to end, or give --all.")
    with _stored(bootstrap, command_config) as (cluster, admin, store):
        known = [each.id for each in store.silences(admin)]
        for each in ids or ():
            if each not in known:
                raise Failure(
                    f"There is no silence '{each}'.{did_you_mean(each, known)} 'headrace alerts silences' shows them."
                )
        ended = known if everything else list(dict.fromkeys(ids or ()))
        with Producer(cluster.settings) as producer:
            for each in ended:
                store.remove_silence(producer, each)
    if json:
        output.json_document(ended)
    else:
        print(f"Ended {output.count(len(ended), 'silence')}.")


@app.command(
    epilog=options.examples(
        "headrace alerts history", "headrace alerts history --rule consumer-stalled --last 12h --json"
    )
)
def history(
    rule: Annotated[str | None, typer.Option("--rule", metavar="NAME", help="Only this rule.")] = None,
    last: Annotated[str, typer.Option("--last", metavar="DURATION", help="How far back.")] = "7d",
    json: options.Json = False,
    bootstrap: options.Bootstrap = options.DEFAULT_BOOTSTRAP,
    command_config: options.CommandConfig = None,
) -> None:
    """Show what fired, was resolved, was delivered or not, and which instance took over. The last 2,000 events are kept."""
    from headrace.cli.view import alerts as view

    since = time.time() - times.seconds_of(last)
    with _stored(bootstrap, command_config) as (_, admin, store):
        found = [
            each for each in store.history(admin) if each.at >= since and (rule is None or each.rule == rule)
        ]
    if json:
        output.json_document([view.event_document(each) for each in found])
    elif found:
        output.table(view.HISTORY_HEADER, view.history_rows(found))
    else:
        output.note(f"Nothing happened in the last {last}.")


def _load(config: Path) -> Declaration:
    """The file, or a Failure with every mistake in it, a line each."""
    from headrace.watch.alerts.file import Mistakes, load

    try:
        return load(config)
    except Mistakes as mistakes:
        raise Failure(str(mistakes)) from None


def _settings(bootstrap: str, command_config: Path | None) -> dict[str, object]:
    """Without asking whether a broker answers: alerts are for when none does."""
    from headrace.cli.cluster.connection import settings_of

    return {
        "client.id": "headrace-alerts",
        **settings_of(bootstrap, command_config),
        "bootstrap.servers": str(bootstrap),
    }


@contextmanager
def _stored(bootstrap: str, command_config: Path | None) -> Iterator[tuple[Cluster, Admin, Store]]:
    from headrace.cli.cluster.connection import connect
    from headrace.client import Admin
    from headrace.watch.alerts.store import Store

    cluster = connect(bootstrap, command_config)
    with cluster.failures(), Admin(cluster.settings) as admin:
        yield cluster, admin, Store(cluster.settings)


def _label(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not (equals and name and value):
        raise Misuse(f"--label takes NAME=VALUE, such as group=billing, not '{text}'.")
    return name, value
