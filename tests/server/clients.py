"""What most tests ask a real client (librdkafka) for: a topic, records in it, and everything it holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic, PartitionMetadata

PATIENCE = 120
"""Seconds: more than a cluster takes to elect a leader on a busy machine."""


def admin_of(bootstrap: str) -> AdminClient:
    return AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})


def create(
    bootstrap: str,
    name: str,
    replicas: int | Sequence[int] = 1,
    *,
    partitions: int = 1,
    config: Mapping[str, str] | None = None,
) -> None:
    """Create a topic with this many replicas, or with its replicas on these brokers, the first of them the leader."""
    place = (
        {"replication_factor": replicas}
        if isinstance(replicas, int)
        else {"replica_assignment": [list(replicas)] * partitions}
    )
    topic = NewTopic(name, partitions, config=dict(config or {}), **place)
    admin = admin_of(bootstrap)  # keep the client until the result arrives: the request fails without it
    admin.create_topics([topic])[name].result(PATIENCE)


def delete(bootstrap: str, name: str) -> None:
    admin = admin_of(bootstrap)
    admin.delete_topics([name])[name].result(PATIENCE)


def partition_of(bootstrap: str, topic: str) -> PartitionMetadata:
    """The leader and the ISR of the topic's first partition."""
    return admin_of(bootstrap).list_topics(topic, PATIENCE).topics[topic].partitions[0]


def try_to_produce(bootstrap: str, topic: str, *values: bytes, **settings: object) -> list[KafkaError]:
    """Produce with acks=all unless the settings differ; returns the errors of the records that were not delivered."""
    producer = Producer({"bootstrap.servers": bootstrap, "acks": "all", "log_level": 0, **settings})
    failures: list[KafkaError] = []
    for value in values:
        producer.produce(topic, value, on_delivery=lambda error, _: failures.append(error) if error else None)
    assert producer.flush(PATIENCE) == 0
    return failures


def produce(bootstrap: str, topic: str, *values: bytes, **settings: object) -> None:
    """Every record is delivered, however often the leader changes meanwhile."""
    assert try_to_produce(bootstrap, topic, *values, **settings) == []


def messages(bootstrap: str, topic: str, *, partitions: int = 1, **settings: object) -> list[Message]:
    """Everything in the topic's first partitions, up to the end of each."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "reader",
            "enable.partition.eof": True,
            "enable.auto.commit": False,
            "log_level": 0,
            **settings,
        }
    )
    consumer.assign([TopicPartition(topic, partition, 0) for partition in range(partitions)])
    found: list[Message] = []
    ended: set[int] = set()
    while len(ended) < partitions:
        message = consumer.poll(PATIENCE)
        assert message is not None
        error = message.error()
        if error is None:
            found.append(message)
        else:
            assert error.code() == KafkaError._PARTITION_EOF, error
            ended.add(message.partition())
    consumer.close()
    return found


def values(bootstrap: str, topic: str, **settings: object) -> list[bytes]:
    """The values in the topic's only partition, in order."""
    return [message.value() for message in messages(bootstrap, topic, **settings)]
