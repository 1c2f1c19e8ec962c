"""Who may do what. Handlers ask the authorizer before they touch a topic, a group, a transactional id or the cluster.

Without an authorizer everyone may do everything: `AllowAll`, which the record path never consults. `StandardAuthorizer` decides by
the ACLs of the cluster's metadata, on every broker by the same ones. Any other class named by `authorizer.class.name` is Python's:
it is called with the broker's settings and has one method, `authorize`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

from headrace.server.security.acl_table import AclTable, Decision
from headrace.server.security.acls import Acl
from headrace.server.security.operations import Operation, Resource, ResourceKind

MOST_REMEMBERED = 50_000
"""Decisions kept; they take about 15 MB."""
LONGEST_REMEMBERED = 300
"""Characters of a name: longer than that of any topic, and what else clients make up must not fill the memory."""


class Authorizer(Protocol):
    def authorize(self, principal: str, host: str, operation: Operation, resource: Resource) -> bool:
        """Whether `principal` ("User:alice"), connected from `host`, may do this. Asked very often and from several threads:
        no waiting."""
        ...


class AllowAll:
    def authorize(self, principal: str, host: str, operation: Operation, resource: Resource) -> bool:
        return True


class StandardAuthorizer:
    """Kafka's: by ACLs, deny before allow. Remembers its decisions until an ACL changes."""

    def __init__(self, super_users: Iterable[str] = (), allow_without_acl: bool = False) -> None:
        self.table = AclTable((), super_users, allow_without_acl)
        self.generation = 0
        """Grows with every change, so that a remembered decision can be recognised as old."""
        self.on_change: Callable[[], None] | None = None
        self._remembered: dict[tuple[str, str, int, Resource], Decision] = {}

    def change(self, removed: Iterable[Acl], added: Iterable[Acl]) -> None:
        for acl in removed:
            self.table.remove(acl)
        for acl in added:
            self.table.add(acl)
        # Replaced, not cleared: a thread that is still deciding by the old ACLs must not leave its decision here.
        self._remembered = {}
        self.generation += 1
        if self.on_change is not None:
            self.on_change()

    def authorize(self, principal: str, host: str, operation: Operation, resource: Resource) -> bool:
        return self.decide(principal, host, operation, resource).allowed

    def decide(self, principal: str, host: str, operation: Operation, resource: Resource) -> Decision:
        """The same, with the rule that decides."""
        remembered = self._remembered
        asked = (principal, host, operation, resource)
        decision = remembered.get(asked)
        if decision is None:
            decision = self.table.decide(principal, host, operation, resource)
            if len(remembered) >= MOST_REMEMBERED:
                remembered.clear()
            if len(resource.name) <= LONGEST_REMEMBERED:
                remembered[asked] = decision
        return decision

    def authorize_any(self, principal: str, host: str, operation: Operation, kind: ResourceKind) -> bool:
        """Whether there can be a resource of this kind that `principal` may do this to."""
        return self.table.may_on_any(principal, host, operation, kind)
