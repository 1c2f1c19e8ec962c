"""`headrace doctor`: what is wrong with the machine, the settings, the cluster and its groups, and what to do about it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from headrace.cli import options
from headrace.cli.failure import Exit, Misuse
from headrace.cli.parsing import choices, properties, times
from headrace.cli.view import output

if TYPE_CHECKING:
    from collections.abc import Callable

    from headrace.watch.doctor.findings import Check, Severity
    from headrace.watch.doctor.scene import Scene

app = options.command_app("Find what is wrong with the machine, settings, cluster and groups, with remedies.")

_ERRORS = 4
"""Exit status: 2 and 3 have their meaning in every command."""


@app.command(
    epilog=options.examples(
        "headrace doctor",
        "headrace doctor server.properties --no-cluster     # before the broker starts",
        "headrace doctor -b broker-1:9092 --only disk-forecast,groups-losing-records --json",
        "headrace doctor --skip interpreter --window 1m || page-someone",
        "headrace doctor --list",
    )
)
def doctor(
    file: Annotated[
        Path | None,
        typer.Argument(metavar="[FILE]", help="A broker's settings (server.properties) to look at, too."),
    ] = None,
    only: Annotated[
        str | None, typer.Option("--only", metavar="CHECK,…", help="Only these checks; --list shows them.")
    ] = None,
    skip: Annotated[str | None, typer.Option("--skip", metavar="CHECK,…", help="Not these checks.")] = None,
    window: Annotated[
        str,
        typer.Option(
            "--window",
            metavar="DURATION",
            help="How long groups and disks are watched; longer than between two commits.",
        ),
    ] = "20s",
    timeout: Annotated[
        str,
        typer.Option("--timeout", metavar="DURATION", help="What is not known by then is not waited for."),
    ] = "2m",
    probe: Annotated[
        bool,
        typer.Option(
            "--probe", help="Commit an offset on each broker, and delete it, to read the brokers' clocks."
        ),
    ] = False,
    no_cluster: Annotated[
        bool, typer.Option("--no-cluster", help="Look at this machine and FILE alone.")
    ] = False,
    list_: Annotated[bool, typer.Option("--list", help="Show the checks and end.")] = False,
    json: options.Json = False,
    bootstrap: options.Bootstrap = options.DEFAULT_BOOTSTRAP,
    command_config: options.CommandConfig = None,
) -> None:
    """Say what is wrong, each problem in one sentence with its remedy. Nothing is changed, unless --probe is given.

    Exit status: 0 when there are at most notes, 1 for warnings, 4 for errors, 3 when no broker answers. Works with Apache Kafka, too.
    Clients' settings (session.timeout.ms and so on) are checked when --command-config has them.
    """
    from headrace.cli.view import doctor as view
    from headrace.watch.doctor.catalogue import CHECKS

    if list_:
        if json:
            output.json_document(
                [{"check": c.name, "worst": c.severity.value, "looks_at": c.looks_at} for c in CHECKS]
            )
        else:
            view.catalogue(CHECKS)
        return
    chosen = _chosen(only, skip)
    length, limit = times.seconds_of(window), times.seconds_of(timeout)
    if length <= 0 or limit <= 0:
        raise Misuse("--window and --timeout take durations above 0, such as 20s and 2m.")
    from headrace.watch.doctor.examination import examine, worst
    from headrace.watch.doctor.findings import Needs

    with _status() as say:
        asked = None if no_cluster or _is_about_this_machine(chosen) else bootstrap
        scene = _scene(file, asked, command_config, length, probe)
        results = list(examine(scene, chosen, limit, lambda check: say(f"Looking at {check.looks_at} …")))
    severity = worst(results)
    results.sort(key=lambda each: chosen.index(each.check))
    if json:
        output.json_document(
            {
                "worst": None if severity is None else severity.value,
                "brokers": [each.broker for each in scene.contacts.brokers],
                "checks": [each.as_json() for each in results],
            }
        )
    else:
        view.show(results)
    if scene.contacts.trouble and chosen[0].needs != Needs.BROKERS:
        output.note(f"No broker answers: {scene.contacts.trouble.rstrip('.')}.")
    code = _status_of(scene, severity)
    if code:
        raise SystemExit(code)


def _chosen(only: str | None, skip: str | None) -> list[Check]:
    from headrace.watch.doctor.catalogue import CHECKS, NAMES

    wanted = choices.several(only, NAMES, "checks") or list(NAMES)
    unwanted = choices.several(skip, NAMES, "checks")
    chosen = [each for each in CHECKS if each.name in wanted and each.name not in unwanted]
    if not chosen:
        raise Misuse("--skip leaves no check; 'headrace doctor --list' shows them.")
    return chosen


def _is_about_this_machine(chosen: list[Check]) -> bool:
    from headrace.watch.doctor.findings import Needs

    return all(each.needs == Needs.MACHINE for each in chosen)


def _scene(
    file: Path | None, bootstrap: str | None, command_config: Path | None, window: float, probe: bool
) -> Scene:
    from headrace.cli.cluster.settings_file import read
    from headrace.server.config.inert import INERT
    from headrace.watch.doctor.machine_facts import Machine
    from headrace.watch.doctor.scene import Scene

    scene = Scene(Machine(), inert_in_brokers=INERT, may_probe=probe)
    scene.client = properties.load(command_config) if command_config else {}
    if file is not None:
        scene.file = read(file)
    if bootstrap is not None:
        _contact(scene, bootstrap, window)
    return scene


def _contact(scene: Scene, bootstrap: str, window: float) -> None:
    from headrace.cli.cluster.connection import librdkafka_settings
    from headrace.cli.failure import Failure
    from headrace.link.contexts import properties_of
    from headrace.link.settings import KafkaSettings, SettingsError
    from headrace.watch.doctor.contacts import contact
    from headrace.watch.doctor.watching import Watch

    scene.client = {**properties_of(bootstrap), **scene.client}
    settings = {
        "client.id": "headrace-cli",
        **librdkafka_settings(scene.client),
        "bootstrap.servers": str(bootstrap),
    }
    try:
        scene.contacts = contact(KafkaSettings.of(settings, "the doctor"))
    except SettingsError as error:
        raise Failure(str(error)) from None
    if scene.contacts.reached:
        scene.watch = Watch(settings, window)


def _status_of(scene: Scene, severity: Severity | None) -> int:
    from headrace.watch.doctor.findings import Severity

    if scene.contacts.trouble:
        return Exit.UNREACHABLE
    if severity == Severity.ERROR:
        return _ERRORS
    return Exit.FAILED if severity == Severity.WARNING else Exit.OK


@contextmanager
def _status() -> Iterator[Callable[[str], None]]:
    """A line on stderr that says what is being looked at, when stderr is a terminal."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console

    with Console(stderr=True).status("Asking the brokers …") as status:
        yield lambda text: status.update(text)
