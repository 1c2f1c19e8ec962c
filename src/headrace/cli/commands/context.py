"""`headrace context`: named clusters, so that a command line need not repeat where they are and how to log in."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from headrace.cli import options
from headrace.cli.failure import Failure, Misuse
from headrace.cli.parsing import properties
from headrace.cli.view import output
from headrace.link import contexts
from headrace.link.errors import SettingsError

app = options.command_app("Name clusters and choose among them.")

Name = Annotated[str, typer.Argument(metavar="NAME", autocompletion=options.complete_context)]
_FILES = (".location", ".file", ".keytab")


@app.command(
    epilog=options.examples(
        "headrace context add local --bootstrap-server 127.0.0.1:9092 --use",
        "headrace context add prod --bootstrap-server kafka-1:9093,kafka-2:9093 --config prod.properties",
        "headrace context add test -b h:9093 --property security.protocol=SSL --property ssl.ca.location=ca.pem",
    )
)
def add(
    name: Annotated[str, typer.Argument(metavar="NAME")],
    bootstrap: Annotated[
        str | None,
        typer.Option(
            "--bootstrap-server", "-b", metavar="HOST:PORT,…", help="Any brokers of the cluster. [the file's]"
        ),
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(
            "--config", metavar="FILE", help="Client properties (security and so on) to keep with it."
        ),
    ] = None,
    property_: Annotated[
        list[str] | None,
        typer.Option(
            "--property",
            metavar="KEY=VALUE",
            help="A client property, which wins over the file's; may be repeated.",
        ),
    ] = None,
    use_: Annotated[bool, typer.Option("--use", help="Also use it from now on.")] = False,
    replace: Annotated[
        bool, typer.Option("--replace", help="Take the place of a context of this name.")
    ] = False,
) -> None:
    """Add a cluster with its security settings. Paths in them are kept absolute."""
    given = properties.load(config) if config is not None else {}
    given |= properties.from_arguments(property_ or [], "--property")
    servers = bootstrap or given.pop("bootstrap.servers", "")
    if not servers:
        raise Misuse("A context needs brokers: give --bootstrap-server HOST:PORT.")
    options.check_bootstrap(servers)
    kept = {"bootstrap.servers": servers}
    kept |= {key: _absolute(key, value) for key, value in given.items() if key != "bootstrap.servers"}
    _check(kept)
    with _changing() as known:
        known.add(contexts.Context(name, kept), replace=replace)
        if use_:
            known.use(name)
        in_use = known.current == name
    print(f"Added context {name}{' and using it from now on' if use_ else ''}.")
    if not in_use:
        output.note(
            f"Choose it with --context {name}, or for all commands with 'headrace context use {name}'."
        )


@app.command(
    "list",
    epilog=options.examples("headrace context list", "headrace context list --json | jq -r '.[].name'"),
)
def list_(json: options.Json = False) -> None:
    """List the contexts; the one in use has a star."""
    with _sentences():
        known = contexts.load(contexts.contexts_file())
        chosen = _chosen_name(known)
    rows = [
        (name == chosen, name, context.servers, context.properties.get("security.protocol", "PLAINTEXT"))
        for name, context in known.by_name.items()
    ]
    if json:
        keys = ("in_use", "name", "bootstrap_servers", "security_protocol")
        output.json_document([dict(zip(keys, row, strict=True)) for row in rows])
    elif rows:
        output.table(
            ("", "NAME", "BOOTSTRAP SERVERS", "SECURITY"), [("*" if row[0] else "", *row[1:]) for row in rows]
        )
    else:
        output.note("There are no contexts yet; add one with 'headrace context add NAME -b HOST:PORT'.")


@app.command(epilog=options.examples("headrace context use prod", "headrace context use --none"))
def use(
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", autocompletion=options.complete_context)
    ] = None,
    none: Annotated[bool, typer.Option("--none", help="Use no context any more.")] = False,
) -> None:
    """Use a context in every command that names no cluster itself."""
    if (name is None) == (not none):
        raise Misuse("Name the context to use, or give --none.")
    with _changing() as known:
        if name is None:
            known.current = None
        else:
            known.use(name)
    print("Using no context." if name is None else f"Using context {name}.")
    if os.environ.get(contexts.VARIABLE):
        output.note(f"{contexts.VARIABLE} is set in this shell and wins over it.")
    elif os.environ.get("HEADRACE_BOOTSTRAP") and name is not None:
        output.note("HEADRACE_BOOTSTRAP is set in this shell and wins over it.")


@app.command(epilog=options.examples("headrace context show", "headrace context show prod --json"))
def show(
    name: Annotated[
        str | None,
        typer.Argument(metavar="NAME", help="[the one in use]", autocompletion=options.complete_context),
    ] = None,
    json: options.Json = False,
) -> None:
    """Show a context's settings, passwords and keys hidden."""
    with _sentences():
        known = contexts.load(contexts.contexts_file())
        chosen = _chosen_name(known)
        wanted = name or chosen
        if wanted is None:
            raise Failure("No context is in use; name one, or choose one with 'headrace context use NAME'.")
        context = known.get(wanted)
    if json:
        output.json_document(
            {"name": context.name, "in_use": context.name == chosen, "properties": context.shown}
        )
    else:
        output.table(("SETTING", "VALUE"), context.shown.items())


@app.command(epilog=options.examples("headrace context rename prod production"))
def rename(name: Name, new_name: Annotated[str, typer.Argument(metavar="NEW-NAME")]) -> None:
    """Give a context another name."""
    with _changing() as known:
        known.rename(name, new_name)
    print(f"Renamed context {name} to {new_name}.")


@app.command(epilog=options.examples("headrace context remove test"))
def remove(name: Name) -> None:
    """Forget a context and its settings."""
    with _changing() as known:
        was_in_use = known.current == name
        known.remove(name)
    print(f"Removed context {name}{', which was in use' if was_in_use else ''}.")


def _chosen_name(known: contexts.Contexts) -> str | None:
    return os.environ.get(contexts.VARIABLE) or known.current


def _absolute(key: str, value: str) -> str:
    """A context is used from any directory."""
    is_file = key.endswith(_FILES) and value.strip() not in ("", "probe")
    return os.path.abspath(os.path.expanduser(value.strip())) if is_file else value


def _check(settings: dict[str, str]) -> None:
    """Refuse now what every command would refuse later."""
    from headrace.link.translation import translate

    with _sentences():
        for note in translate(settings).notes:
            output.note(note)


@contextmanager
def _changing() -> Iterator[contexts.Contexts]:
    with _sentences(), contexts.changing(contexts.contexts_file()) as known:
        yield known


@contextmanager
def _sentences() -> Iterator[None]:
    try:
        yield
    except SettingsError as error:
        raise Failure(str(error)) from None
