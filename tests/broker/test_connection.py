"""A connection whose request cannot be finished: it is closed or goes on, and never just stays silent."""

import asyncio
import contextlib
import socket
import struct
import time

import pytest

from headrace.api.registry import APIS
from headrace.replica.fetching import Fetcher
from headrace.testing.wire import WireClient, frame
from headrace.wire.errors import ErrorCode
from headrace.wire.messages.end_txn import EndTxnRequest, EndTxnResponse
from headrace.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from headrace.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

BUDGET = 64 * 1024


@pytest.fixture
def client(bootstrap):
    with WireClient(bootstrap, timeout=10) as client:
        yield client


def fetch_from_the_end(topic, max_wait_ms):
    asked = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
    return FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=1,
        max_bytes=1 << 20,
        topics=[FetchTopic(topic=topic, partitions=[asked])],
    )


def test_a_waiting_fetch_that_fails_closes_its_connection(client, topic, monkeypatch):
    read, looks = Fetcher.read, []

    def read_once(self, *args, **kwargs):
        looks.append(1)
        if len(looks) > 1:
            raise RuntimeError("a fault that a test put here")
        return read(self, *args, **kwargs)

    monkeypatch.setattr(Fetcher, "read", read_once)
    client.send(fetch_from_the_end(topic, 100), 11)
    assert client.is_closed_by_broker()


@pytest.mark.parametrize("waiting", [(), (0,), (6,), (0, 3, 6), range(7)])
def test_requests_of_one_turn_are_all_answered_though_some_have_to_wait(bootstrap, monkeypatch, waiting):
    async def answer(request):
        if request.transactional_id == "waits":
            await asyncio.sleep(0.05)
        return EndTxnResponse(producer_id=request.producer_id)

    def handle(context, request):
        if request.transactional_id == "blocks":
            time.sleep(0.2)  # while the others arrive
            return EndTxnResponse()
        return answer(request)

    api = APIS[EndTxnRequest.API_KEY]
    api.load()
    monkeypatch.setattr(api, "handle", handle)
    with contextlib.ExitStack() as stack:
        blocker, *clients = (stack.enter_context(WireClient(bootstrap, timeout=10)) for _ in range(8))
        blocker.send(EndTxnRequest("blocks", 1, 0, True), 5)
        sent = []
        for index, client in enumerate(clients):
            for producer_id in range(3):
                request = EndTxnRequest("waits" if index in waiting else "quick", producer_id, 0, True)
                sent.append((client, request, client.send(request, 5)))
        for client, request, number in sent:
            assert client.receive(request, 5, number).producer_id == request.producer_id


def test_an_answer_that_cannot_be_written_closes_the_connection(client, monkeypatch):
    async def too_large(context, request):
        return EndTxnResponse(error_code=1 << 40)

    api = APIS[EndTxnRequest.API_KEY]
    api.load()
    monkeypatch.setattr(api, "handle", too_large)
    client.send(EndTxnRequest("tx", 1, 0, True), 3)
    assert client.is_closed_by_broker()


@pytest.fixture
def frugal(make_broker):
    return make_broker({"queued.max.request.bytes": str(BUDGET)})


def large_request():
    """60 KB for a topic that is not there: answered with an error, but only once it has all arrived."""
    data = PartitionProduceData(index=0, records=b"x" * 60_000)
    topics = [TopicProduceData(name="nowhere", partition_data=[data])]
    return frame(ProduceRequest(acks=1, timeout_ms=1000, topic_data=topics), 9)


def connect(broker):
    return socket.create_connection(("127.0.0.1", broker.port), timeout=10)


def wait_until_taken(broker, size):
    async def taken(node):
        return node.server.budget._taken

    while broker.run(taken) < size:
        time.sleep(0.01)


def assert_answered(peer):
    (size,) = struct.unpack(">i", peer.recv(4, socket.MSG_WAITALL))
    reply = peer.recv(size, socket.MSG_WAITALL)
    assert struct.pack(">h", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION) in reply


def test_requests_that_together_exceed_the_buffers_are_all_answered(frugal):
    request = large_request()
    peers = [connect(frugal) for _ in range(4)]
    for peer in peers:
        peer.sendall(request[:30_000])
    wait_until_taken(frugal, 4 * (32 - 16) * 1024)
    for peer in peers:
        peer.sendall(request[30_000:])
    for peer in peers:
        assert_answered(peer)
        peer.close()


def test_a_peer_that_leaves_while_it_waits_for_buffers_does_not_take_the_next_ones_turn(frugal):
    request = large_request()
    holders = [connect(frugal) for _ in range(2)]
    for holder in holders:
        holder.sendall(request[:-1])
    wait_until_taken(frugal, 2 * 40_000)
    leaving, staying = connect(frugal), connect(frugal)
    for peer in (leaving, staying):
        peer.sendall(request)

    async def waiting(node):
        return len(node.server.budget._waiting)

    while frugal.run(waiting) < 2:
        time.sleep(0.01)
    leaving.close()
    for holder in holders:
        holder.close()
    assert_answered(staying)
    staying.close()
