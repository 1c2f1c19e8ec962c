"""One Metadata request over a plain socket: the cheapest question that shows that a broker serves."""

import socket
import struct
from dataclasses import dataclass

_REQUEST = struct.pack(">hhih5si", 3, 1, 1, 5, b"bench", -1)  # Metadata version 1, every topic


@dataclass(frozen=True, slots=True)
class ClusterView:
    """How many brokers a Metadata reply names, and of every partition its leader (-1: none) and who is in sync."""

    brokers: int
    leaders: list[int]
    in_sync: list[list[int]]

    @property
    def led_partitions(self) -> int:
        return sum(leader >= 0 for leader in self.leaders)


def ask_metadata(port: int, limit: float = 10) -> ClusterView | None:
    """The reply in short, or None while nobody listens or answers."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=limit) as connection:
            if connection.getsockname() == connection.getpeername():
                return None  # Nobody listens yet, and the kernel has connected this socket to itself.
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

    def numbers(self) -> list[int]:
        count = self.number("i")
        found = struct.unpack_from(f">{count}i", self._body, self._at)
        self._at += 4 * count
        return list(found)


def _parse(body: bytes) -> ClusterView:
    reader = _Reader(body)
    brokers = reader.number("i")
    for _ in range(brokers):
        reader.number("i")
        reader.skip_string()
        reader.number("i")
        reader.skip_string()
    reader.number("i")
    leaders, in_sync = [], []
    for _ in range(reader.number("i")):
        reader.number("h")
        reader.skip_string()
        reader.number("b")
        for _ in range(reader.number("i")):
            reader.number("h")
            reader.number("i")
            leaders.append(reader.number("i"))
            reader.numbers()
            in_sync.append(reader.numbers())
    return ClusterView(brokers, leaders, in_sync)
