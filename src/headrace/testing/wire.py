"""A client of a few lines that says exactly what a test tells it to, byte for byte."""

from __future__ import annotations

import importlib
import itertools
import socket
import struct
from types import TracebackType

from headrace.wire.codec import decode, encode
from headrace.wire.frames import API_VERSIONS_KEY
from headrace.wire.records import BatchBuilder
from headrace.wire.schema import Request, Response


class WireClient:
    """One connection. `call` sends a request and returns its decoded response."""

    def __init__(self, bootstrap: str, timeout: float = 30.0) -> None:
        host, _, port = bootstrap.rpartition(":")
        self.socket = socket.create_connection((host, int(port)), timeout)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._numbers = itertools.count(1)

    def __enter__(self) -> WireClient:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.socket.close()

    def call(self, request: Request, version: int) -> Response:
        number = self.send(request, version)
        return self.receive(request, version, number)

    def send(self, request: Request, version: int) -> int:
        number = next(self._numbers)
        self.socket.sendall(frame(request, version, number))
        return number

    def receive(self, request: Request, version: int, number: int) -> Response:
        reply = self.receive_frame()
        assert struct.unpack_from(">i", reply)[0] == number, "replies are out of order"
        module = importlib.import_module(type(request).__module__)
        cls: type[Response] = getattr(module, type(request).__name__.replace("Request", "Response"))
        start = 5 if version >= cls.FLEXIBLE and cls.API_KEY != API_VERSIONS_KEY else 4
        return decode(cls, version, reply, start)[0]

    def receive_frame(self) -> bytes:
        (size,) = struct.unpack(">i", self._exactly(4))
        return self._exactly(size)

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
    name = client_id.encode()
    head = struct.pack(">hhih", request.API_KEY, version, number, len(name)) + name
    if version >= request.FLEXIBLE:
        head += b"\x00"
    body = head + encode(request, version)
    return struct.pack(">i", len(body)) + body


def batch(*values: bytes, builder: BatchBuilder | None = None) -> bytes:
    """A record batch of these values, with no keys."""
    builder = builder or BatchBuilder()
    for value in values:
        builder.append(1_700_000_000_000, None, value)
    return bytes(builder.build())
