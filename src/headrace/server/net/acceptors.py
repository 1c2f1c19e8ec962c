"""Listening sockets and the connections they accept: limits on their idleness and their buffers; `admission` has the others."""

from __future__ import annotations

import asyncio
import logging
import socket
from concurrent.futures import Executor
from typing import Protocol

from headrace.clock import Clock, Timer
from headrace.link.tls_stream import TlsStream
from headrace.server.config.listeners import Listener
from headrace.server.net.admission import Admission
from headrace.server.net.buffers import BufferBudget
from headrace.server.net.connection import Connection
from headrace.server.net.entrance import Entrance, TlsSource
from headrace.server.net.fairness import Fairness
from headrace.server.net.gate import Gate
from headrace.server.net.refusals import Refusals
from headrace.server.net.reply_queue import Pieces, ReplyQueue
from headrace.server.net.request_times import RequestStatistics
from headrace.server.replica.turn import Turn
from headrace.server.security.principal_builder import DefaultPrincipalBuilder, PrincipalBuilder

log = logging.getLogger(__name__)

SWEEP_SECONDS = 10.0


class FrameServer(Protocol):
    """What serves the frames of all connections."""

    turn: Turn

    def dispatch(self, connection: Connection, frame: memoryview) -> None: ...


class ServingLimits:
    """What one broker grants all its clients together."""

    def __init__(
        self,
        *,
        max_request_bytes: int,
        max_idle_ms: int,
        buffer_bytes: int,
        backlog: int,
    ) -> None:
        self.max_request_bytes = max_request_bytes
        self.max_idle_ms = max_idle_ms
        self.buffer_bytes = buffer_bytes
        self.backlog = backlog


class Acceptors:
    """All listeners of a broker, and every connection that is open on them."""

    def __init__(
        self,
        dispatcher: FrameServer,
        limits: ServingLimits,
        admission: Admission,
        clock: Clock,
        disk: Executor,
        requests: RequestStatistics | None = None,
    ) -> None:
        self.limits = limits
        self.admission = admission
        self.clock = clock
        self.disk = disk
        self.dispatcher = dispatcher
        self.budget = BufferBudget(limits.buffer_bytes, clock)
        self.fairness = Fairness(clock.monotonic)
        self.requests = RequestStatistics(clock.monotonic) if requests is None else requests
        self.pieces = Pieces()
        self.refusals = Refusals(clock.monotonic)
        self.connections: dict[Connection, None] = {}
        self._servers: list[asyncio.Server] = []
        self._sweep: Timer | None = None

    async def listen(
        self,
        listener: Listener,
        bound: socket.socket,
        *,
        tls: TlsSource | None = None,
        principals: PrincipalBuilder | None = None,
        gate: Gate | None = None,
    ) -> None:
        """Accept connections on a socket that is bound already, so that its port is known before it serves."""
        entrance = Entrance(
            listener,
            tls,
            principals or DefaultPrincipalBuilder(),
            gate,
            self.refusals,
            self.clock,
        )
        acceptor = Acceptor(entrance, self)
        loop = asyncio.get_running_loop()
        server = await loop.create_server(
            lambda: entrance.wrap(Connection(acceptor)), sock=bound, backlog=self.limits.backlog
        )
        self._servers.append(server)
        if self._sweep is None:
            self._sweep = self.clock.call_later(SWEEP_SECONDS, self._tidy)

    async def close(self) -> None:
        for server in self._servers:
            server.close()
        if self._sweep is not None:
            self._sweep.cancel()
        for connection in tuple(self.connections):
            connection.transport.abort()
        # One turn of the loop, so that every connection is notified of its end.
        await asyncio.sleep(0)

    def admit(self, connection: Connection, entrance: Entrance) -> bool:
        """Whether the connection may stay. One that comes too soon after others stays unserved until its turn; one that
        exceeds the quota of its address is closed after a while, so that a client in a hurry is slowed down."""
        host, listener, now = connection.peer_host, connection.listener_name, self.clock.monotonic()
        self.connections[connection] = None
        complaint = self.admission.came(listener, host)
        too_soon = self.admission.too_soon(listener, host, now) if complaint is None else 0.0
        if too_soon > 0:
            log.info("connection from %s exceeds the quota connection_creation_rate", host)
            connection.mute()
            self.clock.call_later(too_soon, connection.transport.abort)
            return True
        wait = self.admission.turn(listener, now) if complaint is None else None
        if wait is None:
            log.warning(
                "refused connection from %s: %s", host, complaint or "max.connection.creation.rate exceeded"
            )
            return False
        if wait > 0:
            connection.mute()
            self.clock.call_later(wait, lambda: self._take_turn(connection, entrance))
        else:
            entrance.enter(connection)
        return True

    def _take_turn(self, connection: Connection, entrance: Entrance) -> None:
        if not connection.transport.is_closing():
            connection.unmute()
            entrance.enter(connection)

    def forget(self, connection: Connection) -> None:
        if connection in self.connections:
            del self.connections[connection]
            self.admission.left(connection.listener_name, connection.peer_host)

    def _tidy(self) -> None:
        """Close connections that have been idle too long, and reclaim large buffers from idle ones."""
        now = self.clock.monotonic()
        longest = self.limits.max_idle_ms / 1000
        for connection in tuple(self.connections):
            idle = now - connection.last_active
            if idle > longest and not connection.muted:
                connection.transport.abort()
            elif idle > SWEEP_SECONDS:
                connection.shrink()
        self._sweep = self.clock.call_later(SWEEP_SECONDS, self._tidy)


class Acceptor:
    """One listener: its name, and the server behind it, as its connections see them."""

    def __init__(self, entrance: Entrance, server: Acceptors) -> None:
        self.name = entrance.listener.name
        self.max_request_bytes = server.limits.max_request_bytes
        self.budget = server.budget
        self.fairness = server.fairness
        self.turn = server.dispatcher.turn
        self.requests = server.requests
        self._server = server
        self._entrance = entrance
        # Where clients have to log in, nothing is served until the gate says so.
        self.dispatch = _before_login if entrance.listener.authenticated else server.dispatcher.dispatch
        self.monotonic = server.clock.monotonic
        self.call_later = server.clock.call_later

    def opened(self, connection: Connection) -> bool:
        return self._server.admit(connection, self._entrance)

    def closed(self, connection: Connection) -> None:
        self._server.forget(connection)

    def refuse(self, connection: Connection, sentence: str) -> None:
        self._entrance.refuse(connection, sentence)

    def make_replies(self, connection: Connection, transport: asyncio.Transport) -> ReplyQueue:
        # What is encrypted cannot go from a file to the socket by itself.
        encrypted = isinstance(transport, TlsStream)
        if encrypted:
            transport.set_write_buffer_limits(high=0)
        socket = None if encrypted else transport.get_extra_info("socket").fileno()
        server = self._server
        return ReplyQueue(
            transport,
            server.disk,
            connection.drained,
            connection.cut,
            connection.share,
            server.pieces,
            socket,
        )


def _before_login(connection: Connection, frame: memoryview) -> None:
    connection.cut("a request on a listener that asks for a login, before there was one")
