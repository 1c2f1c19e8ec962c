"""Large requests cost only what their bytes cost, and those that stop half way do not delay others."""

import asyncio
import contextlib
import os
import socket
import struct
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from headrace.clock import SystemClock
from headrace.server.net.buffers import PATIENCE_SECONDS, BufferBudget
from headrace.server.net.connection import Connection
from headrace.server.net.fairness import Fairness
from headrace.server.net.receive_buffer import SMALL, STEP
from headrace.server.net.reply_queue import ReplyQueue
from headrace.server.net.request_times import RequestStatistics
from headrace.server.replica.turn import Turn
from headrace.testing.wire import WireClient, frame
from headrace.wire.errors import ErrorCode
from headrace.wire.messages.api_versions import ApiVersionsRequest
from tests.server.requests import produce_request

MEGABYTE = 1024 * 1024
BUDGET = 64 * 1024


def request_of(size):
    """A produce for a topic that is not there: answered with an error, but only once it has all arrived."""
    return frame(produce_request("nowhere", b"x" * size, acks=1), 9)


def connect(broker):
    return socket.create_connection(("127.0.0.1", broker.port), timeout=60)


def wait_for(broker, condition):
    async def is_met(node):
        return condition(node.acceptors.budget)

    while not broker.run(is_met):
        time.sleep(0.01)


def assert_answered(peer):
    (size,) = struct.unpack(">i", peer.recv(4, socket.MSG_WAITALL))
    reply = peer.recv(size, socket.MSG_WAITALL)
    assert struct.pack(">h", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION) in reply


def send_in_background(peer, data):
    """As much of it as the broker takes, for as long as it keeps the connection."""

    def send():
        with contextlib.suppress(OSError):
            peer.sendall(data)

    threading.Thread(target=send, daemon=True).start()


class Peer(asyncio.Transport):
    """Accepts every call."""

    def __init__(self):
        super().__init__()
        self.reading = True

    def write(self, data):
        pass

    def get_write_buffer_size(self):
        return 0

    def pause_reading(self):
        self.reading = False

    def resume_reading(self):
        self.reading = True

    def is_closing(self):
        return False

    def abort(self):
        pass


class Server:
    """What a connection needs of its server; it keeps how large the frames were, and what the last one held."""

    name = "PLAINTEXT"
    max_request_bytes = 104_857_600

    def __init__(self, disk, limit=256 * MEGABYTE):
        self._disk = disk
        self.budget = BufferBudget(limit, SystemClock())
        self.turn = Turn()
        self.fairness = Fairness()
        self.requests = RequestStatistics(self.monotonic)
        self.sizes = []
        self.last = b""

    def opened(self, connection):
        return True

    def closed(self, connection):
        pass

    def make_replies(self, connection, transport):
        return ReplyQueue(transport, self._disk, connection.drained, pytest.fail, connection.share)

    def dispatch(self, connection, frame):
        self.sizes.append(len(frame))
        self.last = bytes(frame[:100]) + bytes(frame[-100:])

    def monotonic(self):
        return 0.0

    def connect(self):
        connection, peer = Connection(self), Peer()
        connection.connection_made(peer)
        return connection, peer


@pytest.fixture
def server():
    with ThreadPoolExecutor(1) as disk:
        yield Server(disk)


async def feed(connection, peer, data):
    """All of it, as the transport would: into the room there is, while it is read."""
    position = 0
    while position < len(data):
        if not peer.reading:
            await asyncio.sleep(0)
            continue
        room = connection.get_buffer(-1)
        assert len(room)
        piece = data[position : position + len(room)]
        room[: len(piece)] = piece
        connection.buffer_updated(len(piece))
        position += len(piece)


def framed(size):
    start, end = os.urandom(100), os.urandom(100)
    return struct.pack(">i", size) + start + bytes(size - 200) + end, start + end


@pytest.mark.parametrize("size", [100_000, 2_000_000, 100_000_000])
async def test_a_request_of_any_size_arrives_with_a_few_bytes_copied(server, size):
    connection, peer = server.connect()
    data, ends = framed(size)
    await feed(connection, peer, data)
    assert server.sizes == [size]
    assert server.last == ends
    assert connection._inbox.copied < 2 * min(size, STEP)


async def test_requests_of_growing_size_on_one_connection_are_copied_less_than_once(server):
    connection, peer = server.connect()
    stream, sizes = b"", [size * 50_000 for size in range(1, 40)]
    for size in sizes:
        data, ends = framed(size)
        stream += data
    await feed(connection, peer, stream)
    assert server.sizes == sizes
    assert server.last == ends
    assert connection._inbox.copied < len(stream)


async def test_small_requests_behind_one_that_waits_are_not_moved_again_for_each(server):
    connection, peer = server.connect()
    await feed(connection, peer, framed(STEP - 4)[0])  # which leaves a large buffer behind
    dispatch, server.sizes = server.dispatch, []

    def mute(connection, frame):
        dispatch(connection, frame)
        connection.mute()

    server.dispatch = mute
    stream = framed(1000)[0] * 5000
    position = 0
    before = connection._inbox.copied
    while len(server.sizes) < 5000:
        while peer.reading and position < len(stream):
            room = connection.get_buffer(-1)
            piece = stream[position : position + len(room)]
            room[: len(piece)] = piece
            connection.buffer_updated(len(piece))
            position += len(piece)
        connection.unmute()
        await asyncio.sleep(0)
    assert connection._inbox.copied - before <= len(stream)


async def test_a_length_that_is_only_announced_takes_no_memory(server):
    clients = [server.connect() for _ in range(100)]
    for connection, peer in clients:
        await feed(connection, peer, struct.pack(">i", 100_000_000) + bytes(SMALL))
        assert len(connection.get_buffer(-1)) <= SMALL
    assert server.budget.taken == 100 * SMALL


def test_a_client_is_served_while_the_largest_request_of_another_arrives(broker):
    request = request_of(100 * MEGABYTE - 1000)
    with connect(broker) as large, WireClient(broker.bootstrap, timeout=60) as small:
        position, answers = 0, 0
        while position < len(request):
            position += large.send(request[position : position + 4 * MEGABYTE])
            small.call(ApiVersionsRequest(), 0)
            answers += 1
        assert_answered(large)
        assert answers > 20


def test_a_request_of_a_megabyte_proceeds_beside_four_large_ones_that_stopped_half_way(make_broker):
    broker = make_broker({"queued.max.request.bytes": str(32 * MEGABYTE)})
    large, live = request_of(12 * MEGABYTE), request_of(MEGABYTE)
    stalled = [connect(broker) for _ in range(4)]
    for peer in stalled:
        send_in_background(peer, large[:-100])
    wait_for(broker, lambda budget: budget.waiting)
    for _ in range(20):
        with connect(broker) as peer:
            peer.sendall(live)
            assert_answered(peer)
    for peer in stalled:
        peer.close()


@pytest.fixture
def frugal(make_broker):
    return make_broker({"queued.max.request.bytes": str(BUDGET)})


def test_requests_that_together_exceed_the_buffers_are_all_answered(frugal):
    request = request_of(60_000)
    peers = [connect(frugal) for _ in range(6)]
    for peer in peers:
        peer.sendall(request[:30_000])
    wait_for(frugal, lambda budget: budget.waiting)
    for peer in peers:
        peer.sendall(request[30_000:])
    for peer in peers:
        assert_answered(peer)
        peer.close()
    wait_for(frugal, lambda budget: budget.taken <= BUDGET // 2)


def test_a_peer_that_leaves_while_it_waits_for_buffers_does_not_take_the_next_ones_turn(frugal):
    request = request_of(60_000)
    holder = connect(frugal)
    holder.sendall(request[:-1])
    wait_for(frugal, lambda budget: budget.taken > 40_000)
    leaving, staying = connect(frugal), connect(frugal)
    for peer in (leaving, staying):
        peer.sendall(request)
    wait_for(frugal, lambda budget: budget.waiting == 2)
    leaving.close()
    holder.close()
    assert_answered(staying)
    staying.close()


@pytest.mark.parametrize("trickles", [False, True])
def test_one_that_stops_half_way_is_cut_off_when_others_wait_for_its_memory(frugal, caplog, trickles):
    request = request_of(60_000)
    holder, live = connect(frugal), connect(frugal)
    holder.sendall(request[:50_000])
    wait_for(frugal, lambda budget: budget.taken > 40_000)
    frugal.clock.advance(10 * PATIENCE_SECONDS)
    live.sendall(request)
    wait_for(frugal, lambda budget: budget.waiting == 1)
    if trickles:
        holder.sendall(request[50_000:50_001])
    wait_until_arrived(frugal, 50_000 + trickles)
    frugal.clock.advance(PATIENCE_SECONDS)
    assert_answered(live)
    assert "its request stopped arriving" in caplog.text
    live.close()
    holder.close()


def wait_until_arrived(broker, size):
    async def arrived(node):
        return any(each._inbox.end - each._inbox.start == size for each in node.acceptors.connections)

    while not broker.run(arrived):
        time.sleep(0.01)


def test_one_that_is_slow_is_left_alone_while_nobody_waits(frugal):
    request = request_of(60_000)
    with connect(frugal) as slow:
        for position in range(0, len(request), 20_000):
            slow.sendall(request[position : position + 20_000])
            frugal.clock.advance(10 * PATIENCE_SECONDS)
        assert_answered(slow)
