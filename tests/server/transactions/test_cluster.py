"""Transactions whose coordinator, whose partitions and whose group are led by different brokers."""

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from headrace.testing.wire import WireClient
from headrace.wire.messages.find_coordinator import FindCoordinatorRequest

pytestmark = pytest.mark.headrace(
    settings={"transaction.state.log.num.partitions": 3, "offsets.topic.num.partitions": 3}
)
PARTITIONS = 6


@pytest.fixture
def topic(headrace_topic):
    return headrace_topic(partitions=PARTITIONS)


@pytest.fixture
def producer(headrace_cluster, topic):
    made = Producer(
        {
            "bootstrap.servers": headrace_cluster.bootstrap,
            "transactional.id": topic,
            "reconnect.backoff.max.ms": 200,
            "log_level": 0,
        }
    )
    made.init_transactions(60)
    return made


def read(cluster, topic):
    consumer = Consumer(
        {
            "bootstrap.servers": cluster.bootstrap,
            "group.id": "reader",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
            "log_level": 0,
        }
    )
    consumer.assign([TopicPartition(topic, partition, 0) for partition in range(PARTITIONS)])
    found, ended = [], set()
    while len(ended) < PARTITIONS:
        message = consumer.poll(60)
        assert message is not None
        if message.error() is None:
            found.append(message.value().decode())
        elif message.error().code() == KafkaError._PARTITION_EOF:
            ended.add(message.partition())
    consumer.close()
    return sorted(found)


def write(producer, topic, name):
    for partition in range(PARTITIONS):
        producer.produce(topic, f"{name}-{partition}", partition=partition)


def whole(*names):
    return sorted(f"{name}-{partition}" for name in names for partition in range(PARTITIONS))


def transact(producer, topic, number, commit=True, during=lambda: None):
    """One transaction, retried under another name when a broker's failure aborts it; returns the final name."""
    for attempt in range(5):
        name = f"{number}.{attempt}"
        try:
            producer.begin_transaction()
            write(producer, topic, name)
            producer.flush(60)
            if attempt == 0:
                during()
            if commit:
                producer.commit_transaction(60)
            else:
                producer.abort_transaction(60)
        except KafkaException as error:
            if not error.args[0].txn_requires_abort():
                raise
            producer.abort_transaction(60)
        else:
            return name
    raise AssertionError(f"transaction {number} had to be aborted again and again")


def test_a_transaction_reaches_partitions_of_every_broker_or_none(headrace_cluster, topic, producer):
    image = headrace_cluster[1].node.cluster.image
    assert {image.partition(topic, index).replicas[0] for index in range(PARTITIONS)} == {1, 2, 3}
    names = [transact(producer, topic, number, commit=number % 2 == 0) for number in range(6)]
    assert read(headrace_cluster, topic) == whole(*names[::2])


def coordinator(cluster, transactional_id):
    with WireClient(cluster[1].bootstrap) as client:
        request = FindCoordinatorRequest(key_type=1, coordinator_keys=[transactional_id])
        return cluster[client.call(request, 4).coordinators[0].node_id]


def test_transactions_go_on_though_their_coordinator_is_killed_in_the_middle_of_one(
    headrace_cluster, topic, producer
):
    victim = coordinator(headrace_cluster, topic)
    names = [transact(producer, topic, 0), transact(producer, topic, 1, during=victim.kill)]
    names += [transact(producer, topic, number) for number in (2, 3)]
    victim.start()
    assert read(headrace_cluster, topic) == whole(*names)
