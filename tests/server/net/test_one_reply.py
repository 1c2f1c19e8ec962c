"""One request, one reply, in order: whatever a request waits for, and whatever happens while it waits."""

import struct
import threading

import pytest

from headrace.server.api.fetch_states import TRANSITIONS, Event, State
from headrace.server.api.registry import APIS
from headrace.server.log.partition import PartitionLog
from headrace.testing.wire import WireClient, batch
from headrace.wire.messages.api_versions import ApiVersionsRequest
from headrace.wire.messages.end_txn import EndTxnRequest
from tests.server.requests import fetch_request

LONG_WAIT = 60_000
IN_A_FILE = b"x" * 4000
"""Larger than a batch that the log keeps in memory: its reply is a slice of a file."""


def long_poll(topic, session_epoch=-1):
    return fetch_request(topic, max_wait_ms=LONG_WAIT, session_epoch=session_epoch)


def partition_of(node, topic):
    return node.engines.replicas.find(topic.encode(), 0, False)


def wait_until_watched(broker, topic):
    async def watched(node):
        return bool(partition_of(node, topic)._watchers)

    while not broker.run(watched):
        pass


def assert_next_replies_are(client, *numbers):
    for number in numbers:
        assert struct.unpack_from(">i", client.receive_frame())[0] == number
    # Whatever else the broker has said on this connection comes before the reply to this one.
    probe = client.send(ApiVersionsRequest(), 0)
    assert struct.unpack_from(">i", client.receive_frame())[0] == probe


@pytest.mark.parametrize("session_epoch", [-1, 0])
def test_a_fetch_whose_time_is_up_when_its_record_arrives_is_answered_once(broker, topic, session_epoch):
    async def append_and_expire(node):
        partition_of(node, topic).append(memoryview(bytearray(batch(IN_A_FILE))))
        broker.clock.advance(LONG_WAIT / 1000)

    with WireClient(broker.bootstrap) as client:
        fetch = client.send(long_poll(topic, session_epoch), 11)
        wait_until_watched(broker, topic)
        broker.run(append_and_expire)
        assert_next_replies_are(client, fetch)


@pytest.mark.sources("PartitionLog.read")
def test_a_record_that_arrives_while_a_thread_takes_the_first_look_is_told_at_once(
    broker, topic, monkeypatch
):
    read, has_looked, may_return = PartitionLog.read, threading.Event(), threading.Event()

    def cold(self, *args, nowait=False, **kwargs):
        if nowait and not has_looked.is_set():
            raise BlockingIOError
        found = read(self, *args, nowait=nowait, **kwargs)
        if not nowait:
            has_looked.set()
            may_return.wait()
        return found

    async def append(node):
        partition_of(node, topic).append(memoryview(bytearray(batch(b"arrives meanwhile"))))

    monkeypatch.setattr(PartitionLog, "read", cold)
    request = long_poll(topic)
    request.max_wait_ms = 2**31 - 1
    with WireClient(broker.bootstrap) as client:
        fetch = client.send(request, 11)
        has_looked.wait()
        broker.run(append)
        may_return.set()
        (part,) = client.receive(request, 11, fetch).responses[0].partitions
        assert b"arrives meanwhile" in part.records


def test_a_second_reply_never_reaches_the_client(broker, monkeypatch, caplog):
    def reply_twice(context, frame, position):
        for _ in range(2):
            context.reply(struct.pack(">ii", 4, context.correlation_id))

    api = APIS[EndTxnRequest.API_KEY]
    api.load()
    monkeypatch.setattr(api, "handle_frame", reply_twice)
    with WireClient(broker.bootstrap) as client:
        client.send(EndTxnRequest("tx", 1, 0, True), 3)
        received = b""
        try:
            while piece := client.socket.recv(100):
                received += piece
        except ConnectionError:
            pass  # Cut off, and perhaps before the first reply was out.
    assert received in (b"", struct.pack(">ii", 4, 1))
    assert "request 1 of wire-test was answered twice" in caplog.text


def test_nothing_leads_from_an_answer_to_another():
    for over in (State.ANSWERED, State.FAILED):
        assert Event.ENOUGH not in TRANSITIONS[over]
        assert set(TRANSITIONS[over].values()) <= {State.ANSWERED, State.FAILED}


def test_a_fetch_in_any_state_can_still_be_answered_or_fail():
    for state in State:
        reached, more = set(), {state}
        while more:
            reached |= more
            more = {after for each in more for after in TRANSITIONS[each].values()} - reached
        assert State.FAILED in reached
        assert state is State.FAILED or State.ANSWERED in reached
