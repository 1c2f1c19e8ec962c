"""`headrace users`: who may log in with SCRAM."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from headrace.cli import options
from headrace.cli.failure import Failure, did_you_mean
from headrace.cli.view import output

app = options.command_app("Add, list and remove users, and set their passwords (SCRAM).")

_MECHANISMS = ("SCRAM-SHA-256", "SCRAM-SHA-512")

NameArgument = Annotated[str, typer.Argument(metavar="NAME")]
PasswordFile = Annotated[
    Path | None,
    typer.Option(
        "--password-file",
        metavar="FILE",
        help="Take the password from the first line of a file; - for standard input. Otherwise it is asked for.",
    ),
]
Mechanism = Annotated[
    list[str] | None,
    typer.Option("--mechanism", metavar="NAME", help="SCRAM-SHA-256 or SCRAM-SHA-512; both unless given."),
]
Iterations = Annotated[
    int, typer.Option("--iterations", min=4096, max=16384, help="How often the password is hashed.")
]


@app.command(
    epilog=options.examples(
        "headrace users add alice",
        "headrace users add alice --password-file alice.secret",
        "pwgen -s 24 1 | tee app.secret | headrace users add app --mechanism SCRAM-SHA-512",
    )
)
def add(
    name: NameArgument,
    mechanism: Mechanism = None,
    iterations: Iterations = 4096,
    password_file: PasswordFile = None,
    json: options.Json = False,
    bootstrap: options.Bootstrap = options.DEFAULT_BOOTSTRAP,
    command_config: options.CommandConfig = None,
) -> None:
    """Add a user, who may log in at once on every broker."""
    mechanisms = _mechanisms(mechanism)

    from headrace.cli.cluster.connection import connect
    from headrace.cli.parsing.password import read_password
    from headrace.client.administration import users

    cluster = connect(bootstrap, command_config)
    known = cluster.call(users.credentials, [name]).get(name, {})
    taken = [each for each in mechanisms if each in known]
    if taken:
        raise Failure(
            f"User '{name}' exists already ({', '.join(taken)}); 'headrace users password {name}' sets a new password."
        )
    password = read_password(password_file, name)
    cluster.call(users.alter, name, dict.fromkeys(mechanisms, (password, iterations)))
    _report(json, name, mechanisms, f"Added user {name} ({', '.join(mechanisms)}).")


@app.command(
    epilog=options.examples(
        "headrace users password alice", "headrace users password alice --password-file new.secret"
    )
)
def password(
    name: NameArgument,
    iterations: Iterations = 4096,
    password_file: PasswordFile = None,
    json: options.Json = False,
    bootstrap: options.Bootstrap = options.DEFAULT_BOOTSTRAP,
    command_config: options.CommandConfig = None,
) -> None:
    """Set a new password for a user; connections that are logged in stay so."""
    from headrace.cli.cluster.connection import connect
    from headrace.cli.parsing.password import read_password
    from headrace.client.administration import users

    cluster = connect(bootstrap, command_config)
    mechanisms = _known(cluster.call(users.credentials), name)
    new = read_password(password_file, name)
    cluster.call(users.alter, name, dict.fromkeys(mechanisms, (new, iterations)))
    _report(json, name, mechanisms, f"Set a new password for user {name}.")


@app.command("list", epilog=options.examples("headrace users list", "headrace users list --json"))
def list_(
    json: options.Json = False,
    bootstrap: options.Bootstrap = options.DEFAULT_BOOTSTRAP,
    command_config: options.CommandConfig = None,
) -> None:
    """List the users and their mechanisms; passwords are not kept, so none can be shown."""
    from headrace.cli.cluster.connection import connect
    from headrace.client.administration import users

    found = connect(bootstrap, command_config).call(users.credentials)
    if json:
        output.json_document(
            [
                {"user": user, "mechanism": mechanism, "iterations": iterations}
                for user, credentials in sorted(found.items())
                for mechanism, iterations in credentials.items()
            ]
        )
    elif not found:
        output.note("There are no users; 'headrace users add NAME' adds one.")
    else:
        rows = [
            (user, mechanism, iterations)
            for user, credentials in sorted(found.items())
            for mechanism, iterations in credentials.items()
        ]
        output.table(("USER", "MECHANISM", "ITERATIONS"), rows)


@app.command(
    epilog=options.examples(
        "headrace users remove alice", "headrace users remove alice --mechanism SCRAM-SHA-256"
    )
)
def remove(
    name: NameArgument,
    mechanism: Mechanism = None,
    json: options.Json = False,
    bootstrap: options.Bootstrap = options.DEFAULT_BOOTSTRAP,
    command_config: options.CommandConfig = None,
) -> None:
    """Remove a user, who can log in no more; a connection that is logged in stays so until its session ends."""
    from headrace.cli.cluster.connection import connect
    from headrace.client.administration import users

    cluster = connect(bootstrap, command_config)
    known = _known(cluster.call(users.credentials), name)
    mechanisms = _mechanisms(mechanism) if mechanism else known
    missing = [each for each in mechanisms if each not in known]
    if missing:
        raise Failure(
            f"User '{name}' has no credential for {', '.join(missing)}, only for {', '.join(known)}."
        )
    cluster.call(users.alter, name, {}, mechanisms)
    _report(json, name, mechanisms, f"Removed user {name} ({', '.join(mechanisms)}).")


def _known(found: dict[str, dict[str, int]], name: str) -> list[str]:
    if name not in found:
        raise Failure(f"There is no user '{name}'.{did_you_mean(name, found)}")
    return list(found[name])


def _mechanisms(given: list[str] | None) -> list[str]:
    chosen = [each.upper() for each in given or _MECHANISMS]
    for each in chosen:
        options.choose("--mechanism", each, _MECHANISMS)
    return list(dict.fromkeys(chosen))


def _report(json: bool, name: str, mechanisms: list[str], sentence: str) -> None:
    if json:
        output.json_document({"user": name, "mechanisms": mechanisms})
    else:
        print(sentence)
