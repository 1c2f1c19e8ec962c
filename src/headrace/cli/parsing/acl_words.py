"""ACLs as the commands write them: `alice`, `read,write`, `topic:orders-*`."""

from __future__ import annotations

from headrace.cli.failure import Misuse, did_you_mean
from headrace.server.security.acls import ALL, OPERATIONS, WILDCARD, Acl, PatternType, Permission
from headrace.server.security.operations import CLUSTER, POSSIBLE, Operation, ResourceKind

KINDS = {kind.name.lower().replace("_", "-"): kind for kind in ResourceKind}
"""topic, group, cluster, transactional-id, delegation-token, user"""

_OPERATIONS = {each.name.lower().replace("_", ""): each.value for each in Operation} | {"all": ALL}


def principal(text: str) -> str:
    """`alice` is `User:alice`."""
    if not text.strip():
        raise Misuse("A user has a name: alice, or User:alice.")
    return text if ":" in text else f"User:{text}"


def operation(text: str) -> int:
    """In any case, with or without dashes and underscores."""
    plain = text.strip().lower().replace("-", "").replace("_", "")
    if plain not in _OPERATIONS:
        known = [operation_word(number) for number in _OPERATIONS.values()]
        raise Misuse(
            f"There is no operation '{text}'.{did_you_mean(text.lower(), known)} There are {', '.join(known)}."
        )
    return _OPERATIONS[plain]


def operations(text: str, kind: ResourceKind) -> list[int]:
    """Separated by commas; each must mean something for the resource."""
    found = [operation(part) for part in text.split(",")]
    for each in found:
        if each != ALL and each not in POSSIBLE[kind]:
            possible = ", ".join(map(operation_word, (*POSSIBLE[kind], ALL)))
            raise Misuse(
                f"The operation {operation_word(each)} means nothing for a {kind_word(kind)}, which has {possible}."
            )
    return found


def resource(text: str) -> tuple[ResourceKind, str, PatternType]:
    """`topic:orders`, `topic:orders-*` for a prefix, `topic:*` for all, `cluster`."""
    word, colon, name = text.partition(":")
    kind = KINDS.get(word.lower().replace("_", "-"))
    if kind is None:
        raise Misuse(
            f"A resource looks like topic:orders, topic:orders-*, group:billing, transactional-id:tx or cluster, not '{text}'."
            f"{did_you_mean(word, KINDS)}"
        )
    if kind is ResourceKind.CLUSTER:
        if name not in ("", CLUSTER.name):
            raise Misuse("There is one cluster: write cluster.")
        return kind, CLUSTER.name, PatternType.LITERAL
    if not colon or not name:
        raise Misuse(f"Say which {word}: {word}:NAME, {word}:PREFIX* or {word}:*.")
    if name != WILDCARD and name.endswith(WILDCARD):
        return kind, name[:-1], PatternType.PREFIXED
    return kind, name, PatternType.LITERAL


def kind_word(kind: int) -> str:
    return ResourceKind(kind).name.lower().replace("_", "-")


def operation_word(number: int) -> str:
    return OPERATIONS.get(number, "unknown").lower().replace("_", "-")


def resource_word(acl: Acl) -> str:
    if acl.resource_type == ResourceKind.CLUSTER:
        return "cluster"
    star = WILDCARD if acl.pattern_type == PatternType.PREFIXED else ""
    return f"{kind_word(acl.resource_type)}:{acl.resource_name}{star}"


def permission_word(acl: Acl) -> str:
    return Permission(acl.permission).name.lower()


def row(acl: Acl) -> tuple[str, str, str, str, str]:
    return (
        permission_word(acl),
        acl.principal,
        operation_word(acl.operation),
        resource_word(acl),
        acl.host,
    )


def document(acl: Acl) -> dict[str, str]:
    """For JSON, in Kafka's words."""
    return {
        "permission": Permission(acl.permission).name,
        "principal": acl.principal,
        "host": acl.host,
        "operation": OPERATIONS.get(acl.operation, "UNKNOWN"),
        "resource_type": ResourceKind(acl.resource_type).name,
        "resource_name": acl.resource_name,
        "pattern_type": PatternType(acl.pattern_type).name,
    }
