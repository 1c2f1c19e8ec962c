"""ACLs as Kafka has them: what one says, which ones a filter picks, and the words for them.

The numbers are those of the protocol. An `Acl` has the fields of the metadata's access rules, in their order.
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

from headrace.server.security.operations import Operation, ResourceKind

WILDCARD = "*"
"""As the name of a literal resource: every resource. As a host: every host."""

EVERYONE = "User:*"

ANY = 1
"""In a filter: any resource type, operation or permission."""
ALL = 2
"""In an ACL: every operation."""


class PatternType(IntEnum):
    ANY = 1
    """In a filter: patterns of any type with exactly this name."""
    MATCH = 2
    """In a filter: every pattern that applies to a resource of this name."""
    LITERAL = 3
    PREFIXED = 4


class Permission(IntEnum):
    DENY = 2
    ALLOW = 3


RESOURCE_TYPES = {ANY: "ANY"} | {kind.value: kind.name for kind in ResourceKind}
PATTERN_TYPES = {each.value: each.name for each in PatternType}
OPERATIONS = {ANY: "ANY", ALL: "ALL"} | {each.value: each.name for each in Operation}
PERMISSIONS = {ANY: "ANY"} | {each.value: each.name for each in Permission}
"""Kafka's names of the numbers; any other number is UNKNOWN."""


class Acl(NamedTuple):
    resource_type: int
    resource_name: str
    pattern_type: int
    principal: str
    host: str
    operation: int
    permission: int

    def __str__(self) -> str:
        """As Kafka's audit log writes it."""
        return (
            f"StandardAcl[resourceType={RESOURCE_TYPES[self.resource_type]}, resourceName={self.resource_name}, "
            f"patternType={PATTERN_TYPES[self.pattern_type]}, principal={self.principal}, host={self.host}, "
            f"operation={OPERATIONS[self.operation]}, permissionType={PERMISSIONS[self.permission]}]"
        )


class AclFilter(NamedTuple):
    """Picks ACLs; None and ANY pick all."""

    resource_type: int = ANY
    resource_name: str | None = None
    pattern_type: int = PatternType.ANY
    principal: str | None = None
    host: str | None = None
    operation: int = ANY
    permission: int = ANY

    def matches(self, acl: Acl) -> bool:
        return (
            self.resource_type in (ANY, acl.resource_type)
            and self._matches_name(acl)
            and self.principal in (None, acl.principal)
            and self.host in (None, acl.host)
            and self.operation in (ANY, acl.operation)
            and self.permission in (ANY, acl.permission)
        )

    def _matches_name(self, acl: Acl) -> bool:
        wanted = self.pattern_type
        if wanted not in (PatternType.ANY, PatternType.MATCH, acl.pattern_type):
            return False
        name = self.resource_name
        if name is None:
            return True
        if wanted != PatternType.MATCH:
            return name == acl.resource_name
        if acl.pattern_type == PatternType.PREFIXED:
            return name.startswith(acl.resource_name)
        return acl.resource_name in (name, WILDCARD)


def pascal(name: str) -> str:
    """`TRANSACTIONAL_ID` as Kafka's tools and its audit log write it: `TransactionalId`."""
    return "".join(part.capitalize() for part in name.split("_"))
