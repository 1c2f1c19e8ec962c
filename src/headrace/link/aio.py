"""One connection to a broker on the event loop: replies matched by number, each read straight into its buffer."""

from __future__ import annotations

import asyncio
import itertools
import socket
from typing import TypeVar, cast

from headrace.clock import Clock
from headrace.link.errors import BrokerUnavailable
from headrace.wire.codec import WireError
from headrace.wire.frames import decode_reply, encode_request, reply_length, reply_number
from headrace.wire.schema import Request, Response

R = TypeVar("R", bound=Response)


class AsyncConnection(asyncio.BufferedProtocol):
    """Make one with `connect`. Requests may overlap; the broker answers in order."""

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
    ) -> AsyncConnection:
        address = f"{host}:{port}"
        loop = asyncio.get_running_loop()
        try:
            transport, protocol = await clock.wait_for(
                loop.create_connection(lambda: cls(address, client_id), host, port), timeout
            )
        except (OSError, TimeoutError) as error:
            raise BrokerUnavailable(f"broker at {address} cannot be reached: {error}") from None
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

    async def call(self, request: Request[R], version: int, timeout: float = 30.0) -> R:
        """The reply to `request`. BrokerUnavailable when none comes."""
        if not self.open or self._transport is None:
            raise BrokerUnavailable(f"the connection to {self.address} is closed")
        number = next(self._numbers)
        frame = encode_request(request, version, number, self._client_id)
        future: asyncio.Future[memoryview] = asyncio.get_running_loop().create_future()
        self._waiting[number] = future
        self._transport.write(frame)
        try:
            reply = await self._clock.wait_for(future, timeout)
        except TimeoutError:
            self.close()
            raise BrokerUnavailable(f"{self.address} did not answer within {timeout:g} s") from None
        finally:
            self._waiting.pop(number, None)
        return decode_reply(request.reply_type(), version, reply)

    # From the transport.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def connection_lost(self, exc: Exception | None) -> None:
        for future in self._waiting.values():
            if not future.done():
                future.set_exception(BrokerUnavailable(f"the connection to {self.address} was lost"))
        self._waiting.clear()

    def get_buffer(self, sizehint: int) -> memoryview:
        return memoryview(self._length if self._frame is None else self._frame)[self._filled :]

    def buffer_updated(self, nbytes: int) -> None:
        self._filled += nbytes
        if self._frame is None:
            if self._filled == 4:
                try:
                    self._frame = bytearray(reply_length(self._length))
                except WireError:
                    self.close()
                    return
                self._filled = 0
        elif self._filled == len(self._frame):
            frame, self._frame, self._filled = self._frame, None, 0
            future = self._waiting.get(reply_number(frame))
            if future is not None and not future.done():
                future.set_result(memoryview(frame))
