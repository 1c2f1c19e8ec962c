"""A plain socket that sends one request and reads one reply, in any version."""

import pytest

from headrace.testing.wire import WireClient
from headrace.wire.codec import decode
from headrace.wire.frames import API_VERSIONS_KEY, reply_number


class Wire(WireClient):
    """One connection; `ask(request, version, Response)` returns the decoded response, with nothing left over."""

    def __init__(self, port):
        super().__init__(f"127.0.0.1:{port}")

    def ask(self, request, version, response):
        reply = self.ask_raw(request, version)
        flexible = version >= response.FLEXIBLE and response.API_KEY != API_VERSIONS_KEY
        message, end = decode(response, version, reply, 5 if flexible else 4)
        assert end == len(reply), "the reply has bytes left over"
        return message

    def ask_raw(self, request, version):
        number = self.send(request, version)
        reply = self.receive_frame()
        assert reply_number(reply) == number
        return reply

    def close(self):
        self.socket.close()


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
