"""What the kept data directories hold: written by brokers of the earlier version, looked for by those of today."""

import time
from collections.abc import Callable
from dataclasses import dataclass

from confluent_kafka import (
    OFFSET_BEGINNING,
    TIMESTAMP_CREATE_TIME,
    Consumer,
    KafkaError,
    Message,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.waiting import until

PATIENCE = 120.0
BASE_TIMESTAMP = 1_700_000_000_000
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
RECORDS = 25
KEYS = 10
ROUNDS = 4
FOREVER = {"retention.ms": "-1"}
COMPACTED = {
    "cleanup.policy": "compact",
    "segment.ms": "500",
    "min.cleanable.dirty.ratio": "0.01",
    "delete.retention.ms": "86400000",
}
TOPIC_SETTING = {"max.message.bytes": "654321"}
# Committed offsets and transactional ids are kept for a week; the directories are older than that.
KEPT = {
    "offsets.retention.minutes": "2147483647",
    "transactional.id.expiration.ms": "2147483647",
    "offsets.topic.num.partitions": "2",
    "transaction.state.log.num.partitions": "2",
    "group.initial.rebalance.delay.ms": "0",
    "log.cleaner.backoff.ms": "200",
}
OPEN_ID = "open-id"
# Committed offsets by group; the partitions are those of the topic `codecs`.
GROUPS = {"classic-group": ("classic", [5, 6, 7, 8, 9]), "consumer-group": ("consumer", [10, 11, 12, 13, 14])}
CLUSTER_SETTING = ("message.max.bytes", "2097152")
BROKER_SETTING = ("max.connections.per.ip", "12345")


@dataclass(frozen=True, slots=True)
class Record:
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]


def codec_records() -> list[Record]:
    """Of every partition of `codecs`, whatever its compression."""
    return [
        Record(
            number,
            BASE_TIMESTAMP + number,
            None if number % 5 == 0 else b"key-%d" % number,
            None if number % 7 == 0 else b"value-%d " % number * 20,
            (("number", b"%d" % number), ("number", None)) if number % 3 == 0 else (),
        )
        for number in range(RECORDS)
    ]


def read(bootstrap: str, topic: str, partition: int = 0, isolation: str = "read_committed") -> list[Message]:
    """Everything in a partition, up to its end for this isolation level."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "reader",
            "isolation.level": isolation,
            "enable.partition.eof": True,
            "enable.auto.commit": False,
            "check.crcs": True,
        }
    )
    consumer.assign([TopicPartition(topic, partition, OFFSET_BEGINNING)])
    found: list[Message] = []
    deadline = time.monotonic() + PATIENCE
    try:
        while True:
            assert time.monotonic() < deadline, f"the end of {topic}-{partition} was not reached"
            message = consumer.poll(1)
            if message is None:
                continue
            error = message.error()
            if error is None:
                found.append(message)
            elif error.code() == KafkaError._PARTITION_EOF:
                return found
            else:
                assert error.retriable(), error
    finally:
        consumer.close()


def values(messages: list[Message]) -> list[bytes | None]:
    return [message.value() for message in messages]


def as_record(message: Message) -> Record:
    kind, timestamp = message.timestamp()
    assert kind == TIMESTAMP_CREATE_TIME
    headers = tuple((name, value) for name, value in message.headers() or [])
    offset = message.offset()
    assert offset is not None
    return Record(offset, timestamp, message.key(), message.value(), headers)


class Writer:
    """Fills a cluster, topic by topic."""

    def __init__(self, bootstrap: str, replication: int, alter: Callable[..., None]) -> None:
        self._bootstrap = bootstrap
        self._replication = replication
        self._alter = alter
        self._admin = AdminClient({"bootstrap.servers": bootstrap})

    def write(self) -> None:
        self._codecs()
        self._transactions()
        self._table()
        for group, (protocol, offsets) in GROUPS.items():
            self._commit(group, protocol, offsets)
        self._create("deleted")
        self._send("deleted", b"gone")
        self._admin.delete_topics(["deleted"])["deleted"].result(PATIENCE)
        until(lambda: "deleted" not in self._admin.list_topics(timeout=30).topics, "the topic is deleted")
        self._alter("broker", CLUSTER_SETTING)
        self._alter("broker", BROKER_SETTING, "1")
        # Last, so that nothing ends it: its producer goes without a word.
        self._open_transaction()

    def _create(self, topic: str, partitions: int = 1, **config: str) -> None:
        settings = {**FOREVER, **{name.replace("_", "."): value for name, value in config.items()}}
        wanted = NewTopic(topic, partitions, self._replication, config=settings)
        self._admin.create_topics([wanted])[topic].result(PATIENCE)

    def _producer(self, **config: str | int) -> Producer:
        settings = {name.replace("_", "."): value for name, value in config.items()}
        return Producer({"bootstrap.servers": self._bootstrap, "acks": "all", **settings})

    def _send(self, topic: str, value: bytes) -> None:
        producer = self._producer()
        producer.produce(topic, value)
        assert producer.flush(PATIENCE) == 0

    def _codecs(self) -> None:
        self._create("codecs", len(CODECS), **TOPIC_SETTING)
        for partition, codec in enumerate(CODECS):
            producer = self._producer(compression_type=codec, linger_ms=20, enable_idempotence="true")
            for record in codec_records():
                producer.produce(
                    "codecs",
                    record.value,
                    record.key,
                    partition,
                    timestamp=record.timestamp,
                    headers=list(record.headers),
                )
            assert producer.flush(PATIENCE) == 0

    def _transactions(self) -> None:
        self._create("transactions")
        producer = self._producer(transactional_id="closed-id")
        producer.init_transactions(PATIENCE)
        for number in range(6):
            producer.begin_transaction()
            fate = "aborted" if number % 3 == 2 else "committed"
            producer.produce("transactions", f"{fate}-{number}")
            assert producer.flush(PATIENCE) == 0
            if fate == "aborted":
                producer.abort_transaction(PATIENCE)
            else:
                producer.commit_transaction(PATIENCE)

    def _open_transaction(self) -> None:
        self._create("open")
        self._send("open", b"before")
        producer = self._producer(transactional_id=OPEN_ID, transaction_timeout_ms=900_000)
        producer.init_transactions(PATIENCE)
        producer.begin_transaction()
        producer.produce("open", b"undecided")
        assert producer.flush(PATIENCE) == 0

    def _table(self) -> None:
        self._create("table", **COMPACTED)
        for number in range(ROUNDS):
            producer = self._producer(compression_type="zstd")
            for key in range(KEYS):
                last = number == ROUNDS - 1
                value = None if last and key == 0 else f"{key}-{number}"
                producer.produce("table", value, str(key))
            assert producer.flush(PATIENCE) == 0
            time.sleep(0.6)  # longer than segment.ms: the next round begins a segment
        until(lambda: len(read(self._bootstrap, "table")) < ROUNDS * KEYS, "the table is compacted")

    def _commit(self, group: str, protocol: str, offsets: list[int]) -> None:
        consumer = Consumer(
            {
                "bootstrap.servers": self._bootstrap,
                "group.id": group,
                "group.protocol": protocol,
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
            }
        )
        consumer.subscribe(["codecs"])
        until(lambda: bool(consumer.poll(0.1) or consumer.assignment()), f"{group} has its partitions")
        until(lambda: len(consumer.assignment()) == len(CODECS), f"{group} has all partitions")
        where = [
            TopicPartition("codecs", partition, offset, metadata=group)
            for partition, offset in enumerate(offsets)
        ]
        consumer.commit(offsets=where, asynchronous=False)
        consumer.close()
