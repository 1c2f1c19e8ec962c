"""No connection monopolises the loop, and heavy connections yield to small requests."""

import asyncio
import struct
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pytest

from headrace.clock import SystemClock
from headrace.server.log.files import FileHandle, Files
from headrace.server.net.buffers import BufferBudget
from headrace.server.net.connection import Connection
from headrace.server.net.fairness import LONG_TURN, LONGEST_PAUSE, SHORT_TURN, Fairness, Share
from headrace.server.net.reply_queue import ReplyQueue
from headrace.server.net.request_times import RequestStatistics
from headrace.server.replica.turn import Turn

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
    box = ReplyQueue(peer, disk, drained.set, pytest.fail, Share(Fairness()))
    handle = Files().open(str(path))
    box.send_parts([Slice(handle, 0, len(content))])
    assert len(peer.taken) == 4 * SHORT_TURN
    assert box.blocked
    await asyncio.wait_for(drained.wait(), 30)
    assert peer.taken == content


class Server:
    """What a connection needs of its server; it counts the frames."""

    name = "PLAINTEXT"
    max_request_bytes = 100 * MEGABYTE

    def __init__(self, disk):
        self._disk = disk
        self.budget = BufferBudget(64 * MEGABYTE, SystemClock())
        self.turn = Turn()
        self.fairness = Fairness()
        self.requests = RequestStatistics(self.monotonic)
        self.served = 0

    def opened(self, connection):
        return True

    def closed(self, connection):
        pass

    def make_replies(self, connection, transport):
        return ReplyQueue(transport, self._disk, connection.parse, pytest.fail, connection.share)

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
        assert read_this_turn < 2 * LONG_TURN
        turns += 1
        await asyncio.sleep(0)
    assert server.served == 5000
    assert turns > 4


class Time:
    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


def turn(share, seconds=0.001):
    """Move much until the turn is over; how much that was."""
    moved = 0
    while True:
        moved += SHORT_TURN // 4
        share._fairness.now.now += seconds / 4
        if share.spend(SHORT_TURN // 4):
            share.give_way(lambda: None)
            return moved


async def late(fairness, seconds, times=60):
    """The loop takes so long to come to the next turn, many times over."""
    for _ in range(times):
        fairness.next_turn(lambda: None, 0.0)
        fairness.now.now += seconds
        await asyncio.sleep(0)


async def test_who_moves_much_has_long_turns_and_no_pause_while_nobody_asks_little():
    fairness = Fairness(Time())
    one, other = Share(fairness), Share(fairness)
    for share in (one, other, one, other):
        turn(share)  # at first it does not count as heavy
    fairness.light_until = 0.0
    assert [turn(one), turn(other)] == [LONG_TURN, LONG_TURN]
    await late(fairness, 0.002, 20)
    assert [turn(one), turn(other)] == [LONG_TURN, LONG_TURN]
    assert fairness.pause() == 0


async def test_who_moves_much_gives_way_to_who_asks_little_when_the_loop_is_late():
    fairness = Fairness(Time())
    much, little = Share(fairness), Share(fairness)
    turn(much)
    turn(much)
    assert not little.spend(100)
    assert much.hurried
    assert not little.hurried
    assert turn(much) == SHORT_TURN
    assert fairness.pause() == 0  # it is not late
    await late(fairness, 0.00025)
    assert not little.spend(100)
    assert fairness.pause() == 0.002
    await late(fairness, 1.0)
    assert not little.spend(100)
    assert fairness.pause() == LONGEST_PAUSE
    turn(much)
    turn(much)
    assert much.hurried
    fairness.light_until = 0.0  # there was no small request for a while
    assert fairness.pause() == 0
    assert not much.hurried


async def test_who_moves_little_in_a_long_time_has_no_pause():
    fairness = Fairness(Time())
    await late(fairness, 1.0)
    share, began = Share(fairness), asyncio.get_running_loop().time()
    for _ in range(3):
        assert turn(share, seconds=1.0) == SHORT_TURN
    assert not share.spend(1)
    assert fairness.pause() == LONGEST_PAUSE  # for others
    assert asyncio.get_running_loop().time() < began + 1
