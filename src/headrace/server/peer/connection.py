"""One connection to another broker: requests out, replies matched by number, each read straight into its buffer."""

from __future__ import annotations

import asyncio
import importlib
import itertools
import socket
import struct
from typing import cast

from headrace.clock import Clock
from headrace.wire.codec import decode, encode
from headrace.wire.frames import API_VERSIONS_KEY
from headrace.wire.schema import Request, Response

CLIENT_ID = "headrace-broker"
"""How brokers name themselves to each other, followed by `-` and the broker's id."""

LARGEST_REPLY = 512 * 1024 * 1024

_HEADER = struct.Struct(">ihhih")


class PeerError(ConnectionError):
    """The other broker cannot be reached, or the connection ended before it answered."""


class PeerConnection(asyncio.BufferedProtocol):
    """Make one with `connect`. Requests may overlap; the peer answers in order."""

    def __init__(self, address: str, client_id: bytes) -> None:
        self.address = address
        self._client_id = client_id
        self._numbers = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[memoryview]] = {}
        self._length = bytearray(4)
        self._frame: bytearray | None = None
        self._filled = 0
        self._transport: asyncio.Transport | None = None
        self._clock: Clock

    @classmethod
    async def connect(
        cls,
        host: str,
        port: int,
        client_id: bytes,
        clock: Clock,
        timeout: float = 10.0,
        receive_buffer: int = -1,
    ) -> PeerConnection:
        address = f"{host}:{port}"
        loop = asyncio.get_running_loop()
        try:
            transport, protocol = await clock.wait_for(
                loop.create_connection(lambda: cls(address, client_id), host, port), timeout
            )
        except (OSError, TimeoutError) as error:
            raise PeerError(f"broker at {address} cannot be reached: {error}") from None
        if receive_buffer >= 0:
            transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        protocol._clock = clock
        return protocol

    @property
    def open(self) -> bool:
        return self._transport is not None and not self._transport.is_closing()

    def close(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    async def call(self, request: Request, version: int, timeout: float = 30.0) -> Response:
        """The reply to `request`, whose class lives beside the request's. PeerError when none comes."""
        if not self.open or self._transport is None:
            raise PeerError(f"the connection to {self.address} is closed")
        number = next(self._numbers)
        flexible = version >= request.FLEXIBLE
        body = bytearray(_HEADER.size) + self._client_id + (b"\x00" if flexible else b"")
        encode(request, version, body)
        _HEADER.pack_into(body, 0, len(body) - 4, request.API_KEY, version, number, len(self._client_id))
        future: asyncio.Future[memoryview] = asyncio.get_running_loop().create_future()
        self._waiting[number] = future
        self._transport.write(body)
        try:
            reply = await self._clock.wait_for(future, timeout)
        except TimeoutError:
            self.close()
            raise PeerError(f"{self.address} did not answer within {timeout:g} s") from None
        finally:
            self._waiting.pop(number, None)
        return self._decode(request, version, reply)

    def _decode(self, request: Request, version: int, reply: memoryview) -> Response:
        module = importlib.import_module(type(request).__module__)
        cls: type[Response] = getattr(module, type(request).__name__.removesuffix("Request") + "Response")
        start = 5 if version >= cls.FLEXIBLE and cls.API_KEY != API_VERSIONS_KEY else 4
        return decode(cls, version, reply, start)[0]

    # From the transport.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def connection_lost(self, exc: Exception | None) -> None:
        for future in self._waiting.values():
            if not future.done():
                future.set_exception(PeerError(f"the connection to {self.address} was lost"))
        self._waiting.clear()

    def get_buffer(self, sizehint: int) -> memoryview:
        return memoryview(self._length if self._frame is None else self._frame)[self._filled :]

    def buffer_updated(self, nbytes: int) -> None:
        self._filled += nbytes
        if self._frame is None:
            if self._filled == 4:
                size = int.from_bytes(self._length, "big")
                if not 4 <= size <= LARGEST_REPLY:
                    self.close()
                    return
                self._frame = bytearray(size)
                self._filled = 0
        elif self._filled == len(self._frame):
            frame, self._frame, self._filled = self._frame, None, 0
            future = self._waiting.get(int.from_bytes(frame[:4], "big"))
            if future is not None and not future.done():
                future.set_result(memoryview(frame))
