"""What both ends of a dubbo:// connection do: read frames, answer heartbeats, notice silence.

Either end that has heard or said nothing for `heartbeat` (60,000 ms) sends a heartbeat; silence for three times as
long means that the other end is gone, and each end then closes (the consumer's connects again).
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from typing import cast

from headrace.services.protocols.dubbo import codec
from headrace.services.protocols.dubbo.frame import EVENT, REQUEST, TWO_WAY, FrameSplitter
from headrace.services.url import URL

logger = logging.getLogger("headrace.services.dubbo")

DEFAULT_HEARTBEAT_MS = 60_000
request_ids = itertools.count(1)


class DubboConnection(FrameSplitter, asyncio.Protocol):
    """One TCP connection, on the event loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop, payload: int) -> None:
        super().__init__(payload)
        self.loop = loop
        self.remote_address = ""
        self.local_address = ""
        self.last_read = self.last_write = loop.time()
        self.read_only = False  # the provider is leaving and takes no new calls
        self._transport: asyncio.Transport | None = None

    # -- asyncio's side ----------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self.remote_address = _address(transport.get_extra_info("peername"))
        self.local_address = _address(transport.get_extra_info("sockname"))

    def data_received(self, data: bytes) -> None:
        self.last_read = self.loop.time()
        self.feed(data)

    def connection_lost(self, error: Exception | None) -> None:
        self._transport = None

    @property
    def is_open(self) -> bool:
        return self._transport is not None and not self._transport.is_closing()

    def send(self, data: bytes | bytearray) -> None:
        """Write a frame; what is written in one turn of the loop leaves in one system call."""
        if self._transport is not None:
            self.last_write = self.loop.time()
            self._transport.write(data)

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()

    def pause_reading(self) -> None:
        if self._transport is not None and self._transport.is_reading():
            self._transport.pause_reading()

    def resume_reading(self) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.resume_reading()

    # -- events ------------------------------------------------------------------------------------------

    def on_event(self, flags: int, request_id: int, body: bytes) -> None:
        """A heartbeat, an answer to one, or the other end's notice that it takes no more calls."""
        if not flags & REQUEST:
            return
        if body == codec.READONLY_BODY:
            self.read_only = True
            logger.debug("%s takes no new calls", self.remote_address)
        elif flags & TWO_WAY:
            logger.debug("Heartbeat from %s, answered", self.remote_address)
            self.send(codec.heartbeat(request_id, 0))

    def beat(self) -> None:
        logger.debug("Heartbeat to %s", self.remote_address)
        self.send(codec.heartbeat(next(request_ids), REQUEST | TWO_WAY))

    def on_too_large(self, flags: int, request_id: int, length: int) -> None:
        logger.error("%s", self.too_large_message(length))

    def too_large_message(self, length: int) -> str:
        return (
            f"Data length too large: {length}, max payload: {self.payload}, "
            f"channel: {self.remote_address} -> {self.local_address}"
        )

    def on_text(self, data: bytes) -> None:
        self.close()


class Pulse:
    """Heartbeats for a set of connections: one timer, whatever their number."""

    def __init__(self, url: URL) -> None:
        self.seconds = url.get_int("heartbeat", DEFAULT_HEARTBEAT_MS) / 1000
        self.silence = max(url.get_int("heartbeat.timeout", 0) / 1000, self.seconds * 3)
        self._connections: set[DubboConnection] = set()
        self._timer: asyncio.TimerHandle | None = None

    def add(self, connection: DubboConnection) -> None:
        if self.seconds <= 0:
            return
        self._connections.add(connection)
        if self._timer is None:
            self._schedule(connection.loop)

    def remove(self, connection: DubboConnection) -> None:
        self._connections.discard(connection)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._connections.clear()

    def _schedule(self, loop: asyncio.AbstractEventLoop) -> None:
        self._timer = loop.call_later(self.seconds / 3, self._tick, loop)

    def _tick(self, loop: asyncio.AbstractEventLoop) -> None:
        self._timer = None
        now = loop.time()
        for connection in list(self._connections):
            if not connection.is_open:  # lost before it was added here
                self._connections.discard(connection)
            elif now - connection.last_read > self.silence:
                logger.warning(
                    "Close channel %s -> %s, because nothing was heard for %gs",
                    connection.local_address,
                    connection.remote_address,
                    self.silence,
                )
                connection.close()
            elif now - min(connection.last_read, connection.last_write) > self.seconds:
                connection.beat()
        if self._connections:
            self._schedule(loop)


def _address(name: object) -> str:
    if isinstance(name, tuple) and len(name) >= 2:
        return f"{name[0]}:{name[1]}"
    return str(name or "")


def is_event(flags: int) -> bool:
    return bool(flags & EVENT)
