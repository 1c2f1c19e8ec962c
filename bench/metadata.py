"""One Metadata request over a plain socket: the cheapest question that shows that a broker serves."""

import socket
import struct
from dataclasses import dataclass

_REQUEST = struct.pack(">hhih5si", 3, 1, 1, 5, b"bench", -1)  # Metadata version 1, every topic


@dataclass(frozen=True, slots=True)
class ClusterView:
    """How many brokers, and how many partitions that have a leader, a Metadata reply names."""

    brokers: int
    led_partitions: int


def ask_metadata(port: int, limit: float = 10) -> ClusterView | None:
    """The reply in short, or None while nobody listens or answers."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=limit) as connection:
            connection.sendall(struct.pack(">i", len(_REQUEST)) + _REQUEST)
            (length,) = struct.unpack(">i", _receive(connection, 4))
            return _parse(_receive(connection, length))
    except OSError:
        return None


def _receive(connection: socket.socket, length: int) -> bytes:
    received = bytearray()
    while len(received) < length:
        piece = connection.recv(length - len(received))
        if not piece:
            raise ConnectionResetError("the broker closed the connection")
        received += piece
    return bytes(received)


class _Reader:
    def __init__(self, body: bytes) -> None:
        self._body = body
        self._at = 4  # past the correlation id

    def number(self, form: str) -> int:
        (value,) = struct.unpack_from(f">{form}", self._body, self._at)
        self._at += struct.calcsize(f">{form}")
        return int(value)

    def skip_string(self) -> None:
        length = self.number("h")
        self._at += max(length, 0)

    def skip_numbers(self) -> None:
        count = self.number("i")
        self._at += 4 * count


def _parse(body: bytes) -> ClusterView:
    reader = _Reader(body)
    brokers = reader.number("i")
    for _ in range(brokers):
        reader.number("i")
        reader.skip_string()
        reader.number("i")
        reader.skip_string()
    reader.number("i")
    led = 0
    for _ in range(reader.number("i")):
        reader.number("h")
        reader.skip_string()
        reader.number("b")
        for _ in range(reader.number("i")):
            reader.number("h")
            reader.number("i")
            led += reader.number("i") >= 0
            reader.skip_numbers()
            reader.skip_numbers()
    return ClusterView(brokers, led)
