"""What leaves a connection when the files behind it change on the way."""

import asyncio
import contextlib
import os
import socket
from concurrent.futures import ThreadPoolExecutor

import pytest
import uvloop

from headrace.server.log.files import Files
from headrace.server.log.slice import LogSlice
from headrace.server.net.fairness import SHORT_TURN, Fairness, Share
from headrace.server.net.reply_queue import ReplyQueue


class Cut(Exception):
    """The connection was given up."""


@pytest.fixture
def disk():
    with ThreadPoolExecutor(1) as executor:
        yield executor


@contextlib.asynccontextmanager
async def queue_to_a_peer(disk, failures, drained=lambda: None):
    """A reply queue on a real socket; a failure cuts the connection, as the server does."""
    ours, theirs = socket.socketpair()
    loop = asyncio.get_running_loop()
    transport, _ = await loop.create_connection(asyncio.Protocol, sock=ours)

    def failed(error):
        if len(failures) == 3:
            raise Cut  # It asks for the same bytes again and again.
        failures.append(error)
        transport.abort()

    try:
        yield ReplyQueue(transport, disk, drained, failed, Share(Fairness()))
    finally:
        transport.abort()
        theirs.close()


async def test_a_slice_whose_file_was_cut_meanwhile_ends_the_connection_once(tmp_path, disk):
    path = tmp_path / "segment.log"
    path.write_bytes(b"x" * 1000)
    handle = Files().open(str(path))
    failures = []
    async with queue_to_a_peer(disk, failures) as queue:
        path.write_bytes(b"x" * 100)
        queue.send_parts([LogSlice(handle, 0, 1000, 0, 1)])
        assert [str(error) for error in failures] == ["a log file is shorter than its index says"]


class NeverCached:
    """A file whose pages are never in memory."""

    def __init__(self, handle):
        self._handle = handle

    def read_into(self, buffer, position, *, nowait=False):
        if nowait:
            raise BlockingIOError
        return self._handle.read_into(buffer, position)


async def test_the_same_when_a_thread_finds_it_out(tmp_path, disk):
    path = tmp_path / "segment.log"
    path.write_bytes(b"x" * 100)
    file = NeverCached(Files().open(str(path)))
    failures = []
    async with queue_to_a_peer(disk, failures) as queue:
        queue.send_parts([LogSlice(file, 0, 1000, 0, 1)])
        loop = asyncio.get_running_loop()
        for _ in range(
            5
        ):  # The one thread reads in order: whatever was asked for is read before this returns.
            await loop.run_in_executor(disk, int)
        assert len(failures) == 1


async def test_a_reply_that_ends_in_nothing_drains_all_the_same(tmp_path, disk):
    path = tmp_path / "segment.log"
    path.write_bytes(b"x" * 1000)
    file = NeverCached(Files().open(str(path)))
    drained = asyncio.Event()
    async with queue_to_a_peer(disk, [], drained.set) as queue:
        queue.send_parts([LogSlice(file, 0, 1000, 0, 1), b""])
        await asyncio.wait_for(drained.wait(), 30)
        assert not queue.blocked


class Sent:
    """A file that counts what the kernel sent of it."""

    def __init__(self, handle):
        self._handle = handle
        self.by_the_kernel = 0

    def read_into(self, buffer, position, *, nowait=False):
        return self._handle.read_into(buffer, position, nowait=nowait)

    def is_cached(self, position, size):
        return self._handle.is_cached(position, size)

    def send_to(self, socket, position, size):
        count = self._handle.send_to(socket, position, size)
        self.by_the_kernel += count
        return count


@pytest.mark.parametrize("others_ask_little", [True, False])
async def test_who_moves_much_while_others_ask_little_gets_files_from_the_kernel(
    tmp_path, disk, others_ask_little
):
    content = os.urandom(100_000)
    (tmp_path / "segment.log").write_bytes(content)
    file = Sent(Files().open(str(tmp_path / "segment.log")))
    fairness = Fairness(lambda: 0.01)
    share = Share(fairness)
    share.spend(SHORT_TURN)
    if others_ask_little:
        Share(fairness).spend(100)
    ours, theirs = socket.socketpair()
    theirs.setblocking(False)
    loop = asyncio.get_running_loop()
    transport, _ = await loop.create_connection(asyncio.Protocol, sock=ours)
    box = ReplyQueue(transport, disk, lambda: None, pytest.fail, share, socket=ours.fileno())
    box.send_parts([b"head", LogSlice(file, 0, 100_000, 0, 1), b"tail"])
    received = b""
    while len(received) < 100_008:
        received += await loop.sock_recv(theirs, 70_000)
    assert received == b"head" + content + b"tail"
    assert file.by_the_kernel == (100_000 if others_ask_little else 0)
    transport.abort()
    theirs.close()


async def test_a_file_is_sent_by_the_kernel_to_a_peer_that_reads_slowly(tmp_path, disk):
    content = os.urandom(3_000_000)
    (tmp_path / "segment.log").write_bytes(content)
    handle = Files().open(str(tmp_path / "segment.log"))
    ours, theirs = socket.socketpair()
    theirs.setblocking(False)
    loop, drained = asyncio.get_running_loop(), asyncio.Event()

    class Peer(asyncio.Protocol):
        pause_writing = staticmethod(lambda: box.pause())
        resume_writing = staticmethod(lambda: box.resume())

    transport, _ = await loop.create_connection(Peer, sock=ours)
    box = ReplyQueue(transport, disk, drained.set, pytest.fail, Share(Fairness()), socket=ours.fileno())
    parts = [b"head", LogSlice(handle, 0, 1_000_000, 0, 1), b"middle"]
    parts += [LogSlice(handle, 1_000_000, 1_990_000, 0, 1), LogSlice(handle, 2_990_000, 10_000, 0, 1)]
    box.send_parts(parts)
    assert box.blocked
    received = b""
    while len(received) < 3_000_010:
        received += await loop.sock_recv(theirs, 70_000)
    assert received == b"head" + content[:1_000_000] + b"middle" + content[1_000_000:]
    await asyncio.wait_for(drained.wait(), 30)
    transport.abort()
    theirs.close()


def test_an_answer_for_a_peer_that_has_gone_is_dropped(disk):
    async def answer_too_late():
        ours, theirs = socket.socketpair()
        lost = asyncio.get_running_loop().create_future()

        class Peer(asyncio.Protocol):
            def connection_lost(self, error):
                queue.close()
                lost.set_result(None)

        transport, _ = await asyncio.get_running_loop().create_connection(Peer, sock=ours)
        queue = ReplyQueue(transport, disk, lambda: None, lambda error: None, Share(Fairness()))
        theirs.close()
        await lost
        queue.send(b"reply")
        queue.send_parts([b"reply"])
        queue.send_parts([b"re", b"ply"])

    uvloop.run(answer_too_late())


def test_a_place_takes_one_reply_and_a_second_ends_the_connection(disk):
    async def resolve_twice():
        failures = []
        async with queue_to_a_peer(disk, failures) as queue:
            first, second = queue.reserve(), queue.reserve()
            queue.resolve(second, [b"2"])
            queue.resolve(second, [b"2 again"])
            queue.resolve(first, [b"1"])
        assert failures == ["a request was answered twice; the log above says how"]

    asyncio.run(resolve_twice())
