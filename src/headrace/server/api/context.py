"""What a handler gets: the broker's engines, the client and its version, the client's permissions, and the one reply."""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from headrace.server.api.engines import Engines
from headrace.server.net.connection import FAILED_INSIDE, Connection
from headrace.server.net.reply_queue import Reply
from headrace.server.quotas.meter import Meter
from headrace.server.security.acls import pascal
from headrace.server.security.audit import AUDIT, record
from headrace.server.security.operations import CLUSTER, DENIAL, POSSIBLE, Operation, Resource, ResourceKind
from headrace.wire.errors import KafkaError
from headrace.wire.fetch import Part

log = logging.getLogger(__name__)

Q = TypeVar("Q")
R = TypeVar("R")


class Context:
    __slots__ = (
        "_answered",
        "api",
        "client_id",
        "connection",
        "correlation_id",
        "engines",
        "meter",
        "passed_on",
        "version",
    )

    def __init__(
        self,
        engines: Engines,
        connection: Connection,
        version: int,
        correlation_id: int,
        client_id: str | None,
        api: str = "",
    ) -> None:
        self.engines = engines
        self.connection = connection
        self.version = version
        self.correlation_id = correlation_id
        self.client_id = client_id
        self.meter: Meter | None = None
        """Counts what the request uses of its client's quotas; None while no client has a quota, and for brokers."""
        self.api = api
        """The request's name in the registry."""
        self.passed_on = False
        """Whether a broker has judged the request already, for its client, and passed it on to the controller."""
        self._answered = False

    def reply(self, data: bytes | bytearray) -> None:
        """Answer the request. Every reply passes through `_take_turn`, which lets only the first one through."""
        if self._take_turn():
            self.connection.replies.send(data)

    def reply_together(self, data: bytes | bytearray) -> None:
        """Answer a request that muted its connection, with all that are answered in this turn."""
        if self._take_turn():
            self.engines.outbox.put(self.connection, data)

    def reply_parts(self, parts: Sequence[Part]) -> None:
        """The same with slices of log files."""
        if self._take_turn():
            self.connection.replies.send_parts(parts)

    def reserve_reply(self) -> Reply:
        """Reserve a place for a later answer, so that the requests behind this one need not wait for it."""
        if not self._take_turn():
            raise RuntimeError("this request has its reply already")
        return self.connection.replies.reserve()

    def _take_turn(self) -> bool:
        if self._answered:
            # A client would take a second reply for the reply to its next request.
            log.error("the request %d of %s was answered twice", self.correlation_id, self.client_id)
            self.connection.cut(FAILED_INSIDE)
            return False
        self._answered = True
        return True

    @property
    def principal(self) -> str:
        return self.connection.principal

    @property
    def client_host(self) -> str:
        """As Kafka shows it: a slash before the address."""
        return f"/{self.connection.peer_host}"

    def may(self, operation: Operation, kind: ResourceKind, name: str, *, asked_for: bool = True) -> bool:
        """`asked_for` is False where the client did not name the resource, or another permission would do: a denial is then
        no attempt to do what is forbidden, and the audit log leaves it out."""
        engines = self.engines
        if not engines.guarded or self.passed_on:
            return True
        connection, resource = self.connection, Resource(kind, name)
        allowed = engines.authorizer.authorize(
            connection.principal, connection.peer_host, operation, resource
        )
        if AUDIT.isEnabledFor(logging.DEBUG) if allowed else asked_for and AUDIT.isEnabledFor(logging.INFO):
            self._record(operation, resource, allowed)
        return allowed

    def _record(self, operation: Operation, resource: Resource, allowed: bool) -> None:
        engines, who = self.engines, (self.principal, self.connection.peer_host)
        rule: object = type(engines.authorizer).__name__
        if engines.acls is not None:
            rule = engines.acls.decide(*who, operation, resource)
        record(*who, operation, resource, allowed, rule, pascal(self.api))

    def may_on_cluster(self, operation: Operation, *, asked_for: bool = True) -> bool:
        return self.may(operation, *CLUSTER, asked_for=asked_for)

    def may_on_some(self, operation: Operation, kind: ResourceKind, existing: Iterable[str]) -> bool:
        """Whether there is a resource of this kind that the client may do this to. With ACLs it need not exist; an authorizer of
        another kind is asked for the `existing` ones."""
        acls = self.engines.acls
        if acls is not None:
            who = (self.principal, self.connection.peer_host)
            return self.passed_on or acls.authorize_any(*who, operation, kind)
        return any(self.may(operation, kind, name, asked_for=False) for name in existing)

    def split(
        self,
        operation: Operation,
        kind: ResourceKind,
        items: Iterable[Q],
        name: Callable[[Q], str],
        *,
        asked_for: bool = True,
    ) -> tuple[list[Q], list[Q]]:
        """The items on whose resource the client may do this, and those on which it may not."""
        if not self.engines.guarded:
            return list(items), []
        allowed: list[Q] = []
        denied: list[Q] = []
        for item in items:
            (allowed if self.may(operation, kind, name(item), asked_for=asked_for) else denied).append(item)
        return allowed, denied

    def require(self, operation: Operation, kind: ResourceKind, name: str) -> None:
        if not self.may(operation, kind, name):
            raise KafkaError(DENIAL[kind], denied(self.principal, operation, kind, name))

    def operations_on(self, kind: ResourceKind, name: str) -> int:
        """What the client may do there, as the bit field that replies carry. Nothing is done by it, so the audit log has no part."""
        engines, connection, resource = self.engines, self.connection, Resource(kind, name)
        return sum(
            1 << operation
            for operation in POSSIBLE[kind]
            if not engines.guarded
            or engines.authorizer.authorize(connection.principal, connection.peer_host, operation, resource)
        )


def denied(principal: str, operation: Operation, kind: ResourceKind, name: str) -> str:
    what = kind.name.lower().replace("_", " ")
    return f"{principal} has no permission for {operation.name} on {what} {name}."


def requires_on_cluster(
    operation: Operation,
) -> Callable[[Callable[[Context, Q], R]], Callable[[Context, Q], R]]:
    """For handlers whose whole request is one operation on the cluster."""

    def decorate(handle: Callable[[Context, Q], R]) -> Callable[[Context, Q], R]:
        @functools.wraps(handle)
        def guarded(context: Context, request: Q) -> R:
            context.require(operation, *CLUSTER)
            return handle(context, request)

        return guarded

    return decorate
