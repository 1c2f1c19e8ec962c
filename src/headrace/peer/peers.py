"""The other brokers, by id: where they are now, and one shared connection to each for small requests."""

from __future__ import annotations

from collections.abc import Callable

from headrace.clock import Clock
from headrace.cluster.image import MetadataImage
from headrace.peer.connection import CLIENT_ID, PeerConnection, PeerError
from headrace.wire.schema import Request, Response


class Peers:
    def __init__(
        self, broker_id: int, image: Callable[[], MetadataImage], listener: str, clock: Clock
    ) -> None:
        self._client_id = f"{CLIENT_ID}-{broker_id}".encode()
        self._image = image
        self._listener = listener
        self._clock = clock
        self._connections: dict[int, PeerConnection] = {}

    async def connect(self, broker_id: int) -> PeerConnection:
        """A connection of one's own, to where the broker is registered now."""
        broker = self._image().brokers.get(broker_id)
        endpoint = broker.endpoint(self._listener) if broker is not None and not broker.fenced else None
        if endpoint is None:
            raise PeerError(f"broker {broker_id} is not alive")
        return await PeerConnection.connect(endpoint.host, endpoint.port, self._client_id, self._clock)

    async def call(self, broker_id: int, request: Request, version: int, timeout: float = 30.0) -> Response:
        """Ask a broker over the shared connection, made when there is none."""
        connection = self._connections.get(broker_id)
        if connection is None or not connection.open:
            connection = await self.connect(broker_id)
            self._connections[broker_id] = connection
        return await connection.call(request, version, timeout)

    def close(self) -> None:
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()
