"""Topics that clients may read or write, as their requests call them: names or ids, in bytes.

The record path looks here first, so that with ACLs it costs a look into a set. Everything is forgotten when an ACL changes, or when it
has become too much.
"""

from __future__ import annotations

from headrace.server.security.authorizer import StandardAuthorizer
from headrace.server.security.operations import Operation

MOST_KNOWN = 100_000


class PermittedTopics:
    def __init__(self, acls: StandardAuthorizer) -> None:
        self._acls = acls
        self._generation = -1
        self._known: dict[tuple[str, str, Operation, bool], set[bytes]] = {}
        self._count = 0

    def of(self, principal: str, host: str, operation: Operation, by_id: bool) -> set[bytes]:
        """What this client is known to be allowed; whoever finds out more adds it with `add`. Good until the ACLs change."""
        if self._generation != self._acls.generation or self._count > MOST_KNOWN:
            # New sets: a thread that decided by the old ACLs adds to the old ones.
            self._known, self._count = {}, 0
            self._generation = self._acls.generation
        client = (principal, host, operation, by_id)
        known = self._known.get(client)
        if known is None:
            known = self._known[client] = set()
            self._count += 1
        return known

    def add(self, known: set[bytes], topic: bytes) -> None:
        known.add(topic)
        self._count += 1
