"""rest://: `POST /<path>/<method>` with a JSON object (or list) of arguments, answered with the JSON result.

`GET` takes arguments from the query, `GET /openapi.json` describes everything behind the port. Attachments travel in
the header `Dubbo-Attachments`; group, version and token too.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from headrace.services.interface import InterfaceModel
from headrace.services.invoker import Invoker
from headrace.services.protocols.base import Exporter, OpenConnections, Protocol, ProtocolRuntime
from headrace.services.protocols.rest.client import RestInvoker
from headrace.services.protocols.rest.server import RestServer
from headrace.services.url import URL


class RestProtocol(Protocol):
    """One HTTP server a port."""

    name = "rest"
    default_port = 8080
    keeps_classes = False

    def __init__(self, runtime: ProtocolRuntime) -> None:
        super().__init__(runtime)
        self._servers: dict[int, RestServer] = {}
        self._opening = asyncio.Lock()

    async def export(self, invoker: Invoker) -> Exporter:
        port = invoker.url.get_int("bind.port", invoker.url.port)
        async with self._opening:
            if port not in self._servers:
                server = RestServer(self.runtime, invoker.url, port)
                await server.start()
                self._servers[port] = server
        return self._servers[port].add(invoker)

    async def refer(self, interface: InterfaceModel, url: URL) -> Invoker:
        invoker = RestInvoker(interface, url)
        await invoker.connect()
        return invoker

    def connections(self) -> Iterable[OpenConnections]:
        for port, server in list(self._servers.items()):
            yield OpenConnections(self.name, "provider", str(port), server.connections)

    async def destroy(self) -> None:
        wait = self.runtime.shutdown_wait_ms / 1000
        await asyncio.gather(*(server.close(wait) for server in self._servers.values()))
        self._servers.clear()
