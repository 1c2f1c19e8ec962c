"""`headrace acls`: who may do what."""

from __future__ import annotations

from typing import Annotated

import typer

from headrace.cli import options
from headrace.cli.failure import Exit, Failure
from headrace.cli.view import output

app = options.command_app("Allow and deny: add, list, remove and explain ACLs.")

User = Annotated[str, typer.Argument(metavar="USER", help="alice, or a principal in full, User:alice.")]
Operations = Annotated[str, typer.Argument(metavar="OPERATION,…", help="read, write, create, all, …")]
ResourceName = Annotated[
    str,
    typer.Argument(
        metavar="RESOURCE", help="topic:orders, topic:orders-* (a prefix), topic:*, group:g, cluster, …"
    ),
]
Deny = Annotated[bool, typer.Option("--deny", help="Deny instead of allow; a denial always wins.")]
Host = Annotated[str, typer.Option("--host", metavar="ADDRESS", help="Only from this address.")]


@app.command(
    epilog=options.examples(
        "headrace acls add alice write,create topic:orders",
        "headrace acls add billing read 'topic:orders-*'",
        "headrace acls add billing read group:billing",
        "headrace acls add '*' read topic:orders --deny --host 10.0.0.7",
    )
)
def add(
    user: User,
    operations: Operations,
    resource: ResourceName,
    deny: Deny = False,
    host: Host = "*",
    json: options.Json = False,
    bootstrap: options.Bootstrap = options.DEFAULT_BOOTSTRAP,
    command_config: options.CommandConfig = None,
) -> None:
    """Allow a user something, or deny it. Allowing read, write, delete or alter allows describe as well."""
    from headrace.cli.cluster import acls
    from headrace.cli.cluster.connection import connect
    from headrace.cli.parsing import acl_words
    from headrace.server.security.acls import Acl, Permission

    kind, name, pattern = acl_words.resource(resource)
    permission = Permission.DENY if deny else Permission.ALLOW
    who = acl_words.principal(user)
    wanted = [
        Acl(kind, name, pattern, who, host, operation, permission)
        for operation in acl_words.operations(operations, kind)
    ]
    connect(bootstrap, command_config).call(acls.create, wanted)
    if json:
        output.json_document([acl_words.document(acl) for acl in wanted])
        return
    verb = "Denied" if deny else "Allowed"
    for acl in wanted:
        from_host = "" if host == "*" else f" from {host}"
        print(
            f"{verb} {who} {acl_words.operation_word(acl.operation)} on {acl_words.resource_word(acl)}{from_host}."
        )


@app.command(
    "list",
    epilog=options.examples(
        "headrace acls list", "headrace acls list --user alice", "headrace acls list --resource topic:orders"
    ),
)
def list_(
    user: Annotated[
        str | None, typer.Option("--user", metavar="USER", help="Only ACLs that name this user.")
    ] = None,
    resource: Annotated[
        str | None,
        typer.Option("--resource", metavar="RESOURCE", help="Only ACLs that apply to this resource."),
    ] = None,
    json: options.Json = False,
    bootstrap: options.Bootstrap = options.DEFAULT_BOOTSTRAP,
    command_config: options.CommandConfig = None,
) -> None:
    """Show ACLs."""
    from headrace.cli.cluster import acls
    from headrace.cli.cluster.connection import connect
    from headrace.cli.parsing import acl_words
    from headrace.server.security.acls import AclFilter, PatternType

    wanted = AclFilter(principal=acl_words.principal(user) if user is not None else None)
    if resource is not None:
        kind, name, pattern = acl_words.resource(resource)
        how = PatternType.MATCH if pattern is PatternType.LITERAL and name != "*" else pattern
        wanted = wanted._replace(resource_type=kind, resource_name=name, pattern_type=how)
    found = connect(bootstrap, command_config).call(acls.describe, wanted)
    if json:
        output.json_document([acl_words.document(acl) for acl in found])
    elif not found:
        print("There are no such ACLs." if user or resource else "There are no ACLs.")
    else:
        output.table(("PERMISSION", "PRINCIPAL", "OPERATION", "RESOURCE", "HOST"), map(acl_words.row, found))


@app.command(
    epilog=options.examples(
        "headrace acls remove alice write,create topic:orders",
        "headrace acls remove '*' read topic:orders --deny --host 10.0.0.7",
        "headrace acls remove alice any any",
    )
)
def remove(
    user: User,
    operations: Annotated[str, typer.Argument(metavar="OPERATION,…", help="As when added, or any.")],
    resource: Annotated[str, typer.Argument(metavar="RESOURCE", help="As when added, or any.")],
    deny: Annotated[bool, typer.Option("--deny", help="Remove denials instead of permissions.")] = False,
    host: Annotated[
        str | None, typer.Option("--host", metavar="ADDRESS", help="Only those for this address.")
    ] = None,
    json: options.Json = False,
    bootstrap: options.Bootstrap = options.DEFAULT_BOOTSTRAP,
    command_config: options.CommandConfig = None,
) -> None:
    """Take permissions back, or denials with --deny."""
    from headrace.cli.cluster import acls
    from headrace.cli.cluster.connection import connect
    from headrace.cli.parsing import acl_words
    from headrace.server.security.acls import ANY, AclFilter, Permission

    wanted = AclFilter(
        principal=acl_words.principal(user),
        host=host,
        permission=Permission.DENY if deny else Permission.ALLOW,
    )
    if resource != "any":
        kind, name, pattern = acl_words.resource(resource)
        wanted = wanted._replace(resource_type=kind, resource_name=name, pattern_type=pattern)
    numbers = [ANY] if operations == "any" else [acl_words.operation(part) for part in operations.split(",")]
    removed = connect(bootstrap, command_config).call(
        acls.delete, [wanted._replace(operation=number) for number in numbers]
    )
    if json:
        output.json_document([acl_words.document(acl) for acl in removed])
    elif removed:
        print(f"Removed {output.count(len(removed), 'ACL')}:")
        output.table(
            ("PERMISSION", "PRINCIPAL", "OPERATION", "RESOURCE", "HOST"), map(acl_words.row, removed)
        )
    if not removed:
        raise Failure("There is no such ACL; 'headrace acls list' shows those there are.")


@app.command(
    epilog=options.examples(
        "headrace acls explain alice write topic:orders",
        "headrace acls explain User:CN=app,O=acme read group:billing --host 10.0.0.7",
    )
)
def explain(
    user: User,
    operation: Annotated[str, typer.Argument(metavar="OPERATION", help="read, write, describe, …")],
    resource: Annotated[str, typer.Argument(metavar="RESOURCE", help="topic:orders, group:g, cluster, …")],
    host: Annotated[
        str, typer.Option("--host", metavar="ADDRESS", help="As if the user came from this address.")
    ] = "",
    json: options.Json = False,
    bootstrap: options.Bootstrap = options.DEFAULT_BOOTSTRAP,
    command_config: options.CommandConfig = None,
) -> None:
    """Say whether a user may do something, and by which rule. Ends with status 1 when not."""
    from headrace.cli.cluster import acls
    from headrace.cli.cluster.connection import connect
    from headrace.cli.failure import Misuse
    from headrace.cli.parsing import acl_words
    from headrace.server.security.acls import ALL, PatternType
    from headrace.server.security.operations import Operation, Resource

    kind, name, pattern = acl_words.resource(resource)
    if pattern is PatternType.PREFIXED:
        raise Misuse(f"Name one resource, not a prefix: '{resource}'.")
    (number,) = acl_words.operations(operation.replace(",", "\0"), kind)
    if number == ALL:
        raise Misuse("Name one operation; 'all' is what ACLs may say.")
    who = acl_words.principal(user)
    answer = connect(bootstrap, command_config).call(
        acls.explain, who, host, Operation(number), Resource(kind, name)
    )
    if json:
        output.json_document(
            {
                "allowed": answer.allowed,
                "principal": who,
                "operation": Operation(number).name,
                "resource_type": kind.name,
                "resource_name": name,
                "host": host or None,
                "reason": answer.reason,
                "acl": acl_words.document(answer.acl) if answer.acl is not None else None,
            }
        )
    else:
        print(f"{'Yes' if answer.allowed else 'No'}: {answer.reason}.")
        if answer.acl is not None:
            output.table(
                ("PERMISSION", "PRINCIPAL", "OPERATION", "RESOURCE", "HOST"), [acl_words.row(answer.acl)]
            )
    if not answer.allowed:
        raise typer.Exit(Exit.FAILED)
