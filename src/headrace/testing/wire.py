"""A client of a few lines that says exactly what a test tells it to, byte for byte."""

from __future__ import annotations

import itertools
import socket
from types import TracebackType
from typing import TypeVar

from headrace.link.addresses import split_address
from headrace.wire.frames import decode_reply, encode_request, reply_length, reply_number
from headrace.wire.records import BatchBuilder
from headrace.wire.schema import Request, Response

R = TypeVar("R", bound=Response)


class WireClient:
    """One connection. `call` sends a request and returns its decoded response."""

    def __init__(self, bootstrap: str, timeout: float = 30.0) -> None:
        self.socket = socket.create_connection(split_address(bootstrap), timeout)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._numbers = itertools.count(1)

    def __enter__(self) -> WireClient:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.socket.close()

    def call(self, request: Request[R], version: int) -> R:
        number = self.send(request, version)
        return self.receive(request, version, number)

    def send(self, request: Request, version: int) -> int:
        number = next(self._numbers)
        self.socket.sendall(frame(request, version, number))
        return number

    def receive(self, request: Request[R], version: int, number: int) -> R:
        reply = self.receive_frame()
        assert reply_number(reply) == number, "replies are out of order"
        return decode_reply(request.reply_type(), version, reply)

    def receive_frame(self) -> bytes:
        return self._exactly(reply_length(self._exactly(4)))

    def _exactly(self, size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            piece = self.socket.recv(size - len(data))
            if not piece:
                raise ConnectionError(f"the broker closed the connection after {len(data)} of {size} bytes")
            data += piece
        return bytes(data)

    def is_closed_by_broker(self) -> bool:
        """Waits for the broker to close the connection, or to say anything."""
        try:
            return self.socket.recv(1) == b""
        except ConnectionError:
            return True


def frame(request: Request, version: int, number: int = 1, client_id: str = "wire-test") -> bytes:
    return bytes(encode_request(request, version, number, client_id.encode()))


def batch(*values: bytes, builder: BatchBuilder | None = None) -> bytes:
    """A record batch of these values, with no keys."""
    builder = builder or BatchBuilder()
    for value in values:
        builder.append(1_700_000_000_000, None, value)
    return bytes(builder.build())
