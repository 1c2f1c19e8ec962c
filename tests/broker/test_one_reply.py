"""One request, one reply, in order: whatever a request waits for, and whatever happens while it waits."""

import struct

import pytest

from headrace.testing.wire import WireClient, batch
from headrace.wire.messages.api_versions import ApiVersionsRequest
from headrace.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic

LONG_WAIT = 60_000
IN_A_FILE = b"x" * 4000
"""Larger than a batch that the log keeps in memory: its reply is a slice of a file."""


def long_poll(topic, session_epoch=-1):
    asked = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
    return FetchRequest(
        max_wait_ms=LONG_WAIT,
        min_bytes=1,
        max_bytes=1 << 20,
        session_epoch=session_epoch,
        topics=[FetchTopic(topic=topic, partitions=[asked])],
    )


def partition_of(node, topic):
    return node.services.replicas.find(topic.encode(), 0, False)


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
