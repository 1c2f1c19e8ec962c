"""Topics that clients may read or write, as their requests call them: names or ids, in bytes.

The record path looks here first, so that with ACLs it costs a look into a set. A connection holds on to its sets: when an ACL changes,
every set is emptied. While the audit log is to have a line for every decision, they stay empty.
"""

from __future__ import annotations

import logging
from weakref import WeakSet

from headrace.server.security.audit import AUDIT
from headrace.server.security.authorizer import StandardAuthorizer
from headrace.server.security.operations import Operation

MOST_KNOWN = 100_000


class Known(set[bytes]):
    """The topics known to be allowed to one client for one operation."""

    __slots__ = ()

    def __hash__(self) -> int:  # type: ignore[override]
        return id(self)

    def __eq__(self, other: object) -> bool:
        return self is other


class PermittedTopics:
    def __init__(self, acls: StandardAuthorizer) -> None:
        self._acls = acls
        self._by_client: dict[tuple[str, str, Operation, bool], Known] = {}
        self._in_use: WeakSet[Known] = WeakSet()
        self._count = 0
        """How much was added since all was forgotten."""
        self._audited = False
        self.follow_audit_log()
        acls.on_change = self._forget

    def follow_audit_log(self) -> None:
        """To be called when the level of the audit log may have changed."""
        self._audited = AUDIT.isEnabledFor(logging.DEBUG)
        self._forget()

    def of(self, principal: str, host: str, operation: Operation, by_id: bool) -> Known:
        client = (principal, host, operation, by_id)
        known = self._by_client.get(client)
        if known is None:
            self._count_one()
            known = self._by_client[client] = Known()
            self._in_use.add(known)
        return known

    def add(self, known: Known, topic: bytes, generation: int) -> None:
        """`topic` is allowed by the ACLs of `generation`, which may have changed since: this may be another thread than theirs."""
        if self._audited:
            return
        self._count_one()
        known.add(topic)
        if self._acls.generation != generation:
            known.discard(topic)

    def _count_one(self) -> None:
        if self._count > MOST_KNOWN:
            self._forget()
        self._count += 1

    def _forget(self) -> None:
        for known in tuple(self._in_use):
            known.clear()
        self._by_client.clear()
        self._count = 0
