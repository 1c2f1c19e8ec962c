"""Fetch sessions: what does not fit into one reply comes in the next ones, and no partition is forgotten."""

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from headrace.wire.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic

VERSION = 11  # sessions, topics by name


@pytest.fixture
def filled(bootstrap):
    """A topic of three partitions with a batch of some kilobytes in each."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic("filled", 3)])["filled"].result(30)
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 50})
    for number in range(300):
        producer.produce("filled", b"x" * 100, partition=number % 3)
    assert producer.flush(30) == 0
    return "filled"


def fetch(wire, session, epoch, topics, max_bytes):
    request = FetchRequest(
        max_wait_ms=200,
        min_bytes=1,
        max_bytes=max_bytes,
        session_id=session,
        session_epoch=epoch,
        topics=topics,
    )
    response = wire.ask(request, VERSION, FetchResponse)
    assert response.error_code == 0
    found = {
        part.partition_index: part.high_watermark
        for topic in response.responses
        for part in topic.partitions
        if part.records
    }
    return response.session_id, found


def test_partitions_left_out_for_want_of_room_come_in_the_following_replies(wire, filled):
    asked = [FetchPartition(partition=index, partition_max_bytes=1024) for index in range(3)]
    session, served = fetch(wire, 0, 0, [FetchTopic(topic=filled, partitions=asked)], max_bytes=1)
    for epoch in (1, 2):
        # Partitions that were served are fetched from their new offset; the others are not named, because the session
        # knows them.
        done = [
            FetchPartition(partition=index, fetch_offset=high_watermark, partition_max_bytes=1024)
            for index, high_watermark in served.items()
        ]
        _, found = fetch(wire, session, epoch, [FetchTopic(topic=filled, partitions=done)], max_bytes=1)
        assert len(found) == 1, "one partition has room in each reply"
        served |= found
    assert sorted(served) == [0, 1, 2]
