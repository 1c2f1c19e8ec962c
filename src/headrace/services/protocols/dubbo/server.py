"""The provider's end of dubbo://: one port, its connections and their heartbeats, on one event loop."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING

from headrace.services.errors import ServicesError
from headrace.services.protocols.dubbo import codec
from headrace.services.protocols.dubbo.connection import Pulse
from headrace.services.protocols.dubbo.frame import DEFAULT_PAYLOAD, EVENT, REQUEST, frame
from headrace.services.protocols.dubbo.server_connection import ServerConnection
from headrace.services.url import URL

if TYPE_CHECKING:
    from headrace.services.invocation import Invocation
    from headrace.services.invoker import Invoker
    from headrace.services.runtime import Runtime

logger = logging.getLogger("headrace.services.dubbo")

_QUIET_SECONDS = 0.1


class DubboServer:
    """Listens on one port for all services exported there."""

    def __init__(self, runtime: Runtime, url: URL, invokers: Mapping[str, Invoker]) -> None:
        self.loop = runtime.loop
        self.port = url.get_int("bind.port", url.port)
        self.payload = url.get_int("payload", DEFAULT_PAYLOAD)
        self.invokers = invokers
        self.decoder = codec.RequestDecoder()
        self.connections: set[ServerConnection] = set()
        self._runtime = runtime
        self._url = url
        self._accepts = url.get_int("accepts", 0)
        self._pulse = Pulse(url)
        self._server: asyncio.Server | None = None
        self.calls: dict[Invocation, asyncio.Task[None]] = {}  # those under way that wait for something

    async def start(self) -> None:
        host = (
            None if self._url.get_bool("anyhost", False) else self._url.get("bind.ip", self._url.host or "")
        )
        reserved = self._runtime.reserved.pop(self.port, None)
        try:
            if reserved is not None:
                self._server = await self.loop.create_server(self._accept, sock=reserved, backlog=1024)
            else:
                address = "0.0.0.0" if host is None else host
                self._server = await self.loop.create_server(self._accept, address, self.port, backlog=1024)
        except OSError as error:
            raise ServicesError(
                f"Fail to start server on {host or '0.0.0.0'}:{self.port}: {error.strerror or error}; "
                "choose another dubbo.protocol.port"
            ) from None

    def _accept(self) -> ServerConnection:
        return ServerConnection(self)

    def reset(self, url: URL) -> None:
        """Take over what an override rule changed."""
        self.payload = url.get_int("payload", DEFAULT_PAYLOAD)
        self._accepts = url.get_int("accepts", 0)
        pulse = Pulse(url)
        if (pulse.seconds, pulse.silence) != (self._pulse.seconds, self._pulse.silence):
            self._pulse.stop()
            self._pulse = pulse
            for connection in self.connections:
                pulse.add(connection)

    def opened(self, connection: ServerConnection) -> None:
        if 0 < self._accepts <= len(self.connections):
            logger.error(
                "Close channel %s, cause: The server %d connections greater than max config %d",
                connection.remote_address,
                len(self.connections) + 1,
                self._accepts,
            )
            connection.close()
            return
        self.connections.add(connection)
        self._pulse.add(connection)

    def closed(self, connection: ServerConnection) -> None:
        self.connections.discard(connection)
        self._pulse.remove(connection)

    async def close(self, wait_seconds: float) -> None:
        """Tell consumers to look elsewhere, let calls under way finish, close."""
        if self._server is not None:
            self._server.close()
        for connection in list(self.connections):
            connection.send(frame(REQUEST | EVENT, 0, 0, codec.READONLY_BODY))
        deadline = self.loop.time() + wait_seconds
        quiet_since: float | None = None
        # A one-way call goes on when its consumer has gone.
        while (self.connections or self.calls) and self.loop.time() < deadline:
            now = self.loop.time()
            last = max((connection.last_read for connection in self.connections), default=0.0)
            busy = bool(self.calls) or now - last < _QUIET_SECONDS
            quiet_since = None if busy else quiet_since or now
            if quiet_since is not None and now - quiet_since >= _QUIET_SECONDS:
                break
            await asyncio.sleep(_QUIET_SECONDS / 5)
        self._pulse.stop()
        for connection in list(self.connections):
            connection.close()
        for task in list(self.calls.values()):
            task.cancel()
