"""A group's coordinator dies: another broker takes over with everything that was acknowledged."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from headrace.testing.cluster import Cluster, processes
from headrace.testing.process import BrokerProcess
from tests.waiting import until

SETTINGS = {
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "500",
    "group.consumer.heartbeat.interval.ms": "200",
    "group.consumer.min.heartbeat.interval.ms": "200",
    "offsets.topic.num.partitions": "3",
    "offsets.topic.replication.factor": "3",
    "replica.lag.time.max.ms": "3000",
}


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster[BrokerProcess]]:
    cluster = processes(tmp_path, 3, SETTINGS)
    yield cluster
    cluster.stop()


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_the_next_coordinator_has_every_acknowledged_commit_and_the_group_goes_on(
    cluster: Cluster[BrokerProcess], protocol: str
) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    admin.create_topics([NewTopic("work", 2, 3)])["work"].result(30)
    settings = {
        "bootstrap.servers": cluster.bootstrap,
        "group.id": "workers",
        "group.protocol": protocol,
        "enable.auto.commit": False,
        "auto.offset.reset": "earliest",
    }
    if protocol == "classic":
        settings |= {"session.timeout.ms": 10_000, "heartbeat.interval.ms": 200}
    consumer = Consumer(settings)
    consumer.subscribe(["work"])
    until(lambda: consumer.poll(0.05) is None and len(consumer.assignment()) == 2, "the assignment")
    acknowledged = 0
    for offset in range(1, 30):
        consumer.commit(offsets=[TopicPartition("work", 0, offset)], asynchronous=False)
        acknowledged = offset
    coordinator = admin.describe_consumer_groups(["workers"])["workers"].result(30).coordinator.id
    cluster[coordinator].kill()
    try:
        moved = [
            AdminClient({"bootstrap.servers": cluster[n].bootstrap}) for n in (1, 2, 3) if n != coordinator
        ]

        def elsewhere() -> bool:
            consumer.poll(0.05)
            try:
                described = moved[0].describe_consumer_groups(["workers"])["workers"].result(10)
            except KafkaException:
                return False
            return described.coordinator.id != coordinator

        until(elsewhere, "another coordinator")

        def commits() -> bool:
            consumer.poll(0.05)
            try:
                consumer.commit(offsets=[TopicPartition("work", 1, 7)], asynchronous=False)
            except KafkaException:
                return False
            return True

        until(commits, "a commit at the new coordinator")
        partitions = [TopicPartition("work", 0), TopicPartition("work", 1)]
        assert [each.offset for each in consumer.committed(partitions, timeout=30)] == [acknowledged, 7]
        consumer.close()
    finally:
        cluster[coordinator].start()
