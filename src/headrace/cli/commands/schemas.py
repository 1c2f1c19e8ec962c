"""`headrace schemas`: what a schema registry holds, and changing it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headrace.cli import options
from headrace.cli.failure import Exit, Failure, Misuse
from headrace.cli.view import output

if TYPE_CHECKING:
    from headrace.client.registry_rest import RegistryRest

app = options.command_app("List, show, register, check, diff, move and delete schemas.")

Registry = Annotated[
    str,
    typer.Option(
        "--registry", "-r", metavar="URL", envvar="HEADRACE_REGISTRY", help="Where the registry is."
    ),
]
Login = Annotated[
    str | None,
    typer.Option(
        "--login", metavar="USER:PASSWORD", envvar="HEADRACE_REGISTRY_LOGIN", help="Or a token alone."
    ),
]
Authorities = Annotated[
    Path | None, typer.Option("--ca", metavar="FILE", help="Certificates to trust, for https.")
]
Subject = Annotated[str, typer.Argument(metavar="SUBJECT")]
Version = Annotated[str, typer.Option("--version", metavar="N", help="A version's number, or 'latest'.")]
Kind = Annotated[
    str | None,
    typer.Option(
        "--type", metavar="TYPE", help="AVRO, JSON or PROTOBUF. [by the file's name: .avsc, .json, .proto]"
    ),
]
References = Annotated[
    list[str] | None,
    typer.Option("--reference", metavar="NAME=SUBJECT:N", help="What a name in the schema stands for."),
]
URL = "http://127.0.0.1:8081"
_KINDS = {".avsc": "AVRO", ".json": "JSON", ".proto": "PROTOBUF"}


@contextmanager
def _registry(url: str, login: str | None, authorities: Path | None) -> Iterator[RegistryRest]:
    """What the registry refuses ends the command with its sentence."""
    from headrace.client.registry_rest import RegistryError, RegistryRest, RegistryUnreachable

    try:
        yield RegistryRest(url, login, str(authorities) if authorities is not None else None)
    except RegistryUnreachable as error:
        raise Failure(str(error), Exit.UNREACHABLE) from None
    except RegistryError as error:
        raise Failure(f"{error} ({error.code})") from None


def _read(file: Path) -> str:
    return sys.stdin.read() if str(file) == "-" else file.read_text()


def _request(file: Path, kind: str | None, references: list[str] | None) -> dict[str, Any]:
    chosen = (kind or _KINDS.get(file.suffix.lower(), "AVRO")).upper()
    options.choose("--type", chosen, ("AVRO", "JSON", "PROTOBUF"))
    listed = []
    for reference in references or ():
        name, _, place = reference.partition("=")
        subject, _, version = place.rpartition(":")
        if not name or not subject or not version.isdigit():
            raise Misuse(f"--reference takes NAME=SUBJECT:VERSION, not '{reference}'.")
        listed.append({"name": name, "subject": subject, "version": int(version)})
    return {"schema": _read(file), "schemaType": chosen, **({"references": listed} if listed else {})}


@app.command(
    "list", epilog=options.examples("headrace schemas list", "headrace schemas list --prefix orders --json")
)
def list_(
    prefix: Annotated[str, typer.Option(metavar="TEXT", help="Only subjects that begin so.")] = "",
    deleted: Annotated[bool, typer.Option("--deleted", help="Softly deleted ones, too.")] = False,
    json: options.Json = False,
    registry: Registry = URL,
    login: Login = None,
    ca: Authorities = None,
) -> None:
    """The subjects, each with its newest version."""
    with _registry(registry, login, ca) as rest:
        found = rest.ask("GET", "schemas", subjectPrefix=prefix, latestOnly=True, deleted=deleted)
    rows = [
        {
            "subject": each["subject"],
            "version": each["version"],
            "id": each["id"],
            "type": each.get("schemaType", "AVRO"),
        }
        for each in found
    ]
    if json:
        output.json_document(rows)
    elif rows:
        output.table(("SUBJECT", "VERSION", "ID", "TYPE"), [tuple(row.values()) for row in rows])
    else:
        print("There are no schemas.")


@app.command(
    epilog=options.examples(
        "headrace schemas show orders-value",
        "headrace schemas show orders-value --version 2",
        "headrace schemas show --id 7",
    )
)
def show(
    subject: Annotated[str | None, typer.Argument(metavar="[SUBJECT]")] = None,
    version: Version = "latest",
    number: Annotated[int | None, typer.Option("--id", metavar="N", help="A schema by its id.")] = None,
    json: options.Json = False,
    registry: Registry = URL,
    login: Login = None,
    ca: Authorities = None,
) -> None:
    """A version of a subject, or the schema with an id."""
    from headrace.cli.view.schemas import pretty

    if (subject is None) == (number is None):
        raise Misuse("Name a subject, or an id with --id.")
    with _registry(registry, login, ca) as rest:
        if number is not None:
            found = rest.ask("GET", "schemas", "ids", number)
        else:
            found = rest.ask("GET", "subjects", subject, "versions", version)
    if json:
        output.json_document(found)
        return
    if subject is not None:
        output.note(f"{found['subject']} version {found['version']}, id {found['id']}")
    for reference in found.get("references") or ():
        output.note(f"{reference['name']} is {reference['subject']} version {reference['version']}")
    print(pretty(found["schema"], found.get("schemaType", "AVRO")))


@app.command(
    epilog=options.examples(
        "headrace schemas register orders-value order.avsc",
        "headrace schemas register basket-value basket.proto --reference item.proto=item:1",
    )
)
def register(
    subject: Subject,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The schema; - for standard input.")],
    kind: Kind = None,
    reference: References = None,
    normalize: Annotated[
        bool, typer.Option("--normalize", help="What only looks different counts as the same.")
    ] = False,
    json: options.Json = False,
    registry: Registry = URL,
    login: Login = None,
    ca: Authorities = None,
) -> None:
    """Register a schema under a subject; one that is there already keeps its id."""
    body = _request(file, kind, reference)
    with _registry(registry, login, ca) as rest:
        _refuse_incompatible(rest, subject, body)
        number = rest.ask("POST", "subjects", subject, "versions", body=body, normalize=normalize)["id"]
    if json:
        output.json_document({"subject": subject, "id": number})
    else:
        print(f"{subject} has the schema with id {number}.")


def _messages(rest: RegistryRest, subject: str, body: dict[str, Any], version: str | None) -> list[str]:
    path = ("compatibility", "subjects", subject, "versions", *((version,) if version else ()))
    found = rest.ask("POST", *path, body=body, verbose=True)
    return [] if found["is_compatible"] else [str(each) for each in found.get("messages") or ("",)]


def _refuse_incompatible(rest: RegistryRest, subject: str, body: dict[str, Any]) -> None:
    """A failure with the reasons on lines of their own."""
    from headrace.cli.view.schemas import reasons

    if found := _messages(rest, subject, body, None):
        raise Failure("\n  ".join([f"{subject} cannot take this schema:", *reasons(found)]))


@app.command(
    epilog=options.examples(
        "headrace schemas check orders-value order.avsc",
        "headrace schemas check orders-value order.avsc --version 3",
    )
)
def check(
    subject: Subject,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The schema; - for standard input.")],
    kind: Kind = None,
    reference: References = None,
    version: Annotated[
        str | None,
        typer.Option("--version", metavar="N", help="Against one version alone. [what the level asks for]"),
    ] = None,
    json: options.Json = False,
    registry: Registry = URL,
    login: Login = None,
    ca: Authorities = None,
) -> None:
    """Whether a schema could follow those of a subject, and if not, why: the exit code is 1 then."""
    from headrace.cli.view.schemas import reasons

    body = _request(file, kind, reference)
    with _registry(registry, login, ca) as rest:
        found = list(reasons(_messages(rest, subject, body, version)))
    if json:
        output.json_document({"subject": subject, "compatible": not found, "reasons": found})
    elif found:
        print("\n  ".join([f"{subject} cannot take this schema:", *found]))
    else:
        print(f"{subject} can take this schema.")
    if found:
        raise typer.Exit(Exit.FAILED)


@app.command(
    epilog=options.examples(
        "headrace schemas diff orders-value 1 2",
        "headrace schemas diff orders-value",
        "headrace schemas diff orders-value --file order.avsc",
    )
)
def diff(
    subject: Subject,
    old: Annotated[
        str | None, typer.Argument(metavar="[OLD]", help="[the version before the newest]")
    ] = None,
    new: Annotated[str | None, typer.Argument(metavar="[NEW]", help="[the newest version]")] = None,
    file: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Compare a file with a version, the newest if none is named."),
    ] = None,
    kind: Kind = None,
    json: options.Json = False,
    registry: Registry = URL,
    login: Login = None,
    ca: Authorities = None,
) -> None:
    """What changed between two versions, or between a version and a file, and whether that breaks anybody."""
    from headrace.cli.view import schemas as view

    with _registry(registry, login, ca) as rest:
        if file is not None:
            if new is not None:
                raise Misuse("With --file one version is compared, not two.")
            before = rest.ask("GET", "subjects", subject, "versions", old or "latest")
            after = _request(file, kind or before.get("schemaType"), None)
            if before.get("references"):
                after["references"] = before["references"]
            name = str(file)
        else:
            numbers = rest.ask("GET", "subjects", subject, "versions")
            if old is None and len(numbers) < 2:
                raise Failure(f"{subject} has one version, so there is nothing to compare.")
            before = rest.ask("GET", "subjects", subject, "versions", old or numbers[-2])
            after = rest.ask("GET", "subjects", subject, "versions", new or "latest")
            name = f"{subject} version {after['version']}"
        names = ("schema", "schemaType", "references")
        body: dict[str, Any] = {each: after[each] for each in names if each in after}
        found = list(view.reasons(_messages(rest, subject, body, str(before["version"]))))
    shown = before.get("schemaType", "AVRO")
    lines = view.diff(
        before["schema"], after["schema"], shown, f"{subject} version {before['version']}", name
    )
    if json:
        output.json_document({"diff": lines, "compatible": not found, "reasons": found})
        return
    print("\n".join(lines) if lines else "They say the same.")
    if found:
        print("\n  ".join(["\nNot compatible at the subject's level:", *found]))


@app.command(
    epilog=options.examples(
        "headrace schemas delete orders-value --version 2",
        "headrace schemas delete orders-value --permanent",
    )
)
def delete(
    subject: Subject,
    version: Annotated[str | None, typer.Option("--version", metavar="N", help="One version. [all]")] = None,
    permanent: Annotated[
        bool, typer.Option("--permanent", help="For good: its records cannot be read any more.")
    ] = False,
    json: options.Json = False,
    registry: Registry = URL,
    login: Login = None,
    ca: Authorities = None,
) -> None:
    """Delete a version or a subject. Softly, unless for good: records that have its id can still be read."""
    from headrace.client.registry_rest import RegistryError

    path = ("subjects", subject, *(("versions", version) if version is not None else ()))
    with _registry(registry, login, ca) as rest:
        try:
            found = rest.ask("DELETE", *path)
        except RegistryError as error:
            if not permanent or error.code not in (40404, 40406):  # it is deleted softly
                raise
        if permanent:
            found = rest.ask("DELETE", *path, permanent=True)
    numbers = found if isinstance(found, list) else [found]
    if json:
        output.json_document({"subject": subject, "versions": numbers, "permanent": permanent})
    else:
        print(
            f"Deleted {output.count(len(numbers), 'version')} of {subject}{' for good' if permanent else ''}."
        )


@app.command(
    "export",
    epilog=options.examples(
        "headrace schemas export > schemas.jsonl", "headrace schemas export --prefix orders"
    ),
)
def export(
    prefix: Annotated[str, typer.Option(metavar="TEXT", help="Only subjects that begin so.")] = "",
    deleted: Annotated[bool, typer.Option("--deleted", help="Softly deleted versions, too.")] = False,
    registry: Registry = URL,
    login: Login = None,
    ca: Authorities = None,
) -> None:
    """Every version with its id, a line of JSON each, those first that others refer to."""
    with _registry(registry, login, ca) as rest:
        found = rest.ask("GET", "schemas", subjectPrefix=prefix, deleted=deleted)
    for each in sorted(found, key=lambda one: (one["id"], one["version"])):
        print(output.json_line(each))


@app.command(
    "import",
    epilog=options.examples(
        "headrace schemas import schemas.jsonl",
        "headrace schemas export -r http://old:8081 | headrace schemas import -",
    ),
)
def import_(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="What 'export' printed; - for standard input.")
    ],
    registry: Registry = URL,
    login: Login = None,
    ca: Authorities = None,
) -> None:
    """Register exported schemas with the ids and versions they had, so that records stay readable."""
    import json

    try:
        versions = [json.loads(line) for line in _read(file).splitlines() if line.strip()]
        subjects = list(dict.fromkeys(str(each["subject"]) for each in versions))
        bodies = [(str(each.pop("subject")), each) for each in versions]
    except (ValueError, KeyError, TypeError):
        raise Failure(f"{file} is not what 'headrace schemas export' prints.") from None
    with _registry(registry, login, ca) as rest:
        try:
            for subject in subjects:
                rest.ask("PUT", "mode", subject, body={"mode": "IMPORT"}, force=True)
            for subject, body in bodies:
                rest.ask("POST", "subjects", subject, "versions", body=body)
        finally:
            for subject in subjects:
                rest.ask("DELETE", "mode", subject)
    print(f"Imported {output.count(len(bodies), 'version')} of {output.count(len(subjects), 'subject')}.")


@app.command(
    epilog=options.examples(
        "headrace schemas user ada >> users", "headrace schemas user ada --token >> users"
    )
)
def user(
    name: Annotated[str, typer.Argument(metavar="NAME")],
    token: Annotated[bool, typer.Option("--token", help="A token instead of a password.")] = False,
    password_file: Annotated[
        Path | None,
        typer.Option(
            "--password-file",
            metavar="FILE",
            help="Take it from the first line of a file; - for standard input.",
        ),
    ] = None,
) -> None:
    """The line for a registry's file of users (headrace.registry.users.file); the password or token is asked for."""
    from headrace.cli.parsing.password import read_password
    from headrace.registry.security import kept_password, kept_token

    secret = read_password(password_file, name)
    print(f"{name}: {kept_token(secret) if token else kept_password(secret)}")
