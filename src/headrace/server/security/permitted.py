"""Topics that clients may read or write, as their requests call them: names or ids, in bytes.

The record path looks here first, so that with ACLs it costs a look into a set. A connection holds on to its sets: when an ACL changes,
every set is emptied.
"""

from __future__ import annotations

from weakref import WeakSet

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
        acls.on_change = self._forget

    @property
    def too_many(self) -> bool:
        """Whoever holds on to a set asks this before the next use, and then for the set again."""
        return self._count > MOST_KNOWN

    def of(self, principal: str, host: str, operation: Operation, by_id: bool) -> Known:
        if self.too_many:
            self._forget()
        client = (principal, host, operation, by_id)
        known = self._by_client.get(client)
        if known is None:
            known = self._by_client[client] = Known()
            self._in_use.add(known)
            self._count += 1
        return known

    def add(self, known: Known, topic: bytes, generation: int) -> None:
        """`topic` is allowed by the ACLs of `generation`, which may have changed since: this may be another thread than theirs."""
        known.add(topic)
        self._count += 1
        if self._acls.generation != generation:
            known.discard(topic)

    def _forget(self) -> None:
        for known in tuple(self._in_use):
            known.clear()
        self._by_client.clear()
        self._count = 0
