"""The load: idempotent producers, a transactional one, readers of several kinds and a group, each in a thread of its own.

Each keeps what it did and what it was told, in lists nobody else writes; `checks.py` judges them when all is over. A client
gives up nothing: what the cluster does not answer within `PATIENCE` is counted as a failure, never guessed.
"""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)

LEDGER, TRANSFERS, GROUP = "ledger", "transfers", "workers"
PATIENCE = 180.0
IN_FLIGHT = 400
COMMON: dict[str, str | int] = {
    # A frozen broker keeps its connections; nobody should wait a minute for it.
    "socket.timeout.ms": 4000,
    "topic.metadata.refresh.interval.ms": 2000,
    "reconnect.backoff.max.ms": 1000,
    "log_level": 0,
}
_PADDING = b" " * 60

Place = tuple[str, int]
"""A topic and a partition."""


def client_settings(bootstrap: str, **more: str | int) -> dict[str, str | int | float | bool]:
    return {
        "bootstrap.servers": bootstrap,
        **COMMON,
        **{name.replace("_", "."): value for name, value in more.items()},
    }


def record(name: str, partition: int, number: int) -> bytes:
    return b"%s %d %d" % (name.encode(), partition, number) + _PADDING


def identity(value: bytes) -> str:
    return value.rstrip().decode()


class Worker(threading.Thread):
    """Works until `stop`; a failure of its own is kept for the verdict."""

    def __init__(self, name: str) -> None:
        super().__init__(name=name, daemon=True)
        self.stopping = threading.Event()
        self.troubles: list[str] = []

    def run(self) -> None:
        try:
            self.work()
        except Exception as error:
            self.troubles.append(f"{self.name} broke: {error!r}")

    def work(self) -> None:
        raise NotImplementedError

    def stop(self) -> None:
        self.stopping.set()

    def trouble(self, error: object) -> None:
        """What a client told that it should not have to tell."""
        self.troubles.append(f"{self.name} was told: {error}")


@dataclass(slots=True)
class Acknowledged:
    place: Place
    offset: int
    at: float


class Writer(Worker):
    """An idempotent producer with acks=all: numbers in ascending order to every partition."""

    def __init__(self, name: str, bootstrap: str, partitions: int, rate: int, in_flight: int) -> None:
        super().__init__(name)
        self.in_flight = in_flight
        """Requests to one broker that it may have under way at once."""
        self.sent: set[str] = set()
        self.acknowledged: dict[str, Acknowledged] = {}
        self.twice: list[str] = []
        self.failed: dict[str, str] = {}
        self.partitions = partitions
        """How many partitions it writes to; grows with the topic."""
        self.slowest = 0.0
        self._rate = rate
        self._producer = Producer(
            client_settings(
                bootstrap,
                enable_idempotence="true",
                request_timeout_ms=4000,
                message_timeout_ms=int(PATIENCE * 1000),
                linger_ms=5,
                max_in_flight=in_flight,
            )
        )

    def work(self) -> None:
        numbers: dict[int, int] = defaultdict(int)
        while not self.stopping.is_set():
            for partition in range(self.partitions):
                if self._send(partition, numbers[partition]):
                    numbers[partition] += 1
            self._producer.poll(self.partitions / self._rate)
            while len(self._producer) > IN_FLIGHT and not self.stopping.is_set():
                self._producer.poll(0.1)
        deadline = time.monotonic() + PATIENCE
        while len(self._producer) and time.monotonic() < deadline:
            self._producer.flush(1)

    def _send(self, partition: int, number: int) -> bool:
        """False when the client has not heard of the partition yet."""
        value = record(self.name, partition, number)
        name = identity(value)
        began = time.monotonic()

        def told(error: KafkaError | None, message: Message) -> None:
            if error is not None:
                self.failed[name] = str(error)
                if error.fatal():
                    self.trouble(error)
                return
            if name in self.acknowledged:
                self.twice.append(name)
            offset = message.offset()
            now = time.monotonic()
            self.slowest = max(self.slowest, now - began)
            self.acknowledged[name] = Acknowledged(
                (LEDGER, partition), offset if offset is not None else -1, now
            )

        try:
            self._producer.produce(LEDGER, value, partition=partition, on_delivery=told)
        except KafkaException as error:
            if error.args[0].code() != KafkaError._UNKNOWN_PARTITION:
                raise
            return False
        self.sent.add(name)
        return True


class Transferrer(Worker):
    """A transactional producer: a record to each partition, every fourth transaction aborted on purpose."""

    def __init__(self, name: str, bootstrap: str, partitions: int, rate: float) -> None:
        super().__init__(name)
        self.committed: set[int] = set()
        self.aborted: set[int] = set()
        self.unknown: set[int] = set()
        self.at: list[float] = []
        self._partitions = partitions
        self._pause = 1 / rate
        self._settings = client_settings(
            bootstrap,
            transactional_id=name,
            request_timeout_ms=4000,
            message_timeout_ms=50000,
            transaction_timeout_ms=60000,
        )

    def work(self) -> None:
        producer = self._begin()
        number = 0
        while not self.stopping.wait(self._pause):
            if producer is None:
                producer = self._begin()
                continue
            if not self._transfer(producer, number):
                producer = None
            number += 1

    def _begin(self) -> Producer | None:
        """A producer that has ended what an earlier one of the same name left open; None to try again."""
        producer = Producer(self._settings)
        try:
            producer.init_transactions(30)
        except KafkaException as error:
            if not error.args[0].retriable():
                self.trouble(error.args[0])
            return None
        return producer

    def _transfer(self, producer: Producer, number: int) -> bool:
        """One transaction; False when this producer can go no further."""
        committing = False
        try:
            producer.begin_transaction()
            for partition in range(self._partitions):
                producer.produce(TRANSFERS, record(self.name, partition, number), partition=partition)
            if number % 4 == 3:
                producer.flush(30)
                producer.abort_transaction(30)
                self.aborted.add(number)
                return True
            committing = True
            producer.commit_transaction(30)
            self.committed.add(number)
            self.at.append(time.monotonic())
            return True
        except KafkaException as error:
            if not error.args[0].txn_requires_abort():
                # It may or may not have been committed; the next life of this producer settles it.
                (self.unknown if committing else self.aborted).add(number)
                return False
        try:
            producer.abort_transaction(30)
        except KafkaException:
            self.unknown.add(number)
            return False
        self.aborted.add(number)
        return True


@dataclass(slots=True)
class Deliveries:
    """What one reader was given, by place and offset."""

    seen: dict[Place, dict[int, str]] = field(default_factory=lambda: defaultdict(dict))
    changed: list[str] = field(default_factory=list)
    """An offset that was delivered twice with different records."""

    def add(self, message: Message) -> None:
        topic, partition, offset = message.topic(), message.partition(), message.offset()
        assert topic is not None
        assert partition is not None
        assert offset is not None
        name = identity(bytes(message.value() or b""))
        known = self.seen[topic, partition].setdefault(offset, name)
        if known != name:
            self.changed.append(f"{topic}-{partition} offset {offset}: first {known!r}, then {name!r}")

    def count(self) -> int:
        return sum(len(seen) for seen in self.seen.values())


class Reader(Worker):
    """Reads every partition from its beginning, always on."""

    def __init__(self, name: str, bootstrap: str, topics: Mapping[str, int], **more: str) -> None:
        super().__init__(name)
        self.deliveries = Deliveries()
        self.disordered: list[str] = []
        self._topics = dict(topics)
        self._grown: list[TopicPartition] = []
        self._last: dict[Place, int] = {}
        # An offset that is no longer in the log must be told, not passed over.
        self._settings = client_settings(
            bootstrap,
            group_id=f"reader-{name}",
            enable_auto_commit="false",
            auto_offset_reset="error",
            **more,
        )

    def grow(self, topic: str, partition: int) -> None:
        self._grown.append(TopicPartition(topic, partition, OFFSET_BEGINNING))

    def work(self) -> None:
        consumer = Consumer(self._settings)
        consumer.assign(
            [
                TopicPartition(topic, partition, OFFSET_BEGINNING)
                for topic, count in self._topics.items()
                for partition in range(count)
            ]
        )
        while not self.stopping.is_set():
            while self._grown:
                consumer.incremental_assign([self._grown.pop()])
            for message in consumer.consume(500, 0.2):
                self._take(message)
        consumer.close()

    def _take(self, message: Message) -> None:
        error = message.error()
        if error is not None:
            if error.code() in (KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE):
                self.trouble(error)
            return
        topic, partition, offset = message.topic(), message.partition(), message.offset()
        assert topic is not None
        assert partition is not None
        assert offset is not None
        last = self._last.get((topic, partition), -1)
        if offset <= last:
            self.disordered.append(f"{self.name}: {topic}-{partition} offset {offset} came after {last}")
        self._last[topic, partition] = offset
        self.deliveries.add(message)


class Member(Worker):
    """One member of the group; commits what it has taken."""

    def __init__(self, name: str, bootstrap: str, group_protocol: str = "classic") -> None:
        super().__init__(name)
        self.deliveries = Deliveries()
        self.commits: dict[Place, int] = {}
        """The highest offset whose commit was answered, by place."""
        self.rebalances = 0
        more: dict[str, str | int] = {"session_timeout_ms": 6000} if group_protocol == "classic" else {}
        self._settings = client_settings(
            bootstrap,
            group_id=GROUP,
            group_protocol=group_protocol,
            auto_offset_reset="earliest",
            enable_auto_commit="false",
            **more,
        )

    def work(self) -> None:
        consumer = Consumer(self._settings)

        def assigned(_: Consumer, __: list[TopicPartition]) -> None:
            self.rebalances += 1

        consumer.subscribe([LEDGER, TRANSFERS], on_assign=assigned)
        while not self.stopping.is_set():
            taken = [message for message in consumer.consume(500, 0.3) if message.error() is None]
            for message in taken:
                self.deliveries.add(message)
            if taken:
                self._commit(consumer)
        consumer.close()

    def _commit(self, consumer: Consumer) -> None:
        try:
            answered = consumer.commit(asynchronous=False)
        except KafkaException:
            return  # Rebalanced meanwhile, or the coordinator is away: the records come again.
        for each in answered or ():
            if each.error is None and each.offset >= 0:
                place = (each.topic, each.partition)
                self.commits[place] = max(self.commits.get(place, 0), each.offset)
