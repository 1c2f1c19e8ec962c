"""kafka-acls.sh"""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Iterable
from typing import TYPE_CHECKING

from headrace.cli.failure import Exit, Failure
from headrace.cli.kafka.arguments import KafkaParser
from headrace.server.security.acls import (
    ALL,
    ANY,
    OPERATIONS,
    PATTERN_TYPES,
    PERMISSIONS,
    RESOURCE_TYPES,
    Acl,
    AclFilter,
    PatternType,
    Permission,
    pascal,
)
from headrace.server.security.operations import CLUSTER, POSSIBLE, Operation, ResourceKind

if TYPE_CHECKING:
    from headrace.cli.cluster.connection import Cluster

Pattern = tuple[ResourceKind, str, PatternType]
Entry = tuple[str, str, int, int]
"""Principal, host, operation, permission."""

_CLUSTER: Pattern = (*CLUSTER, PatternType.LITERAL)
_NAMES = {pascal(name).upper(): number for number, name in OPERATIONS.items() if number != ANY}


def run(arguments: list[str]) -> int:
    options = _parser().parse(arguments)
    try:
        _check(options)

        from headrace.cli.cluster.connection import connect

        patterns = _patterns(options)
        wanted = _wanted(options, patterns) if not options.list else {}
        cluster = connect(options.bootstrap_server, options.command_config)
        if options.add:
            _add(cluster, wanted)
        elif options.remove:
            _remove(cluster, wanted, options.force)
        else:
            _list(cluster, patterns, options.principal)
    except Failure as failure:
        print(failure.sentence, file=sys.stderr)
        return Exit.FAILED
    return Exit.OK


def _parser() -> KafkaParser:
    parser = KafkaParser("acls", "Manage ACLs.")
    parser.bootstrap()
    parser.command_config()
    parser.switch("--add", help="Add ACLs.")
    parser.switch("--remove", help="Remove ACLs.")
    parser.switch("--list", help="List the ACLs of the given resources, or all.")

    def several(name: str, what: str) -> None:
        parser.flag(name, action="append", default=[], help=what)

    several("--topic", "A topic; '*' for all.")
    several("--group", "A consumer group; '*' for all.")
    several("--transactional-id", "A transactional id; '*' for all.")
    several("--delegation-token", "A delegation token; '*' for all.")
    several("--user-principal", "A user, as a resource: who may create or describe tokens for it.")
    parser.switch("--cluster", help="The cluster.")
    parser.flag(
        "--resource-pattern-type",
        default="literal",
        help="literal or prefixed; when listing or removing, also any or match. (default: literal)",
    )
    several("--allow-principal", "Who is allowed: User:name, or User:'*' for everyone.")
    several("--deny-principal", "Who is denied; a denial wins over every permission.")
    several("--allow-host", "From where --allow-principal is allowed. (default: *)")
    several("--deny-host", "From where --deny-principal is denied. (default: *)")
    several(
        "--operation",
        "What is allowed or denied: " + ", ".join(map(_word, _NAMES.values())) + ". (default: All)",
    )
    several("--principal", "With --list: only the ACLs of this principal.")
    parser.switch("--producer", help="What a producer needs: Write, Describe and Create on the topic.")
    parser.switch(
        "--consumer", help="What a consumer needs: Read and Describe on the topic, Read on the group."
    )
    parser.switch("--idempotent", help="With --producer: IdempotentWrite on the cluster, too.")
    parser.switch("--force", help="Do not ask before ACLs are removed.")
    return parser


def _word(operation: int) -> str:
    return pascal(OPERATIONS[operation])


def _check(options: Namespace) -> None:
    if sum((options.add, options.remove, options.list)) != 1:
        raise Failure("Command must include exactly one action: --list, --add, --remove.")
    given = vars(options)
    for role, forbidden in (
        (
            "list",
            ("producer", "consumer", "allow_host", "allow_principal", "deny_host", "deny_principal"),
        ),
        ("producer", ("operation", "deny_principal", "deny_host")),
        ("consumer", ("operation", "deny_principal", "deny_host")),
    ):
        for each in forbidden:
            if given[role] and given[each]:
                raise Failure(f'Option "[{role}]" can\'t be used with option "[{each.replace("_", "-")}]"')
    if options.principal and not options.list:
        raise Failure("The --principal option is only available if --list is set")
    if options.producer and not options.topic:
        raise Failure("With --producer you must specify a --topic")
    if options.idempotent and not options.producer:
        raise Failure("The --idempotent option is only available if --producer is set")
    alone = options.consumer and not options.producer
    if options.consumer and (
        not options.topic or not options.group or (alone and (options.cluster or options.transactional_id))
    ):
        raise Failure(
            "With --consumer you must specify a --topic and a --group and no --cluster or --transactional-id "
            "option should be specified."
        )


def _pattern_type(text: str) -> PatternType:
    try:
        return PatternType[text.strip().upper()]
    except KeyError:
        raise Failure(f"Unknown resource-pattern-type: {text}") from None


def _patterns(options: Namespace) -> list[Pattern]:
    """The resources that the command line names."""
    pattern = _pattern_type(options.resource_pattern_type)
    found: list[Pattern] = [(ResourceKind.TOPIC, name.strip(), pattern) for name in options.topic]
    if pattern is PatternType.LITERAL and (options.cluster or options.idempotent):
        found.append(_CLUSTER)
    found += [(ResourceKind.GROUP, name.strip(), pattern) for name in options.group]
    found += [(ResourceKind.TRANSACTIONAL_ID, name, pattern) for name in options.transactional_id]
    found += [(ResourceKind.DELEGATION_TOKEN, name.strip(), pattern) for name in options.delegation_token]
    found += [(ResourceKind.USER, name.strip(), pattern) for name in options.user_principal]
    if not found and not options.list:
        raise Failure(
            "You must provide at least one resource: --topic <topic> or --cluster or --group <group> "
            "or --delegation-token <Delegation Token ID>"
        )
    return list(dict.fromkeys(found))


def _wanted(options: Namespace, patterns: list[Pattern]) -> dict[Pattern, list[Entry]]:
    """The ACLs that the command line describes, by resource."""
    if options.add and _pattern_type(options.resource_pattern_type) < PatternType.LITERAL:
        raise Failure(
            f"A '--resource-pattern-type' value of '{options.resource_pattern_type.upper()}' is not valid when adding acls."
        )
    wanted: dict[Pattern, list[Entry]] = {}

    def put(pattern: Pattern, operations: Iterable[int]) -> None:
        entries = wanted.setdefault(pattern, [])
        entries += [each for each in _entries(options, operations) if each not in entries]

    for pattern in patterns:
        kind = pattern[0]
        if not options.producer and not options.consumer:
            put(pattern, _operations(options.operation))
        if options.producer and kind is ResourceKind.TOPIC:
            put(pattern, (Operation.WRITE, Operation.DESCRIBE, Operation.CREATE))
        if options.producer and kind is ResourceKind.TRANSACTIONAL_ID:
            put(pattern, (Operation.WRITE, Operation.DESCRIBE))
        if options.producer and options.idempotent and kind is ResourceKind.CLUSTER:
            put(pattern, (Operation.IDEMPOTENT_WRITE,))
        if options.consumer and kind is ResourceKind.TOPIC:
            put(pattern, (Operation.READ, Operation.DESCRIBE))
        if options.consumer and kind is ResourceKind.GROUP:
            put(pattern, (Operation.READ,))
    if options.producer and options.idempotent and _CLUSTER not in wanted:
        put(_CLUSTER, (Operation.IDEMPOTENT_WRITE,))
    if options.add and not all(wanted.values()):
        raise Failure("You must specify one of: --allow-principal, --deny-principal when trying to add ACLs.")
    _check_operations(wanted)
    return wanted


def _operations(given: list[str]) -> list[int]:
    unknown = [each for each in given if each.strip().upper() not in _NAMES]
    if unknown:
        raise Failure(
            f"There is no operation {unknown[0]}; there are {', '.join(map(_word, _NAMES.values()))}."
        )
    return [_NAMES[each.strip().upper()] for each in given] or [ALL]


def _entries(options: Namespace, operations: Iterable[int]) -> list[Entry]:
    operations = list(operations)
    return [
        (_principal(principal), host.strip(), operation, permission)
        for principals, hosts, permission in (
            (options.allow_principal, options.allow_host, Permission.ALLOW),
            (options.deny_principal, options.deny_host, Permission.DENY),
        )
        for principal in principals
        for operation in operations
        for host in hosts or ["*"]
    ]


def _principal(text: str) -> str:
    text = text.strip()
    if ":" not in text:
        raise Failure(f"expected a string in format principalType:principalName but got {text}")
    return text


def _check_operations(wanted: dict[Pattern, list[Entry]]) -> None:
    for (kind, _, _), entries in wanted.items():
        possible = [*POSSIBLE[kind], ALL]
        if any(operation not in possible for _, _, operation, _ in entries):
            names = ", ".join(OPERATIONS[each] for each in possible)
            raise Failure(f"ResourceType {kind.name} only supports operations [{names}]")


def _acl(pattern: Pattern, entry: Entry) -> Acl:
    (kind, name, how), (principal, host, operation, permission) = pattern, entry
    return Acl(kind, name, how, principal, host, operation, permission)


def _shown(pattern: Pattern) -> str:
    kind, name, how = pattern
    return f"`ResourcePattern(resourceType={RESOURCE_TYPES[kind]}, name={name}, patternType={PATTERN_TYPES[how]})`"


def _line(entry: Entry) -> str:
    principal, host, operation, permission = entry
    return (
        f"\t(principal={principal}, host={host}, operation={OPERATIONS.get(operation, 'UNKNOWN')}, "
        f"permissionType={PERMISSIONS[permission]})"
    )


def _add(cluster: Cluster, wanted: dict[Pattern, list[Entry]]) -> None:
    from headrace.cli.cluster import acls

    for pattern, entries in wanted.items():
        print(f"Adding ACLs for resource {_shown(pattern)}: \n " + "\n".join(map(_line, entries)) + "\n")
        cluster.call(acls.create, [_acl(pattern, entry) for entry in entries])


def _remove(cluster: Cluster, wanted: dict[Pattern, list[Entry]], force: bool) -> None:
    from headrace.cli.cluster import acls

    for pattern, entries in wanted.items():
        if entries:
            lines = "\n".join(map(_line, entries))
            question = f"Are you sure you want to remove ACLs: \n {lines}\n from resource filter {_shown(pattern)}? (y/n)"
        else:
            question = (
                f"Are you sure you want to delete all ACLs for resource filter {_shown(pattern)}? (y/n)"
            )
        if force or _agreed(question):
            filters = [AclFilter(*_acl(pattern, entry)) for entry in entries] or [AclFilter(*pattern)]
            cluster.call(acls.delete, filters)


def _agreed(question: str) -> bool:
    print(question)
    return sys.stdin.readline().strip().lower() == "y"


def _list(cluster: Cluster, patterns: list[Pattern], principals: list[str]) -> None:
    from headrace.cli.cluster import acls

    filters = [AclFilter(*pattern) for pattern in patterns] or [AclFilter()]
    found = dict.fromkeys(acl for wanted in filters for acl in cluster.call(acls.describe, wanted))
    if not principals:
        _print_by_resource(found)
    for principal in map(_principal, principals):
        print(f"ACLs for principal `{principal}`")
        _print_by_resource(acl for acl in found if acl.principal == principal)


def _print_by_resource(found: Iterable[Acl]) -> None:
    by_pattern: dict[Pattern, list[Acl]] = {}
    for acl in found:
        pattern = (ResourceKind(acl.resource_type), acl.resource_name, PatternType(acl.pattern_type))
        by_pattern.setdefault(pattern, []).append(acl)
    for pattern, acls in by_pattern.items():
        lines = [_line((acl.principal, acl.host, acl.operation, acl.permission)) for acl in acls]
        print(f"Current ACLs for resource {_shown(pattern)}:\n" + "\n".join(lines) + "\n")
