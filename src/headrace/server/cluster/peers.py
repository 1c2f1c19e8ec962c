"""The other brokers, by id: their current addresses, and one shared connection to each for small requests."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, TypeVar

from headrace import __version__
from headrace.clock import Clock
from headrace.link.errors import BrokerDistrusted, BrokerUnavailable
from headrace.server.cluster.image import MetadataImage
from headrace.server.cluster.passed_on import Client, for_client
from headrace.wire.messages.api_versions import ApiVersionsRequest
from headrace.wire.schema import Request, Response

if TYPE_CHECKING:
    from headrace.link.aio import AsyncConnection
    from headrace.link.settings import KafkaSettings

R = TypeVar("R", bound=Response)

log = logging.getLogger("headrace")

REMIND_AFTER = 60.0
CLIENT_ID = "headrace-broker"
"""The client id that brokers use among themselves, followed by `-` and the broker's id."""


class Peers:
    def __init__(
        self,
        broker_id: int,
        image: Callable[[], MetadataImage],
        listener: str,
        clock: Clock,
        *,
        setup_timeout: float = 10.0,
        request_timeout: float = 30.0,
        settings: Callable[[], KafkaSettings | None] = lambda: None,
    ) -> None:
        """`settings` say how connections are secured; they are asked again for each, since certificates change."""
        self._client_id = f"{CLIENT_ID}-{broker_id}".encode()
        self._image = image
        self._listener = listener
        self._clock = clock
        self._setup_timeout = setup_timeout
        self._request_timeout = request_timeout
        self._settings = settings
        self._connections: dict[int, AsyncConnection] = {}
        self._making: dict[int, asyncio.Task[AsyncConnection]] = {}
        self._versions: dict[int, tuple[AsyncConnection, dict[int, int]]] = {}
        """The newest version of each API that a broker serves, and the connection by which it said so."""
        self._complaints: dict[int, tuple[str, float]] = {}
        """What was last said of connecting to each broker in vain, and when."""

    async def connect(self, broker_id: int, receive_buffer: int = -1) -> AsyncConnection:
        """A new connection to the broker's current address; `receive_buffer` is its SO_RCVBUF unless negative."""
        broker = self._image().brokers.get(broker_id)
        endpoint = broker.endpoint(self._listener) if broker is not None and not broker.fenced else None
        if endpoint is None:
            raise BrokerUnavailable(f"broker {broker_id} is not alive")
        # Imported here: a broker that is alone has no need of it.
        from headrace.link.aio import AsyncConnection

        try:
            return await AsyncConnection.connect(
                endpoint.host,
                endpoint.port,
                self._client_id,
                self._clock,
                self._setup_timeout,
                receive_buffer,
                self._settings(),
            )
        except BrokerDistrusted as error:
            self._complain(broker_id, str(error).rstrip("."))
            raise

    def _complain(self, broker_id: int, trouble: str) -> None:
        """Once a minute: the connection is tried again and again."""
        said, when = self._complaints.get(broker_id, ("", 0.0))
        now = self._clock.monotonic()
        if trouble != said or now - when >= REMIND_AFTER:
            self._complaints[broker_id] = trouble, now
            log.warning(
                "This broker cannot connect to broker %d: %s. Its own login, key store and trust store are those of listener %s.",
                broker_id,
                trouble,
                self._listener,
            )

    async def call(
        self,
        broker_id: int,
        request: Request[R],
        version: int,
        timeout: float | None = None,
        client: Client | None = None,
    ) -> R:
        """Send a request over the shared connection, opening it if necessary. `timeout` defaults to `request_timeout`; `client` is
        for whom it is passed on."""
        connection = self._connections.get(broker_id)
        if connection is None or not connection.fresh:
            connection = await self._share(broker_id)
        name = self._client_id if client is None else for_client(self._client_id, client)
        wait = self._request_timeout if timeout is None else timeout
        return await connection.call(request, version, wait, client_id=name)

    async def newest(self, broker_id: int, request: type[Request], wanted: int) -> int:
        """The newest version of a request, up to `wanted`, that the other broker serves, too."""
        return min(wanted, (await self.offered(broker_id)).get(request.API_KEY, wanted))

    async def offered(self, broker_id: int) -> Mapping[int, int]:
        """The newest version of each API that the other broker advertises: it may be one before an upgrade."""
        connection = self._connections.get(broker_id)
        if connection is None or not connection.fresh:
            connection = await self._share(broker_id)
        said_by, versions = self._versions.get(broker_id, (None, {}))
        if said_by is not connection:
            asked = ApiVersionsRequest("headrace", __version__)
            reply = await connection.call(asked, 3, self._request_timeout)
            versions = {each.api_key: each.max_version for each in reply.api_keys}
            self._versions[broker_id] = connection, versions
        return versions

    async def _share(self, broker_id: int) -> AsyncConnection:
        """Open the shared connection once for all concurrent callers; a caller that stops waiting does not affect the others."""
        making = self._making.get(broker_id)
        if making is None:
            making = self._making[broker_id] = asyncio.get_running_loop().create_task(self.connect(broker_id))
            making.add_done_callback(lambda made: self._made(broker_id, made))
        return await asyncio.shield(making)

    def _made(self, broker_id: int, made: asyncio.Task[AsyncConnection]) -> None:
        self._making.pop(broker_id, None)
        if not made.cancelled() and made.exception() is None:
            before = self._connections.get(broker_id)
            if before is not None:
                before.close_when_answered()
            self._connections[broker_id] = made.result()

    def close(self) -> None:
        for making in self._making.values():
            making.cancel()
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()
