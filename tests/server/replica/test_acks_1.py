"""acks=1 on brokers in processes of their own: a leader killed with `kill -9` takes with it at most what lay between HW and LEO."""

import os
import signal

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from headrace.testing.process import BrokerProcess
from headrace.testing.zookeeper import ZooKeeperServer
from headrace.wire.batch import iterate_batches
from headrace.wire.records import decode_records
from tests.server.clients import create
from tests.waiting import until

TOPIC = "orders"
SESSION_MS = 10_000
"""Followers stand still for a part of it, and must not be taken for dead."""


@pytest.fixture
def brokers(tmp_path):
    """Three brokers, by id."""
    running = {}
    with ZooKeeperServer(tmp_path / "zookeeper") as zookeeper:
        for number in (1, 2, 3):
            settings = {
                "node.id": str(number),
                "zookeeper.connect": f"{zookeeper.connect_string}/headrace",
                "zookeeper.session.timeout.ms": str(SESSION_MS),
            }
            running[number] = BrokerProcess(tmp_path / f"broker-{number}", settings)
            running[number].start()
        yield running
        for broker in running.values():
            broker.kill()


def bootstrap(brokers):
    return ",".join(broker.bootstrap for broker in brokers.values())


def state(brokers):
    """(the leader, the ISR)"""
    impatient = {"bootstrap.servers": bootstrap(brokers), "socket.timeout.ms": 5000, "log_level": 0}
    found = AdminClient(impatient).list_topics(TOPIC, 60).topics[TOPIC].partitions[0]
    return found.leader, set(found.isrs)


def send(producer, values):
    """Each on its own; returns those that were acknowledged."""
    acknowledged = []
    for value in values:
        producer.produce(
            TOPIC,
            value,
            on_delivery=lambda error, sent: acknowledged.append(sent.value()) if not error else None,
        )
        assert producer.flush(60) == 0
    return acknowledged


def high_watermark(brokers):
    consumer = Consumer({"bootstrap.servers": bootstrap(brokers), "group.id": "r", "log_level": 0})
    _, end = consumer.get_watermark_offsets(TopicPartition(TOPIC, 0), timeout=60)
    consumer.close()
    return end


def values_in(broker):
    """What its log holds, in order: as many as its log end offset says, since nothing was ever deleted."""
    found = []
    for segment in sorted((broker.data / f"{TOPIC}-0").glob("*.log")):
        data = memoryview(segment.read_bytes())
        for position, header in iterate_batches(data):
            found += [
                bytes(each.value) for each in decode_records(data[position : position + header.size], header)
            ]
    return found


def test_a_killed_leader_takes_with_it_at_most_what_was_not_replicated(brokers):
    create(bootstrap(brokers), TOPIC, 3)
    until(lambda: state(brokers)[1] == {1, 2, 3}, "all are in sync")
    producer = Producer({"bootstrap.servers": bootstrap(brokers), "acks": "1", "log_level": 0})
    replicated = send(producer, [b"replicated %d" % number for number in range(50)])
    until(lambda: high_watermark(brokers) == len(replicated) == 50, "everything is committed")

    leader, _ = state(brokers)
    followers = [broker for number, broker in brokers.items() if number != leader]
    for follower in followers:
        os.kill(follower.process.pid, signal.SIGSTOP)
    unreplicated = send(producer, [b"unreplicated %d" % number for number in range(30)])
    assert len(unreplicated) == 30  # acks=1 needs no follower.
    committed, end = high_watermark(brokers), len(values_in(brokers[leader]))
    assert end == 80
    brokers[leader].kill()
    for follower in followers:
        os.kill(follower.process.pid, signal.SIGCONT)

    left = {number: broker for number, broker in brokers.items() if number != leader}
    until(lambda: state(left)[0] in left, "another leads")
    assert send(Producer({"bootstrap.servers": bootstrap(left), "acks": "all", "log_level": 0}), [b"later"])
    *survived, later = values_in(brokers[state(left)[0]])
    assert later == b"later"
    acknowledged = [*replicated, *unreplicated]
    assert survived == acknowledged[: len(survived)]
    lost = len(acknowledged) - len(survived)
    assert 0 < lost <= end - committed

    # The old leader gives up what the new one does not have.
    brokers[leader].start()
    until(lambda: state(brokers)[1] == {1, 2, 3}, "all are in sync again")
    for broker in brokers.values():
        assert values_in(broker) == [*survived, b"later"]
