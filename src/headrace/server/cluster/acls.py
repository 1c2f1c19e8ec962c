"""ACLs in the metadata: which can be created, and which a filter finds or removes. The error messages are Kafka's."""

from __future__ import annotations

from collections.abc import Sequence

from headrace.server.cluster.changes import Change
from headrace.server.cluster.ids import format_id, random_id
from headrace.server.cluster.image import MetadataImage
from headrace.server.cluster.outcome import Outcome
from headrace.server.cluster.policy_changes import AclChanged
from headrace.server.security.acls import (
    ALL,
    OPERATIONS,
    PATTERN_TYPES,
    PERMISSIONS,
    RESOURCE_TYPES,
    Acl,
    AclFilter,
    PatternType,
    Permission,
)
from headrace.server.security.operations import Operation, ResourceKind
from headrace.wire.errors import ErrorCode, KafkaError

Created = list[KafkaError | None]
"""For each ACL, why it was not made."""

Removed = list[tuple[list[Acl], KafkaError | None]]
"""For each filter, the ACLs removed, or why none was."""


def create_acls(image: MetadataImage, wanted: Sequence[Acl]) -> Outcome[Created]:
    """An ACL that exists already is not made again, and that is no error."""
    known = set(image.acls.values())
    changes: list[Change] = []
    results: Created = []
    for acl in wanted:
        complaint = _complaint(acl)
        results.append(complaint)
        if complaint is None and acl not in known:
            known.add(acl)
            changes.append(AclChanged(format_id(random_id()), acl))
    return Outcome(results, changes)


def _complaint(acl: Acl) -> KafkaError | None:
    if acl.resource_type not in list(ResourceKind):
        text = f"Invalid resourceType {RESOURCE_TYPES.get(acl.resource_type, 'UNKNOWN')}"
    elif acl.pattern_type not in (PatternType.LITERAL, PatternType.PREFIXED):
        text = f"Invalid patternType {PATTERN_TYPES.get(acl.pattern_type, 'UNKNOWN')}"
    elif acl.operation not in (ALL, *Operation):
        text = f"Invalid operation {OPERATIONS.get(acl.operation, 'UNKNOWN')}"
    elif acl.permission not in list(Permission):
        text = f"Invalid permissionType {PERMISSIONS.get(acl.permission, 'UNKNOWN')}"
    elif not acl.resource_name:
        text = "Resource name should not be empty"
    elif ":" not in acl.principal:
        text = (
            f"Could not parse principal from `{acl.principal}` "
            "(no colon is present separating the principal type from the principal name)"
        )
    else:
        return None
    return KafkaError(ErrorCode.INVALID_REQUEST, text)


def delete_acls(image: MetadataImage, filters: Sequence[AclFilter]) -> Outcome[Removed]:
    results: Removed = []
    removed: dict[str, Change] = {}
    for wanted in filters:
        complaint = complaint_about(wanted)
        found: list[Acl] = []
        if complaint is None:
            for acl_id, rule in image.acls.items():
                acl = Acl(*rule)
                if wanted.matches(acl):
                    found.append(acl)
                    removed[acl_id] = AclChanged(acl_id, None)
        results.append((found, complaint))
    return Outcome(results, list(removed.values()))


def complaint_about(wanted: AclFilter) -> KafkaError | None:
    """What is wrong with a filter."""
    if wanted.resource_type not in RESOURCE_TYPES or wanted.pattern_type not in PATTERN_TYPES:
        return KafkaError(ErrorCode.INVALID_REQUEST, "Unknown patternFilter.")
    if wanted.operation not in OPERATIONS or wanted.permission not in PERMISSIONS:
        return KafkaError(ErrorCode.INVALID_REQUEST, "Unknown entryFilter.")
    return None


def matching(image: MetadataImage, wanted: AclFilter) -> list[Acl]:
    return [acl for rule in image.acls.values() if wanted.matches(acl := Acl(*rule))]
