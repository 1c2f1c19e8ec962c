"""Who may do what. Handlers ask the authorizer before they touch a topic, a group, a transactional id or the cluster.

Until there are ACLs everyone may do everything: `AllowAll`, which the record path never consults.
"""

from __future__ import annotations

from typing import Protocol

from headrace.server.security.operations import Operation, Resource


class Authorizer(Protocol):
    def authorize(self, principal: str, host: str, operation: Operation, resource: Resource) -> bool:
        """Whether `principal` ("User:alice"), connected from `host`, may do this. Asked very often and from several threads:
        no waiting."""
        ...


class AllowAll:
    def authorize(self, principal: str, host: str, operation: Operation, resource: Resource) -> bool:
        return True
