"""Leader and coordinator are killed with -9 while members work: nothing that was acknowledged comes again, and nothing is lost."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import AcknowledgeType, KafkaException, Producer, ShareConsumer, TopicCollection
from confluent_kafka.admin import AdminClient, NewTopic

from headrace.server.cluster.ids import parse_id
from headrace.server.coordinator.partitioning import partition_for
from headrace.server.share.coordinator.coordinator import coordinator_key
from headrace.server.share.coordinator.records import ShareKey
from headrace.testing.cluster import Cluster, processes
from headrace.testing.process import BrokerProcess
from tests.server.share.group_settings import configure
from tests.waiting import until

RECORDS = 400
STATE_PARTITIONS = 3
SETTINGS = {
    "offsets.topic.num.partitions": "1",
    "offsets.topic.replication.factor": "3",
    "share.coordinator.state.topic.num.partitions": str(STATE_PARTITIONS),
    "group.share.heartbeat.interval.ms": "200",
    "group.share.min.heartbeat.interval.ms": "200",
    "group.share.record.lock.duration.ms": "3000",
    "group.share.min.record.lock.duration.ms": "1000",
    "replica.lag.time.max.ms": "3000",
}


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster[BrokerProcess]]:
    cluster = processes(tmp_path, 3, SETTINGS)
    yield cluster
    cluster.stop()


class Worker(threading.Thread):
    """A member that accepts what it gets, and notes what was confirmed to it, and when."""

    def __init__(self, bootstrap: str) -> None:
        super().__init__(daemon=True)
        self._brokers = bootstrap
        self.confirmed: list[tuple[int, float]] = []
        self.delivered: list[tuple[int, float]] = []
        self.over = threading.Event()

    def run(self) -> None:
        consumer = ShareConsumer(
            {
                "bootstrap.servers": self._brokers,
                "group.id": "workers",
                "share.acknowledgement.mode": "explicit",
                "log_level": 0,
            }
        )
        consumer.subscribe(["work"])
        while not self.over.is_set():
            messages = []
            for message in consumer.poll(0.2):
                if message.error() is None:
                    messages.append(int(message.value() or b""))
                    self.delivered.append((messages[-1], time.monotonic()))
                    consumer.acknowledge(message, AcknowledgeType.ACCEPT)
            try:
                results = consumer.commit_sync(timeout=20.0) if messages else {}
            except KafkaException:
                continue
            if results and all(error is None for error in results.values()):
                now = time.monotonic()
                self.confirmed += [(value, now) for value in messages]
        consumer.close()


def test_brokers_die_and_every_record_is_finished_once(cluster: Cluster[BrokerProcess]) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap, "log_level": 0})
    admin.create_topics([NewTopic("work", 1, 3)])["work"].result(30)
    configure(cluster[1].bootstrap, "workers", {"share.auto.offset.reset": "earliest"})
    workers = [Worker(cluster.bootstrap) for _ in range(2)]
    for worker in workers:
        worker.start()

    def confirmed() -> set[int]:
        return {value for worker in workers for value, _ in worker.confirmed}

    producer = Producer({"bootstrap.servers": cluster.bootstrap, "log_level": 0})
    for number, victim in enumerate(("leader", "coordinator")):
        half = range(number * RECORDS // 2, (number + 1) * RECORDS // 2)
        dead = 0
        for value in half:
            producer.produce("work", str(value).encode())
            producer.poll(0)
            if value == half[len(half) // 4]:
                producer.flush()
                until(
                    lambda first=half[0]: max(confirmed(), default=-1) >= first, "the first acknowledgement"
                )
                dead = broker_of(admin, victim)
                cluster[dead].kill()
        producer.flush()
        try:
            until(lambda end=half[-1]: len(confirmed()) == end + 1, "every record to be finished")
        finally:
            cluster[dead].start()
    time.sleep(4)  # longer than a lock: what is delivered again by mistake shows now
    for worker in workers:
        worker.over.set()
    for worker in workers:
        worker.join()
    counted = Counter(value for worker in workers for value, _ in worker.confirmed)
    assert counted == Counter(range(RECORDS)), "finished once each"
    when = {value: moment for worker in workers for value, moment in worker.confirmed}
    again = [value for worker in workers for value, moment in worker.delivered if moment > when[value]]
    assert again == [], "nothing was delivered after its acknowledgement was confirmed"


def broker_of(admin: AdminClient, role: str) -> int:
    topics = admin.list_topics(timeout=30).topics
    if role == "leader":
        return int(topics["work"].partitions[0].leader)
    described = admin.describe_topics(TopicCollection(["work"]))["work"].result(30)
    key = ShareKey("workers", parse_id(str(described.topic_id)), 0)
    index = partition_for(coordinator_key(key), STATE_PARTITIONS)
    return int(topics["__share_group_state"].partitions[index].leader)
