"""What a handler gets: the broker's engines, the client and its version, the client's permissions, and the one reply."""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from headrace.server.api.engines import Engines
from headrace.server.net.connection import FAILED_INSIDE, Connection
from headrace.server.net.reply_queue import Reply
from headrace.server.quotas.meter import Meter
from headrace.server.security.operations import CLUSTER, DENIAL, POSSIBLE, Operation, Resource, ResourceKind
from headrace.wire.errors import KafkaError
from headrace.wire.fetch import Part

log = logging.getLogger(__name__)

Q = TypeVar("Q")
R = TypeVar("R")


@dataclass(slots=True)
class Context:
    engines: Engines
    connection: Connection
    version: int
    correlation_id: int
    client_id: str | None
    meter: Meter | None = None
    """Counts what the request uses of its client's quotas; None while no client has a quota, and for brokers."""
    _answered: bool = False

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

    def may(self, operation: Operation, kind: ResourceKind, name: str) -> bool:
        engines = self.engines
        return not engines.guarded or engines.authorizer.authorize(
            self.principal, self.connection.peer_host, operation, Resource(kind, name)
        )

    def may_on_cluster(self, operation: Operation) -> bool:
        return self.may(operation, *CLUSTER)

    def split(
        self, operation: Operation, kind: ResourceKind, items: Iterable[Q], name: Callable[[Q], str]
    ) -> tuple[list[Q], list[Q]]:
        """The items on whose resource the client may do this, and those on which it may not."""
        if not self.engines.guarded:
            return list(items), []
        allowed: list[Q] = []
        denied: list[Q] = []
        for item in items:
            (allowed if self.may(operation, kind, name(item)) else denied).append(item)
        return allowed, denied

    def require(self, operation: Operation, kind: ResourceKind, name: str) -> None:
        if not self.may(operation, kind, name):
            raise KafkaError(DENIAL[kind], denied(self.principal, operation, kind, name))

    def operations_on(self, kind: ResourceKind, name: str) -> int:
        """What the client may do there, as the bit field that replies carry."""
        return sum(1 << operation for operation in POSSIBLE[kind] if self.may(operation, kind, name))


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
