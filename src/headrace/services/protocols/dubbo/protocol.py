"""dubbo://: exports by port and service key, references over shared connections."""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections import Counter
from collections.abc import Iterable

from headrace.services.errors import RpcCode, RpcException
from headrace.services.hessian2 import Hessian2Error
from headrace.services.interface import InterfaceModel
from headrace.services.invocation import Invocation, Result
from headrace.services.invoker import Invoker
from headrace.services.protocols.base import Exporter, OpenConnections, Protocol, ProtocolRuntime
from headrace.services.protocols.dubbo import codec
from headrace.services.protocols.dubbo.client import ExchangeClient, RemotingError
from headrace.services.protocols.dubbo.connection import request_ids
from headrace.services.protocols.dubbo.frame import REQUEST, TWO_WAY
from headrace.services.protocols.dubbo.server import DubboServer
from headrace.services.protocols.dubbo.server_connection import exporter_key
from headrace.services.url import URL

logger = logging.getLogger("headrace.services.dubbo")

DEFAULT_TIMEOUT_MS = 1_000
_ATTACHED = ("interface", "group", "token", "timeout")


class DubboProtocol(Protocol):
    """One server a port, one connection a provider (unless `connections` asks for more)."""

    name = "dubbo"
    default_port = 20880

    def __init__(self, runtime: ProtocolRuntime) -> None:
        super().__init__(runtime)
        self._invokers: dict[str, Invoker] = {}
        self._servers: dict[int, DubboServer] = {}
        self._shared: dict[str, list[ExchangeClient]] = {}
        self._clients: dict[ExchangeClient, str] = {}  # all of them, shared or not, with their addresses
        self._opening = asyncio.Lock()  # two services may be first on one port at once

    async def export(self, invoker: Invoker) -> Exporter:
        url = invoker.url
        port = url.get_int("bind.port", url.port)
        key = exporter_key(url.path, url.get("version"), url.get("group"), port)
        async with self._opening:
            if port in self._servers:
                self._servers[port].reset(url)
            else:
                server = DubboServer(self.runtime, url, self._invokers)
                await server.start()
                self._servers[port] = server
        self._invokers[key] = invoker
        return DubboExporter(invoker, key, self._invokers)

    async def refer(self, interface: InterfaceModel, url: URL) -> Invoker:
        count = url.get_int("connections", 0)
        if count > 0:
            clients = self._new_clients(url, count)
        else:
            clients = self._share(url)
        if not url.get_bool("lazy", False):
            for client in clients:
                try:
                    await client.connect()
                except RemotingError as error:
                    if url.get_bool("check", True):
                        await self.release(clients)
                        raise RpcException(
                            f"Fail to create remoting client for service({url}): {error}",
                            RpcCode.NETWORK,
                            reason=error.reason,
                        ) from None
                    logger.error("Failed to connect to %s, trying on: %s", url.address, error)
                    client.keep_connecting()
        return DubboInvoker(interface, url, clients, self)

    def _new_clients(self, url: URL, count: int) -> list[ExchangeClient]:
        clients = [ExchangeClient(self.runtime.loop, url) for _ in range(count)]
        self._clients.update(dict.fromkeys(clients, url.address))
        return clients

    def _share(self, url: URL) -> list[ExchangeClient]:
        clients = self._shared.get(url.address)
        if clients is None:
            count = max(1, url.get_int("shareconnections", 1))
            clients = self._shared[url.address] = self._new_clients(url, count)
        else:
            for client in clients:
                client.references += 1
        return clients

    async def release(self, clients: list[ExchangeClient], wait_seconds: float = 0) -> None:
        """One reference less; the last one closes the connections."""
        for client in clients:
            client.references -= 1
            if client.references <= 0:
                for address, shared in list(self._shared.items()):
                    if shared is clients:
                        del self._shared[address]
                self._clients.pop(client, None)
                await client.close(wait_seconds)

    def connections(self) -> Iterable[OpenConnections]:
        for port, server in list(self._servers.items()):
            yield OpenConnections(self.name, "provider", str(port), len(server.port.connections))
        clients = list(self._clients.items())
        opened = Counter(address for client, address in clients if client.is_connected)
        for address in {address for _, address in clients}:
            yield OpenConnections(self.name, "consumer", address, opened[address])

    async def destroy(self) -> None:
        wait = self.runtime.shutdown_wait_ms / 1000
        servers = list(self._servers.values())
        self._servers.clear()
        await asyncio.gather(*(server.close(wait) for server in servers))
        clients = list(itertools.chain.from_iterable(self._shared.values()))
        self._shared.clear()
        self._clients.clear()
        await asyncio.gather(*(client.close(wait) for client in clients))
        self._invokers.clear()


class DubboExporter(Exporter):
    """One service on one port."""

    def __init__(self, invoker: Invoker, key: str, table: dict[str, Invoker]) -> None:
        super().__init__(invoker)
        self._key = key
        self._table = table

    async def unexport(self) -> None:
        if self._table.get(self._key) is self.invoker:
            del self._table[self._key]


class DubboInvoker(Invoker):
    """Calls one provider over its connections in turn."""

    def __init__(
        self, interface: InterfaceModel, url: URL, clients: list[ExchangeClient], protocol: DubboProtocol
    ) -> None:
        super().__init__(interface, url)
        self._clients = clients
        self._protocol = protocol
        self._turn = itertools.cycle(clients)
        self._version = url.get("version", "0.0.0")
        self._attached = {key: url.get(key) for key in _ATTACHED if url.get(key)}
        self._attached |= {"path": url.path, "version": self._version}
        self._prefixes: dict[tuple[str, str], bytes] = {}
        self._timeouts_ms: dict[str, int] = {}
        self._destroyed = False

    @property
    def is_available(self) -> bool:
        return not self._destroyed and any(client.is_available for client in self._clients)

    async def invoke(self, invocation: Invocation) -> Result:
        name = invocation.method_name
        request_id = next(request_ids)
        data = self._encode(invocation, request_id)
        client = next(self._turn)
        timeout = self._timeouts_ms.get(name)
        if timeout is None:
            timeout = self.url.method_int(name, "timeout", DEFAULT_TIMEOUT_MS)
            timeout = self._timeouts_ms[name] = timeout if timeout > 0 else DEFAULT_TIMEOUT_MS
        try:
            if invocation.one_way:
                await client.send(data, timeout, sent=self.url.method_bool(name, "sent", False))
                return Result()
            return await client.request(request_id, data, timeout)
        except RemotingError as error:
            if error.code == RpcCode.TIMEOUT:
                raise RpcException(
                    f"Invoke remote method timeout. method: {name}, provider: {self.url}, cause: {error}",
                    RpcCode.TIMEOUT,
                    reason=f"{self.url.address} did not answer within {timeout} ms",
                ) from None
            raise RpcException(
                f"Failed to invoke remote method: {name}, provider: {self.url}, cause: {error}",
                RpcCode.NETWORK,
                reason=error.reason,
            ) from None

    def _encode(self, invocation: Invocation, request_id: int) -> bytearray:
        key = (invocation.method_name, invocation.parameter_types)
        prefix = self._prefixes.get(key)
        if prefix is None:
            prefix = self._prefixes[key] = codec.request_prefix(self.url.path, self._version, *key)
        flags = REQUEST if invocation.one_way else REQUEST | TWO_WAY
        attachments = {**self._attached, **invocation.attachments}
        try:
            return codec.encode_request(
                flags, request_id, prefix, invocation.method, invocation.arguments, attachments
            )
        except Hessian2Error as error:
            raise RpcException(
                f"Failed to invoke remote method: {invocation.method_name}, provider: {self.url}, cause: {error}",
                RpcCode.SERIALIZATION,
                reason=str(error),
            ) from None

    async def destroy(self) -> None:
        if not self._destroyed:
            self._destroyed = True
            await self._protocol.release(self._clients, self._protocol.runtime.shutdown_wait_ms / 1000)
