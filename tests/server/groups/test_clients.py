"""Real clients in real groups: every record reaches a member, and no partition ever has two owners."""

from __future__ import annotations

import asyncio
import itertools
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest
from aiokafka import AIOKafkaConsumer
from aiokafka.abc import ConsumerRebalanceListener as AioListener
from aiokafka.coordinator.assignors.range import RangePartitionAssignor as AioRange
from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor as AioRoundRobin
from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor as AioSticky
from confluent_kafka import Consumer, KafkaError, Producer
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic
from kafka import KafkaConsumer
from kafka.consumer.subscription_state import ConsumerRebalanceListener
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor

from tests.waiting import until

PARTITIONS = 6
_numbers = itertools.count()

QUICK = {
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "500",
    "group.consumer.heartbeat.interval.ms": "100",
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.session.timeout.ms": "2000",
    "group.consumer.min.session.timeout.ms": "2000",
}


class Recorder:
    """Which member owns which partition, and what has been delivered; a second owner fails at once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.owners: dict[int, str] = {}
        self.delivered: dict[tuple[int, int], int] = {}
        self.rebalances: dict[str, int] = {}
        self.mistakes: list[str] = []

    def assigned(self, member: str, partitions: list[int]) -> None:
        with self._lock:
            self.rebalances[member] = self.rebalances.get(member, 0) + 1
            for partition in partitions:
                owner = self.owners.setdefault(partition, member)
                if owner != member:
                    self.mistakes.append(f"{partition} was given to {member} while {owner} had it")
                    self.owners[partition] = member

    def revoked(self, member: str, partitions: list[int]) -> None:
        with self._lock:
            for partition in partitions:
                if self.owners.get(partition) == member:
                    del self.owners[partition]

    def gone(self, member: str) -> None:
        self.revoked(member, [partition for partition, owner in list(self.owners.items()) if owner == member])

    def record(self, member: str, partition: int, offset: int) -> None:
        with self._lock:
            if self.owners.get(partition) != member:
                self.mistakes.append(
                    f"{member} got {partition}@{offset}, which {self.owners.get(partition)} owns"
                )
            self.delivered[partition, offset] = self.delivered.get((partition, offset), 0) + 1

    def shares(self, members: int) -> bool:
        """All partitions are owned, by so many members."""
        with self._lock:
            return len(self.owners) == PARTITIONS and len(set(self.owners.values())) == members


class Member:
    """A consumer with a thread of its own; subclasses say how to consume."""

    def __init__(self, recorder: Recorder, name: str) -> None:
        self.recorder = recorder
        self.name = name
        self._leave = threading.Event()
        self.failure: BaseException | None = None
        self._thread = threading.Thread(target=self._main, daemon=True)
        self._thread.start()

    def leave(self) -> None:
        self._leave.set()
        self._thread.join(30)
        assert not self._thread.is_alive()
        assert self.failure is None, self.failure

    def _main(self) -> None:
        try:
            self.consume()
        except BaseException as error:
            self.failure = error
        finally:
            self.recorder.gone(self.name)

    def consume(self) -> None:
        raise NotImplementedError


def confluent(settings: dict[str, object]) -> Callable[..., Member]:
    class Confluent(Member):
        def __init__(self, recorder: Recorder, name: str, bootstrap: str, group: str, topic: str) -> None:
            self.config = {
                "bootstrap.servers": bootstrap,
                "group.id": group,
                "auto.offset.reset": "earliest",
                "client.id": name,
                "auto.commit.interval.ms": 50,
                "topic.metadata.refresh.interval.ms": 500,
                **settings,
            }
            if settings.get("group.protocol") != "consumer":
                self.config |= {"session.timeout.ms": 6000, "heartbeat.interval.ms": 100}
            self.topic = topic
            super().__init__(recorder, name)

        def consume(self) -> None:
            def assigned(_: Consumer, partitions: list) -> None:
                self.recorder.assigned(self.name, [each.partition for each in partitions])

            def revoked(_: Consumer, partitions: list) -> None:
                self.recorder.revoked(self.name, [each.partition for each in partitions])

            consumer = Consumer(self.config)
            consumer.subscribe([self.topic], on_assign=assigned, on_revoke=revoked, on_lost=revoked)
            try:
                while not self._leave.is_set():
                    message = consumer.poll(0.05)
                    if message is None:
                        continue
                    if message.error() is not None:
                        assert message.error().code() in (
                            KafkaError._PARTITION_EOF,
                            KafkaError._ALL_BROKERS_DOWN,
                            KafkaError._TRANSPORT,
                            KafkaError.UNKNOWN_TOPIC_OR_PART,
                        ), message.error()
                        continue
                    self.recorder.record(self.name, message.partition(), message.offset())
            finally:
                consumer.close()

    return Confluent


def kafka_python(assignor: type) -> Callable[..., Member]:
    class KafkaPython(Member):
        def __init__(self, recorder: Recorder, name: str, bootstrap: str, group: str, topic: str) -> None:
            self.bootstrap, self.group, self.topic = bootstrap, group, topic
            super().__init__(recorder, name)

        def consume(self) -> None:
            member = self

            class Listener(ConsumerRebalanceListener):
                def on_partitions_assigned(self, assigned: list) -> None:
                    member.recorder.assigned(member.name, [each.partition for each in assigned])

                def on_partitions_revoked(self, revoked: list) -> None:
                    member.recorder.revoked(member.name, [each.partition for each in revoked])

            consumer = KafkaConsumer(
                bootstrap_servers=self.bootstrap,
                group_id=self.group,
                client_id=self.name,
                auto_offset_reset="earliest",
                auto_commit_interval_ms=50,
                partition_assignment_strategy=(assignor,),
                session_timeout_ms=6000,
                heartbeat_interval_ms=100,
                metadata_max_age_ms=500,
            )
            consumer.subscribe([self.topic], listener=Listener())
            try:
                while not self._leave.is_set():
                    # A poll that gives up while a join is under way can make kafka-python 3.0 forget the join.
                    for messages in consumer.poll(timeout_ms=2000, max_records=10).values():
                        for message in messages:
                            self.recorder.record(self.name, message.partition, message.offset)
            finally:
                consumer.close()

    return KafkaPython


def aiokafka(assignor: type) -> Callable[..., Member]:
    class Aio(Member):
        def __init__(self, recorder: Recorder, name: str, bootstrap: str, group: str, topic: str) -> None:
            self.bootstrap, self.group, self.topic = bootstrap, group, topic
            super().__init__(recorder, name)

        def consume(self) -> None:
            asyncio.run(self._consume())

        async def _consume(self) -> None:
            member = self

            class Listener(AioListener):
                def on_partitions_assigned(self, assigned: list) -> None:
                    member.recorder.assigned(member.name, [each.partition for each in assigned])

                def on_partitions_revoked(self, revoked: list) -> None:
                    member.recorder.revoked(member.name, [each.partition for each in revoked])

            consumer = AIOKafkaConsumer(
                bootstrap_servers=self.bootstrap,
                group_id=self.group,
                client_id=self.name,
                auto_offset_reset="earliest",
                auto_commit_interval_ms=50,
                partition_assignment_strategy=(assignor,),
                session_timeout_ms=6000,
                heartbeat_interval_ms=100,
                metadata_max_age_ms=500,
            )
            consumer.subscribe([self.topic], listener=Listener())
            await consumer.start()
            try:
                while not self._leave.is_set():
                    for messages in (await consumer.getmany(timeout_ms=50)).values():
                        for message in messages:
                            self.recorder.record(self.name, message.partition, message.offset)
            finally:
                await consumer.stop()

    return Aio


CLIENTS = {
    "confluent-range": confluent({"partition.assignment.strategy": "range"}),
    "confluent-roundrobin": confluent({"partition.assignment.strategy": "roundrobin"}),
    "confluent-cooperative": confluent({"partition.assignment.strategy": "cooperative-sticky"}),
    "confluent-consumer-protocol": confluent({"group.protocol": "consumer"}),
    "kafka-python-range": kafka_python(RangePartitionAssignor),
    "kafka-python-roundrobin": kafka_python(RoundRobinPartitionAssignor),
    "kafka-python-sticky": kafka_python(StickyPartitionAssignor),
    "aiokafka-range": aiokafka(AioRange),
    "aiokafka-roundrobin": aiokafka(AioRoundRobin),
    "aiokafka-sticky": aiokafka(AioSticky),
}


class Stage:
    """A broker, a topic that is being written to, and the members of one group."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap
        self.admin = AdminClient({"bootstrap.servers": bootstrap})
        number = next(_numbers)
        self.topic, self.group = f"storm-{number}", f"group-{number}"
        self.admin.create_topics([NewTopic(self.topic, PARTITIONS)])[self.topic].result(30)
        self.recorder = Recorder()
        self.members: dict[str, Member] = {}
        self._producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 5})
        self.written: set[tuple[int, int]] = set()

    def write(self, count: int = 60) -> None:
        def delivered(error: object, message) -> None:
            assert error is None, error
            self.written.add((message.partition(), message.offset()))

        for number in range(count):
            self._producer.produce(self.topic, b"x", partition=number % PARTITIONS, on_delivery=delivered)
        assert self._producer.flush(30) == 0

    def join(self, client: Callable[..., Member], name: str) -> None:
        self.members[name] = client(self.recorder, name, self.bootstrap, self.group, self.topic)

    def leave(self, name: str) -> None:
        self.members.pop(name).leave()

    def until_shared(self) -> None:
        until(lambda: self.recorder.shares(len(self.members)), f"sharing among {sorted(self.members)}")

    def until_delivered(self) -> None:
        until(lambda: self.written <= self.recorder.delivered.keys(), "delivery of every record")
        assert self.recorder.mistakes == []

    def close(self) -> None:
        for name in list(self.members):
            with suppress(AssertionError):
                self.leave(name)


@pytest.fixture(scope="module")
def quick_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    from headrace.testing.broker import BrokerThread

    broker = BrokerThread(tmp_path_factory.mktemp("groups"), QUICK).start()
    yield broker.bootstrap
    broker.stop()


@pytest.fixture
def stage(quick_broker: str) -> Iterator[Stage]:
    stage = Stage(quick_broker)
    yield stage
    stage.close()


@pytest.mark.parametrize("client", CLIENTS)
def test_members_come_and_go_and_every_record_is_delivered_to_one_owner(stage: Stage, client: str) -> None:
    stage.join(CLIENTS[client], "a")
    stage.write()
    stage.until_shared()
    stage.join(CLIENTS[client], "b")
    stage.write()
    stage.until_shared()
    stage.join(CLIENTS[client], "c")
    stage.until_shared()
    stage.write()
    stage.leave("a")
    stage.write()
    stage.until_shared()
    stage.until_delivered()


def test_new_partitions_are_consumed_too(stage: Stage) -> None:
    stage.join(CLIENTS["confluent-range"], "a")
    stage.join(CLIENTS["confluent-range"], "b")
    stage.until_shared()
    stage.admin.create_partitions([NewPartitions(stage.topic, PARTITIONS + 2)])[stage.topic].result(30)
    until(lambda: len(stage.recorder.owners) == PARTITIONS + 2, "ownership of the new partitions")
    assert stage.recorder.mistakes == []
