"""`headrace quotas`: how much users, client ids and addresses may use of each broker."""

from __future__ import annotations

from typing import Annotated

import typer

from headrace.cli import options
from headrace.cli.failure import Failure, Misuse
from headrace.cli.view import output

app = options.command_app("Show, set and remove client quotas.")

User = Annotated[str | None, typer.Option("--user", metavar="NAME", help="A user, such as 'ada'.")]
DefaultUser = Annotated[bool, typer.Option("--default-user", help="Every user that has no quota of its own.")]
ClientId = Annotated[str | None, typer.Option("--client-id", metavar="ID", help="A client id.")]
DefaultClientId = Annotated[
    bool, typer.Option("--default-client-id", help="Every client id that has no quota of its own.")
]
Ip = Annotated[str | None, typer.Option("--ip", metavar="ADDRESS", help="An address or a host name.")]
DefaultIp = Annotated[bool, typer.Option("--default-ip", help="Every address that has no quota of its own.")]


@app.command(
    "set",
    epilog=options.examples(
        "headrace quotas set --user ada produce=10MB/s consume=20MB/s",
        "headrace quotas set --user ada --client-id report request-time=50%",
        "headrace quotas set --default-client-id mutations=5/s",
        "headrace quotas set --default-ip connections=20/s",
    ),
)
def set_(
    quotas: Annotated[list[str], typer.Argument(metavar="QUOTA=VALUE…")],
    user: User = None,
    default_user: DefaultUser = False,
    client_id: ClientId = None,
    default_client_id: DefaultClientId = False,
    ip: Ip = None,
    default_ip: DefaultIp = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say whether it could be done.")] = False,
    json: options.Json = False,
    bootstrap: options.Bootstrap = options.DEFAULT_BOOTSTRAP,
    command_config: options.CommandConfig = None,
) -> None:
    """Set quotas: produce and consume in bytes, request-time in percent of the broker's loop, mutations in partitions and
    connections in new connections a second. Each broker counts for itself."""
    from headrace.cli.cluster.connection import connect
    from headrace.cli.parsing.quota_values import parse
    from headrace.client.administration import quotas as admin

    entity = _entity(user, default_user, client_id, default_client_id, ip, default_ip)
    wanted = dict(parse(text) for text in quotas)
    connect(bootstrap, command_config).call(admin.alter, entity, wanted, dry_run=dry_run)
    if json:
        output.json_document({"dry_run": dry_run, "entity": dict(entity), "quotas": wanted})
        return
    print(f"{_named(entity).capitalize()} {'can have' if dry_run else 'has'} {_listed(wanted)}.")


@app.command(
    "list", epilog=options.examples("headrace quotas list", "headrace quotas list --user ada --json")
)
def list_(
    user: User = None,
    default_user: DefaultUser = False,
    client_id: ClientId = None,
    default_client_id: DefaultClientId = False,
    ip: Ip = None,
    default_ip: DefaultIp = False,
    json: options.Json = False,
    bootstrap: options.Bootstrap = options.DEFAULT_BOOTSTRAP,
    command_config: options.CommandConfig = None,
) -> None:
    """Show the quotas of the cluster, or those of a user, a client id or an address."""
    from headrace.cli.cluster.connection import connect
    from headrace.cli.parsing.quota_values import KINDS, shown
    from headrace.client.administration import quotas as admin

    entity = _parts(user, default_user, client_id, default_client_id, ip, default_ip)
    found = connect(bootstrap, command_config).call(admin.describe, [admin.Filter(*part) for part in entity])
    found.sort(key=lambda each: [(kind, name or "") for kind, name in each.entity])
    if json:
        output.json_document([{"entity": dict(each.entity), "quotas": dict(each.values)} for each in found])
        return
    if not found:
        print("There are no quotas." if not entity else f"There are no quotas of {_named(entity)}.")
        return
    rows = [
        (
            _named(each.entity),
            *(shown(n, each.values[k.key]) if k.key in each.values else None for n, k in KINDS.items()),
        )
        for each in found
    ]
    output.table(("ENTITY", *(name.upper() for name in KINDS)), rows)


@app.command(
    epilog=options.examples(
        "headrace quotas remove --user ada", "headrace quotas remove --user ada produce consume"
    )
)
def remove(
    quotas: Annotated[list[str] | None, typer.Argument(metavar="[QUOTA…]")] = None,
    user: User = None,
    default_user: DefaultUser = False,
    client_id: ClientId = None,
    default_client_id: DefaultClientId = False,
    ip: Ip = None,
    default_ip: DefaultIp = False,
    json: options.Json = False,
    bootstrap: options.Bootstrap = options.DEFAULT_BOOTSTRAP,
    command_config: options.CommandConfig = None,
) -> None:
    """Remove quotas: those that are named, or all that the user, client id or address has."""
    from headrace.cli.cluster.connection import connect
    from headrace.cli.parsing.quota_values import KINDS, kind_of
    from headrace.client.administration import quotas as admin

    entity = _entity(user, default_user, client_id, default_client_id, ip, default_ip)
    named = [KINDS[kind_of(text)].key for text in quotas or []]
    cluster = connect(bootstrap, command_config)
    found = cluster.call(admin.describe, [admin.Filter(*part) for part in entity], strict=True)
    held = found[0].values if found else {}
    missing = [key for key in named if key not in held]
    if missing or not held:
        what = ", ".join(kind_of(key) for key in missing) or "quota"
        raise Failure(f"There is no {what} of {_named(entity)}; `headrace quotas list` shows what there is.")
    removed = {key: held[key] for key in named or held}
    cluster.call(admin.alter, entity, {}, list(removed))
    if json:
        output.json_document({"entity": dict(entity), "removed": removed})
        return
    print(f"{_named(entity).capitalize()} no longer has {_listed(removed)}.")


Parts = tuple[tuple[str, str | None], ...]


def _parts(
    user: str | None,
    default_user: bool,
    client_id: str | None,
    default_client_id: bool,
    ip: str | None,
    default_ip: bool,
) -> Parts:
    """What the options name, as Kafka's entity."""
    from headrace.client.administration.quotas import CLIENT_ID, IP, USER

    name = None if user is None else user.removeprefix("User:")
    parts: list[tuple[str, str | None]] = []
    for kind, given, default in (
        (USER, name, default_user),
        (CLIENT_ID, client_id, default_client_id),
        (IP, ip, default_ip),
    ):
        if given is not None and default:
            raise Misuse(f"Give either --{kind} or --default-{kind}.")
        if given == "":
            raise Misuse(f"--{kind} is empty; --default-{kind} is for all that have no quota of their own.")
        if given is not None or default:
            parts.append((kind, given))
    if len(parts) > 1 and parts[-1][0] == IP:
        raise Misuse("A quota of an address cannot be combined with a user or a client id.")
    return tuple(parts)


def _entity(
    user: str | None,
    default_user: bool,
    client_id: str | None,
    default_client_id: bool,
    ip: str | None,
    default_ip: bool,
) -> Parts:
    parts = _parts(user, default_user, client_id, default_client_id, ip, default_ip)
    if not parts:
        raise Misuse(
            "Say whose quota it is: --user, --client-id, both, or --ip, or one of their --default-… forms."
        )
    return parts


def _named(entity: Parts) -> str:
    return ", ".join(f"the default {kind}" if name is None else f"{kind} {name}" for kind, name in entity)


def _listed(values: dict[str, float]) -> str:
    from headrace.cli.parsing.quota_values import kind_of, shown

    return ", ".join(f"{kind_of(key)} {shown(kind_of(key), value)}" for key, value in values.items())
