"""Brokers whose logins among themselves end: they change over to new connections in time, and nobody notices."""

import asyncio
import logging
from functools import partial

import pytest
from confluent_kafka import Producer

from headrace.testing.broker import BrokerThread
from headrace.testing.clock import MovableClock
from headrace.testing.cluster import Cluster
from headrace.wire.messages.metadata import MetadataRequest
from tests.server.requests import fetch_request
from tests.waiting import until

SESSION = 60.0
PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
SETTINGS = {
    "listeners": "OUTSIDE://127.0.0.1:0,INSIDE://127.0.0.1:0",
    "listener.security.protocol.map": "OUTSIDE:PLAINTEXT,INSIDE:SASL_PLAINTEXT",
    "inter.broker.listener.name": "INSIDE",
    "sasl.enabled.mechanisms": "PLAIN",
    "sasl.mechanism.inter.broker.protocol": "PLAIN",
    "listener.name.inside.plain.sasl.jaas.config": (
        f'{PLAIN} required username="broker" password="x" user_broker="x";'
    ),
    "listener.name.inside.connections.max.reauth.ms": int(SESSION * 1000),
    # The clock jumps; only the sessions should notice.
    "replica.lag.time.max.ms": 3_600_000,
    "connections.max.idle.ms": 3_600_000,
    "replica.socket.timeout.ms": 3_600_000,
    "request.timeout.ms": 3_600_000,
    "socket.connection.setup.timeout.ms": 3_600_000,
}


@pytest.fixture
def clock():
    return MovableClock()


@pytest.fixture
def cluster(tmp_path, clock):
    with Cluster(partial(BrokerThread, clock=clock), tmp_path, 3, SETTINGS) as cluster:
        until(lambda: all(len(broker.run(brokers)) == 3 for broker in cluster), "a cluster of three")
        yield cluster


async def brokers(node):
    return [broker for broker in node.cluster.image.brokers.values() if not broker.fenced]


def test_replication_goes_on_over_many_sessions_and_loses_no_connection(cluster, clock, caplog):
    topic = cluster.create_topic(partitions=3, config={"min.insync.replicas": 3})
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "acks": "all"})

    def produce():
        """Acknowledged by all three: every follower has fetched since the clock moved."""
        for partition in range(3):
            producer.produce(topic, b"hello", partition=partition)
        assert producer.flush(90) == 0

    produce()
    caplog.set_level(logging.INFO)
    caplog.clear()
    for _ in range(4):
        clock.advance(SESSION * 0.9)
        produce()
    # A topic more makes the brokers use the connections that they share, which have been idle over several sessions.
    cluster.create_topic(config={"min.insync.replicas": 3})
    complaints = ("is over and it did not log in again", "was lost", "is closed", "following broker")
    assert [each for each in caplog.messages if any(words in each for words in complaints)] == []


def test_a_request_under_way_is_answered_though_a_new_connection_has_taken_over(cluster, clock):
    topic = cluster.create_topic()
    until(lambda: leader_of(cluster[1], topic) is not None)
    leader = leader_of(cluster[1], topic)
    peer = next(cluster[number] for number in (1, 2, 3) if number != leader)

    async def ask(node):
        """The connection that is used."""
        assert (await node.peers.call(leader, MetadataRequest([]), 9)).brokers
        return node.peers._connections[leader]

    async def ask_and_wait(node):
        request = fetch_request(topic, max_wait_ms=int(SESSION * 1500))
        return asyncio.create_task(node.peers.call(leader, request, 12, timeout=3600))

    async def answered(node):
        return (await waiting).error_code

    before = peer.run(ask)
    waiting = peer.run(ask_and_wait)
    clock.advance(SESSION * 0.9)
    after = peer.run(ask)
    assert after is not before
    assert before.open, "it still waits for a reply"
    clock.advance(SESSION * 2)  # Longer than the request waits.
    assert peer.run(answered) == 0
    until(lambda: not before.open)


def leader_of(broker, topic):
    async def look(node):
        found = node.cluster.image.topics.get(topic)
        return found.partitions[0].leader if found is not None else None

    return broker.run(look)
