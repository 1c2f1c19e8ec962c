"""Real brokers in separate processes, with their cluster's metadata in a real ZooKeeper."""

import contextlib
import os
import signal

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from headrace.testing.process import BrokerProcess
from headrace.testing.zookeeper import ZooKeeperServer
from tests.waiting import until


@pytest.fixture
def brokers(tmp_path):
    """Three brokers, by id."""
    running = {}
    with ZooKeeperServer(tmp_path / "zookeeper") as zookeeper:
        for number in (1, 2, 3):
            settings = {
                "node.id": str(number),
                "zookeeper.connect": f"{zookeeper.connect_string}/headrace",
                "zookeeper.session.timeout.ms": "2000",
                "zookeeper.connection.timeout.ms": "30000",
                "replica.lag.time.max.ms": "2000",
            }
            running[number] = BrokerProcess(tmp_path / f"broker-{number}", settings)
            running[number].start()
        yield running
        for broker in running.values():
            broker.kill()


IMPATIENT = {"socket.timeout.ms": 2000, "log_level": 0}
"""A frozen broker keeps its connections; clients should not wait a minute for it."""


def test_a_leader_that_freezes_is_replaced_and_nothing_acknowledged_is_lost(brokers):
    bootstrap = ",".join(broker.bootstrap for broker in brokers.values())
    admin = AdminClient({"bootstrap.servers": bootstrap, **IMPATIENT})
    admin.create_topics([NewTopic("orders", 1, 3, config={"min.insync.replicas": "2"})])["orders"].result(60)

    def partition():
        while True:
            with contextlib.suppress(KafkaException):
                return admin.list_topics("orders", 5).topics["orders"].partitions[0]

    acknowledged = []

    def send(producer, values):
        for value in values:
            producer.produce(
                "orders",
                value,
                on_delivery=lambda error, sent: acknowledged.append(sent.value()) if not error else None,
            )
        producer.flush(60)

    settings = {
        "bootstrap.servers": bootstrap,
        "enable.idempotence": True,
        "request.timeout.ms": 2000,
        **IMPATIENT,
    }
    producer = Producer(settings)
    send(producer, [b"before %d" % number for number in range(200)])
    frozen = partition().leader
    os.kill(brokers[frozen].process.pid, signal.SIGSTOP)
    send(producer, [b"during %d" % number for number in range(200)])
    until(lambda: partition().leader not in (frozen, -1))
    os.kill(brokers[frozen].process.pid, signal.SIGCONT)
    until(lambda: set(partition().isrs) == {1, 2, 3})
    send(producer, [b"after %d" % number for number in range(200)])
    assert len(acknowledged) == 600

    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "reader", "log_level": 0})
    consumer.assign([TopicPartition("orders", 0, 0)])
    seen = []
    while len(seen) < len(acknowledged):
        message = consumer.poll(30)
        assert message is not None
        assert message.error() is None
        seen.append(message.value())
    consumer.close()
    assert seen == acknowledged
    for broker in brokers.values():
        assert broker.stop() == 0
