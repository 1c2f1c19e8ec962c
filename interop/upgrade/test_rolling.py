"""A cluster under load, rolled broker by broker from the earlier version to this one and back again."""

import threading
from collections import defaultdict
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from headrace.testing.zookeeper import ZooKeeperServer
from tests.upgrade.contents import read, values
from tests.upgrade.earlier import TODAY, earlier_headrace
from tests.upgrade.running import Up
from tests.waiting import until

TOPIC = "rolled"
PARTITIONS = 6
BROKERS = (1, 2, 3)
PATIENCE = 180.0
SETTINGS = {
    "default.replication.factor": "3",
    "min.insync.replicas": "2",
    "offsets.topic.num.partitions": "3",
    "offsets.topic.replication.factor": "3",
}


class Rolled:
    """Three brokers on one ZooKeeper, each a process of its own that is stopped and started as another version."""

    def __init__(self, directory: Path, zookeeper: str) -> None:
        self._directory = directory
        self._zookeeper = zookeeper
        self._running: dict[int, Up] = {}
        self._addresses: dict[int, str] = {}

    @property
    def bootstrap(self) -> str:
        return ",".join(self._addresses.values())

    def start(self, number: int, headrace: list[str]) -> None:
        options = ("--zookeeper", self._zookeeper, "--id", str(number))
        listen = self._addresses.get(number, "127.0.0.1:0")
        data = self._directory / f"broker-{number}"
        self._running[number] = Up(headrace, data, SETTINGS, *options, listen=listen)
        self._addresses[number] = self._running[number].bootstrap

    def stop(self, number: int) -> None:
        self._running.pop(number).stop()

    def kill_all(self) -> None:
        for running in self._running.values():
            running.kill()
        self._running.clear()

    def await_in_sync(self) -> None:
        admin = AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0})

        def in_sync() -> bool:
            try:
                known = admin.list_topics(timeout=10)
            except KafkaException:
                return False
            partitions = [part for topic in known.topics.values() for part in topic.partitions.values()]
            return len(known.brokers) == 3 and all(len(part.isrs) == 3 for part in partitions)

        until(in_sync, "all replicas are in sync")


class Load:
    """An idempotent producer with acks=all and a group of one consumer, each in a thread, until told to end."""

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self._ending = threading.Event()
        self._drained = threading.Event()
        self.wrong: list[str] = []
        self.sent: dict[int, int] = defaultdict(int)
        self.acknowledged = 0
        self.read: dict[int, int] = defaultdict(int)
        self._producing = threading.Thread(target=self._produce)
        self._consuming = threading.Thread(target=self._consume)

    def start(self) -> None:
        self._producing.start()
        self._consuming.start()

    def _produce(self) -> None:
        config = {
            "bootstrap.servers": self._bootstrap,
            "enable.idempotence": True,
            "acks": "all",
            "log_level": 0,
        }
        producer = Producer(config)

        def told(error: KafkaError | None, message: Message) -> None:
            if error is None:
                self.acknowledged += 1
            else:
                self.wrong.append(f"{message.value()!r} was not acknowledged: {error}")

        number = 0
        while not self._ending.is_set():
            partition = number % PARTITIONS
            producer.produce(TOPIC, str(self.sent[partition]), partition=partition, on_delivery=told)
            self.sent[partition] += 1
            number += 1
            producer.poll(0.004)
        if producer.flush(PATIENCE):
            self.wrong.append("the producer could not send all before the end")

    def _consume(self) -> None:
        """Each record follows the last one read; a rebalance may go back to what was committed, never skip."""
        config = {"bootstrap.servers": self._bootstrap, "group.id": "rolled", "auto.offset.reset": "earliest"}
        consumer = Consumer({**config, "auto.commit.interval.ms": 500, "log_level": 0})
        consumer.subscribe([TOPIC])
        while not self._drained.is_set():
            for message in consumer.consume(200, 0.2):
                partition = message.partition()
                if message.error() is not None or partition is None:
                    continue
                number = int(message.value() or b"-1")
                if number > self.read[partition] or number != message.offset():
                    due = self.read[partition]
                    self.wrong.append(f"{number} at {message.offset()} of {partition} where {due} was due")
                self.read[partition] = max(self.read[partition], number + 1)
        consumer.close()

    def end(self) -> None:
        """Stops sending, and waits until the group has read everything."""
        self._ending.set()
        self._producing.join()
        try:
            until(lambda: bool(self.wrong) or self.read == self.sent, "the group has read all")
        finally:
            self._drained.set()
            self._consuming.join()

    def await_more(self, count: int) -> None:
        target = self.acknowledged + count
        until(lambda: bool(self.wrong) or self.acknowledged >= target, f"{count} more are acknowledged")
        assert not self.wrong, self.wrong[:5]


@pytest.mark.timeout(1200)
def test_rolling_to_this_version_and_back_loses_doubles_and_reorders_nothing(tmp_path: Path) -> None:
    earlier = earlier_headrace()
    with ZooKeeperServer(tmp_path / "zookeeper") as zookeeper:
        cluster = Rolled(tmp_path, zookeeper.connect_string)
        try:
            for number in BROKERS:
                cluster.start(number, earlier)
            admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
            admin.create_topics([NewTopic(TOPIC, PARTITIONS, 3)])[TOPIC].result(PATIENCE)
            load = Load(cluster.bootstrap)
            load.start()
            try:
                load.await_more(200)
                for version in (TODAY, earlier):
                    for number in BROKERS:
                        cluster.await_in_sync()
                        cluster.stop(number)
                        load.await_more(100)
                        cluster.start(number, version)
                        load.await_more(100)
                cluster.await_in_sync()
            finally:
                load.end()
            assert not load.wrong, load.wrong[:5]
            for partition in range(PARTITIONS):
                found = values(read(cluster.bootstrap, TOPIC, partition))
                assert found == [b"%d" % number for number in range(load.sent[partition])]
        finally:
            cluster.kill_all()
