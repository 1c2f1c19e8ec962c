"""The provider's end of dubbo://: listens on one port, and leaves it without losing calls."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from headrace.services.errors import ServicesError
from headrace.services.invoker import Invoker
from headrace.services.protocols.base import ProtocolRuntime
from headrace.services.protocols.dubbo import codec
from headrace.services.protocols.dubbo.frame import EVENT, REQUEST, frame
from headrace.services.protocols.dubbo.port import Port
from headrace.services.protocols.dubbo.server_connection import ServerConnection
from headrace.services.url import URL

_QUIET_SECONDS = 0.1


class DubboServer:
    """Listens on one port for all services exported there."""

    def __init__(self, runtime: ProtocolRuntime, url: URL, invokers: Mapping[str, Invoker]) -> None:
        self._runtime = runtime
        self._url = url
        self.port = Port(runtime.loop, url, invokers)
        self._server: asyncio.Server | None = None

    async def start(self) -> None:
        loop, number = self.port.loop, self.port.number
        host = (
            None if self._url.get_bool("anyhost", False) else self._url.get("bind.ip", self._url.host or "")
        )
        reserved = self._runtime.reserved.pop(number, None)
        try:
            if reserved is not None:
                self._server = await loop.create_server(self._accept, sock=reserved, backlog=1024)
            else:
                address = "0.0.0.0" if host is None else host
                self._server = await loop.create_server(self._accept, address, number, backlog=1024)
        except OSError as error:
            raise ServicesError(
                f"Fail to start server on {host or '0.0.0.0'}:{number}: {error.strerror or error}; "
                "choose another dubbo.protocol.port"
            ) from None

    def _accept(self) -> ServerConnection:
        return ServerConnection(self.port)

    def reset(self, url: URL) -> None:
        """Apply what an override rule changed."""
        self.port.reset(url)

    async def close(self, wait_seconds: float) -> None:
        """Tell consumers to look elsewhere, let calls under way finish, close."""
        if self._server is not None:
            self._server.close()
        port = self.port
        for connection in list(port.connections):
            connection.send(frame(REQUEST | EVENT, 0, 0, codec.READONLY_BODY))
        now = port.loop.time
        deadline = now() + wait_seconds
        quiet_since: float | None = None
        # A one-way call continues after its consumer has gone.
        while (port.connections or port.calls) and now() < deadline:
            last = max((connection.last_read for connection in port.connections), default=0.0)
            busy = bool(port.calls) or now() - last < _QUIET_SECONDS
            quiet_since = None if busy else quiet_since or now()
            if quiet_since is not None and now() - quiet_since >= _QUIET_SECONDS:
                break
            await asyncio.sleep(_QUIET_SECONDS / 5)
        port.close()
