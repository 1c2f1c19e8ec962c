"""`headrace connect`: declare, check, run, look at and stop connectors."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from headrace.cli import options
from headrace.cli.failure import Failure, Misuse, did_you_mean
from headrace.cli.parsing import times
from headrace.cli.view import output
from headrace.cli.view.checked import conclude
from headrace.streaming.masters import LOCAL

if TYPE_CHECKING:
    from headrace.connectors.state import State

app = options.command_app("Move data into topics and out of them, on Spark.")

Files = Annotated[list[Path], typer.Argument(metavar="FILE…", help="Connectors' files.")]
Names = Annotated[list[str] | None, typer.Argument(metavar="NAME…", help="Connectors' names. [all]")]
Bootstrap = Annotated[
    str | None,
    typer.Option(
        "--bootstrap-server",
        "-b",
        metavar="HOST:PORT,…",
        envvar="HEADRACE_BOOTSTRAP",
        help="Any brokers of the cluster, for files that name none.",
        callback=options.choose_bootstrap,
    ),
]
StateDirectory = Annotated[
    Path | None,
    typer.Option(
        "--state",
        metavar="DIR",
        envvar="HEADRACE_CONNECT_STATE",
        help="Where checkpoints and progress are kept. [.headrace/connect beside the file]",
    ),
]


@app.command(
    epilog=options.examples(
        "headrace connect new sink sql orders.toml",
        "headrace connect new source files",
    )
)
def new(
    direction: Annotated[str, typer.Argument(metavar="source|sink")],
    kind: Annotated[str, typer.Argument(metavar="TYPE", help="See 'headrace connect list --types'.")],
    file: Annotated[Path | None, typer.Argument(metavar="[FILE]", help="[standard output]")] = None,
) -> None:
    """Write a connector's file to begin with: what must be given, and every other setting as a comment."""
    from headrace.connectors.errors import ConfigError
    from headrace.connectors.template import template

    if direction not in ("source", "sink"):
        raise Misuse(f"A connector is a source or a sink, not '{direction}'.")
    try:
        text = template(
            "source" if direction == "source" else "sink", kind, file.stem if file else f"my-{kind}"
        )
    except ConfigError as error:
        raise Misuse(f"{error}.") from None
    if file is None:
        print(text, end="")
        return
    try:
        with file.open("x") as target:
            target.write(text)
    except FileExistsError:
        raise Failure(f"{file} is there already; give another name.") from None
    except OSError as error:
        raise Failure(f"{file} cannot be written: {error.strerror}.") from None
    output.note(f"Next: fill in {file}, then headrace connect check {file}.")


@app.command(
    epilog=options.examples("headrace connect check orders.toml", "headrace connect check *.toml --offline")
)
def check(
    files: Files,
    bootstrap_server: Bootstrap = None,
    offline: Annotated[
        bool, typer.Option("--offline", help="Look at the files only, and at nothing they name.")
    ] = False,
    json: options.Json = False,
) -> None:
    """Find what is wrong without moving anything: a sentence for each mistake."""
    from headrace.cli.commands.connect_run import problems_of

    found = [
        (file, problem) for file in files for problem in problems_of(file, bootstrap_server, offline, files)
    ]
    if json:
        output.json_document([{"file": str(file), "problem": problem} for file, problem in found])
    else:
        for file, problem in found:
            print(f"{file}: {problem}")
    conclude(len(found), "this", len(files), "connector", quiet=json)


@app.command(
    epilog=options.examples(
        "headrace connect run orders.toml",
        "headrace connect run in/*.toml --once",
        "headrace connect run orders.toml --master spark://10.0.0.5:7077 --json",
    )
)
def run(
    files: Files,
    bootstrap_server: Bootstrap = None,
    once: Annotated[bool, typer.Option("--once", help="Move what is there now, then end.")] = False,
    reset: Annotated[
        bool,
        typer.Option("--reset", help="Forget the checkpoints and begin afresh; targets keep what they have."),
    ] = False,
    master: Annotated[
        str,
        typer.Option(
            "--master",
            "-m",
            metavar="URL",
            envvar="HEADRACE_SPARK_MASTER",
            help="Any Spark master: local[N], spark://HOST:PORT, yarn, k8s://…",
        ),
    ] = LOCAL,
    conf: Annotated[
        list[str] | None,
        typer.Option("--conf", "-c", metavar="KEY=VALUE", help="A Spark setting; may be repeated."),
    ] = None,
    state: StateDirectory = None,
    metrics: options.Metrics = None,
    json: options.Json = False,
) -> None:
    """Run connectors until Ctrl-C, `stop` or, with --once, until they have caught up."""
    from headrace.cli.commands.connect_run import run_files

    run_files(
        files,
        bootstrap=bootstrap_server,
        once=once,
        reset=reset,
        master=master,
        conf=conf or [],
        state=state,
        metrics=metrics,
        json=json,
    )


@app.command("list", epilog=options.examples("headrace connect list", "headrace connect list --types"))
def list_(
    types: Annotated[bool, typer.Option("--types", help="The types of connectors there are.")] = False,
    state: StateDirectory = None,
    json: options.Json = False,
) -> None:
    """List the connectors that were run here, or the types that can be."""
    from headrace.cli.view.connectors import print_states, print_types

    if types:
        print_types(json)
        return
    found = _states(None, state)
    if found or json:
        print_states([each.status() for each in found], json)
    else:
        output.note(_none(state))


@app.command(epilog=options.examples("headrace connect status", "headrace connect status orders --json"))
def status(names: Names = None, state: StateDirectory = None, json: options.Json = False) -> None:
    """Show the last numbers of connectors, running or not."""
    from headrace.cli.view.connectors import print_status

    found = _states(names, state)
    if found or json:
        print_status([each.status() for each in found], json)
    else:
        output.note(_none(state))


@app.command(epilog=options.examples("headrace connect stop orders"))
def stop(
    names: Names = None,
    state: StateDirectory = None,
    timeout: Annotated[str, typer.Option("--timeout", metavar="DURATION", help="How long to wait.")] = "60s",
) -> None:
    """Ask running connectors to stop, and wait until they have."""
    wait = times.seconds_of(timeout)
    found = _states(names, state)
    running = [each for each in found if each.is_alive]
    if not running:
        raise Failure("None of these connectors is running." if found else _none(state))
    for each in running:
        each.ask_to_stop()
    deadline = time.monotonic() + wait
    for each in running:
        if not each.wait_until_over(deadline - time.monotonic()):
            raise Failure(f"{each.name} (pid {each.status().pid}) is still stopping; look again later.")
        print(f"{each.name}: stopped")


def _root(state: Path | None) -> Path:
    from headrace.connectors.state import DIRECTORY

    return state if state is not None else DIRECTORY


def _none(state: Path | None) -> str:
    return (
        f"No connector was run here: {_root(state)} holds nothing. Start one with 'headrace connect run FILE', "
        "or go to the directory of its file, where its state is kept."
    )


def _states(names: list[str] | None, state: Path | None) -> list[State]:
    from headrace.connectors.state import all_states

    known = {each.name: each for each in all_states(_root(state))}
    for name in names or []:
        if not known:
            raise Failure(_none(state))
        if name not in known:
            raise Failure(f"No connector '{name}' was run here.{did_you_mean(name, known)}")
    return [known[name] for name in names] if names else list(known.values())
