"""No connection holds the loop: after a megabyte, read or written, the others have their turn."""

import asyncio
import struct
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pytest

from headrace.broker import connection, outbox
from headrace.broker.buffers import BufferBudget
from headrace.broker.connection import Connection
from headrace.broker.outbox import Outbox
from headrace.log.files import FileHandle, Files
from headrace.replica.turn import Turn

MEGABYTE = 1024 * 1024


class Greedy(asyncio.Transport):
    """A peer that takes whatever it is given, and whether it is being read."""

    def __init__(self):
        super().__init__()
        self.taken = bytearray()
        self.reading = True

    def write(self, data):
        self.taken += data

    def get_write_buffer_size(self):
        return 0

    def pause_reading(self):
        self.reading = False

    def resume_reading(self):
        self.reading = True

    def is_closing(self):
        return False


@dataclass
class Slice:
    handle: FileHandle
    position: int
    size: int


@pytest.fixture
def disk():
    with ThreadPoolExecutor(1) as pool:
        yield pool


async def test_a_long_reply_goes_on_in_later_turns(tmp_path, disk):
    path = tmp_path / "segment"
    content = bytes(range(256)) * (4 * MEGABYTE // 256) + b"the end"
    path.write_bytes(content)
    peer = Greedy()
    drained = asyncio.Event()
    box = Outbox(peer, disk, drained.set, pytest.fail)
    handle = Files().open(str(path))
    box.send_parts([Slice(handle, 0, len(content))])
    assert len(peer.taken) == outbox.TURN
    assert box.blocked
    await asyncio.wait_for(drained.wait(), 30)
    assert peer.taken == content


class Server:
    """What a connection needs of its server; it counts the frames."""

    name = "PLAINTEXT"
    max_request_bytes = 100 * MEGABYTE

    def __init__(self, disk):
        self._disk = disk
        self.budget = BufferBudget(64 * MEGABYTE)
        self.turn = Turn()
        self.served = 0

    def opened(self, connection):
        return True

    def closed(self, connection):
        pass

    def make_outbox(self, connection, transport):
        return Outbox(transport, self._disk, connection.parse, pytest.fail)

    def dispatch(self, connection, frame):
        self.served += 1

    def monotonic(self):
        return 0.0


async def test_a_flood_of_requests_is_read_in_turns(disk):
    server, peer = Server(disk), Greedy()
    client = Connection(server)
    client.connection_made(peer)
    frame = struct.pack(">i", 1000) + bytes(1000)
    flood = frame * 5000
    position = turns = 0
    while position < len(flood):
        read_this_turn = 0
        while peer.reading and position < len(flood):
            room = client.get_buffer(-1)
            piece = flood[position : position + len(room)]
            room[: len(piece)] = piece
            client.buffer_updated(len(piece))
            position += len(piece)
            read_this_turn += len(piece)
        assert read_this_turn < 2 * connection.TURN
        turns += 1
        await asyncio.sleep(0)
    assert server.served == 5000
    assert turns > 4
