"""Decides by ACLs, as Kafka's StandardAuthorizer does: deny before allow, and a decision names the rule it rests on.

The table is indexed by resource, so that a decision looks only at the ACLs of that resource, however many there are. It may be
asked from several threads while one changes it: what a reader holds is never changed in place.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from headrace.server.security.acls import ALL, EVERYONE, WILDCARD, Acl, PatternType, Permission
from headrace.server.security.operations import Operation, Resource, ResourceKind

_IMPLIED_BY = {
    Operation.DESCRIBE: frozenset(
        {Operation.DESCRIBE, Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER}
    ),
    Operation.DESCRIBE_CONFIGS: frozenset({Operation.DESCRIBE_CONFIGS, Operation.ALTER_CONFIGS}),
}
"""Allowing one of these allows the operation, too. Denying one does not deny it."""


@dataclass(frozen=True, slots=True)
class Decision:
    """Whether something is allowed, and what decided it."""

    allowed: bool
    acl: Acl | None = None
    """The ACL that decided."""
    otherwise: str = ""
    """What decided when no ACL did, as Kafka's audit log names it."""

    def __str__(self) -> str:
        return self.otherwise if self.acl is None else f"MatchingAcl(acl={self.acl})"


SUPER_USER = Decision(True, otherwise="SuperUser")
DEFAULT_ALLOW = Decision(True, otherwise="DefaultAllow")
DEFAULT_DENY = Decision(False, otherwise="DefaultDeny")


class AclTable:
    def __init__(
        self,
        acls: Iterable[Acl] = (),
        super_users: Iterable[str] = (),
        allow_without_acl: bool = False,
    ) -> None:
        """`allow_without_acl`: whether a resource without any ACL is open to everyone."""
        self._super_users = frozenset(super_users)
        self._without_acl = DEFAULT_ALLOW if allow_without_acl else DEFAULT_DENY
        self._by_pattern: dict[tuple[int, int, str], tuple[Acl, ...]] = {}
        """By resource type, pattern type and name."""
        self._prefix_lengths: dict[int, tuple[int, ...]] = {}
        """By resource type, the longest first."""
        self._prefixes: dict[int, Counter[int]] = {}
        """By resource type, how many prefixes have each length."""
        for acl in acls:
            self.add(acl)

    def __iter__(self) -> Iterator[Acl]:
        for acls in tuple(self._by_pattern.values()):
            yield from acls

    def add(self, acl: Acl) -> None:
        key = (acl.resource_type, acl.pattern_type, acl.resource_name)
        known = self._by_pattern.get(key)
        self._by_pattern[key] = (acl,) if known is None else (*known, acl)
        if known is None and acl.pattern_type == PatternType.PREFIXED:
            self._count_prefix(acl, 1)

    def remove(self, acl: Acl) -> None:
        key = (acl.resource_type, acl.pattern_type, acl.resource_name)
        left = tuple(each for each in self._by_pattern.get(key, ()) if each != acl)
        if left:
            self._by_pattern[key] = left
        elif self._by_pattern.pop(key, None) is not None and acl.pattern_type == PatternType.PREFIXED:
            self._count_prefix(acl, -1)

    def _count_prefix(self, acl: Acl, change: int) -> None:
        counts = self._prefixes.setdefault(acl.resource_type, Counter())
        counts[len(acl.resource_name)] += change
        lengths = (length for length, count in counts.items() if count > 0)
        self._prefix_lengths[acl.resource_type] = tuple(sorted(lengths, reverse=True))

    def decide(self, principal: str, host: str, operation: Operation, resource: Resource) -> Decision:
        """Whether `principal`, connected from `host`, may do this, and by which rule."""
        if principal in self._super_users:
            return SUPER_USER
        allowing: Acl | None = None
        undecided = self._without_acl
        for acl in self._applying_to(resource):
            undecided = DEFAULT_DENY
            if not _concerns(acl, principal, host):
                continue
            if acl.permission == Permission.DENY:
                if acl.operation in (operation, ALL):
                    return Decision(False, acl)
            elif allowing is None and _allows(acl, operation):
                allowing = acl
        return undecided if allowing is None else Decision(True, allowing)

    def _applying_to(self, resource: Resource) -> Iterator[Acl]:
        by_pattern, (kind, name) = self._by_pattern, resource
        yield from by_pattern.get((kind, PatternType.LITERAL, name), ())
        for length in self._prefix_lengths.get(kind, ()):
            if length <= len(name):
                yield from by_pattern.get((kind, PatternType.PREFIXED, name[:length]), ())
        if name != WILDCARD:
            yield from by_pattern.get((kind, PatternType.LITERAL, WILDCARD), ())

    def may_on_any(self, principal: str, host: str, operation: Operation, kind: ResourceKind) -> bool:
        """Whether there can be a resource of this kind that `principal` may do this to, whether it exists or not."""
        if self.decide(principal, host, operation, Resource(kind, "any-name-without-acls")).allowed:
            return True
        allowing: list[Acl] = []
        denied: set[tuple[int, str]] = set()
        for acl in self:
            if acl.resource_type != kind or not _concerns(acl, principal, host):
                continue
            if acl.permission == Permission.ALLOW:
                if acl.operation in (operation, ALL):
                    allowing.append(acl)
            elif acl.operation in (operation, ALL):
                denied.add((acl.pattern_type, acl.resource_name))
        if (PatternType.LITERAL, WILDCARD) in denied:
            return False
        return any(not _outweighed(acl, denied) for acl in allowing)


def _concerns(acl: Acl, principal: str, host: str) -> bool:
    return acl.principal in (principal, EVERYONE) and acl.host in (host, WILDCARD)


def _allows(acl: Acl, operation: Operation) -> bool:
    if acl.operation == ALL:
        return True
    return acl.operation in _IMPLIED_BY[operation] if operation in _IMPLIED_BY else acl.operation == operation


def _outweighed(allowing: Acl, denied: set[tuple[int, str]]) -> bool:
    """Whether everything that an ACL allows is denied by others."""
    name = allowing.resource_name
    if allowing.pattern_type == PatternType.LITERAL:
        if name == WILDCARD:
            return False
        if (PatternType.LITERAL, name) in denied:
            return True
    return any((PatternType.PREFIXED, name[:length]) in denied for length in range(1, len(name) + 1))
