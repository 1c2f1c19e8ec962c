"""A plain socket that speaks one request and reads one reply, in any version."""

import itertools
import socket
import struct

import pytest

from headrace.wire.codec import decode, encode, write_uvarint

_numbers = itertools.count(1)


class Wire:
    """One connection; `ask(request, version, Response)` returns the decoded response."""

    def __init__(self, port):
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=30)

    def ask(self, request, version, response):
        reply = self.ask_raw(request, version)
        start = 5 if version >= response.FLEXIBLE else 4
        message, end = decode(response, version, reply, start)
        assert end == len(reply), "the reply has bytes left over"
        return message

    def ask_raw(self, request, version):
        correlation = next(_numbers)
        flexible = version >= type(request).FLEXIBLE
        frame = bytearray(struct.pack(">hhi", type(request).API_KEY, version, correlation))
        frame += struct.pack(">h", 4) + b"test"
        if flexible:
            write_uvarint(frame, 0)
        encode(request, version, frame)
        self._socket.sendall(struct.pack(">i", len(frame)) + frame)
        reply = self._read(struct.unpack(">i", self._read(4))[0])
        assert struct.unpack_from(">i", reply)[0] == correlation
        return reply

    def _read(self, size):
        data = bytearray()
        while len(data) < size:
            piece = self._socket.recv(size - len(data))
            assert piece, "the broker closed the connection"
            data += piece
        return bytes(data)

    def close(self):
        self._socket.close()


@pytest.fixture
def wire_to():
    opened = []

    def connect(broker):
        opened.append(Wire(broker.port))
        return opened[-1]

    yield connect
    for wire in opened:
        wire.close()


@pytest.fixture
def wire(broker, wire_to):
    return wire_to(broker)
