"""What all connections to one dubbo:// port share: its services, its limits, its heartbeats, the calls under way."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping

from headrace.services.invocation import Invocation
from headrace.services.invoker import Invoker
from headrace.services.protocols.dubbo import codec
from headrace.services.protocols.dubbo.connection import DubboConnection, Pulse
from headrace.services.protocols.dubbo.frame import DEFAULT_PAYLOAD
from headrace.services.url import URL

logger = logging.getLogger("headrace.services.dubbo")


class Port:
    """The state of one port; the server opens and closes it, its connections serve calls with it."""

    def __init__(self, loop: asyncio.AbstractEventLoop, url: URL, invokers: Mapping[str, Invoker]) -> None:
        self.loop = loop
        self.number = url.get_int("bind.port", url.port)
        self.payload = url.get_int("payload", DEFAULT_PAYLOAD)
        self.invokers = invokers
        self.decoder = codec.RequestDecoder()
        self.connections: set[DubboConnection] = set()
        self.calls: dict[Invocation, asyncio.Task[None]] = {}  # those under way that wait for something
        self._accepts = url.get_int("accepts", 0)
        self._pulse = Pulse(url)

    def reset(self, url: URL) -> None:
        """Apply what an override rule changed."""
        self.payload = url.get_int("payload", DEFAULT_PAYLOAD)
        self._accepts = url.get_int("accepts", 0)
        pulse = Pulse(url)
        if (pulse.seconds, pulse.silence) != (self._pulse.seconds, self._pulse.silence):
            self._pulse.stop()
            self._pulse = pulse
            for connection in self.connections:
                pulse.add(connection)

    def opened(self, connection: DubboConnection) -> None:
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

    def closed(self, connection: DubboConnection) -> None:
        self.connections.discard(connection)
        self._pulse.remove(connection)

    def close(self) -> None:
        """Cut every connection and cancel the calls that are still under way."""
        self._pulse.stop()
        for connection in list(self.connections):
            connection.close()
        for task in list(self.calls.values()):
            task.cancel()
