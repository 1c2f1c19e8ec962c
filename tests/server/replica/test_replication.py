"""Three brokers, one log: followers copy it, the high watermark waits for them, another takes over when one goes."""

import pytest
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from headrace.testing import cluster as testing
from tests.waiting import until


@pytest.fixture
def cluster(tmp_path):
    running = testing.threads(tmp_path, 3, {"replica.lag.time.max.ms": "2000"})
    yield running
    running.stop()


def create(cluster, name, partitions=1, **config):
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    admin.create_topics([NewTopic(name, partitions, 3, config=config)])[name].result(30)


def leader(cluster, topic, partition=0):
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap, "log_level": 0})
    return admin.list_topics(topic, 30).topics[topic].partitions[partition]


def produce(cluster, topic, values, **settings):
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "acks": "all", "log_level": 0, **settings})
    failures = []
    for value in values:
        producer.produce(
            topic, value, partition=0, on_delivery=lambda e, _: failures.append(e) if e else None
        )
        producer.poll(0)
    assert producer.flush(60) == 0
    assert failures == []


def read(cluster, topic):
    consumer = Consumer(
        {
            "bootstrap.servers": cluster.bootstrap,
            "group.id": "r",
            "enable.partition.eof": True,
            "enable.auto.commit": False,
            "log_level": 0,
        }
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    found = []
    while True:
        message = consumer.poll(30)
        assert message is not None
        if message.error():
            assert message.error().code() == KafkaError._PARTITION_EOF
            consumer.close()
            return found
        found.append(message.value())


def logs(cluster, topic):
    return [
        b"".join(p.read_bytes() for p in sorted((cluster[n].data / f"{topic}-0").glob("*.log")))
        for n in (1, 2, 3)
    ]


def test_every_replica_holds_the_same_bytes(cluster):
    create(cluster, "same")
    values = [b"%d" % n for n in range(2000)]
    produce(cluster, "same", values)
    assert read(cluster, "same") == values
    until(lambda: len(set(logs(cluster, "same"))) == 1)
    until(lambda: set(leader(cluster, "same").isrs) == {1, 2, 3})


def test_another_broker_leads_when_one_stops_and_the_returning_one_catches_up(cluster):
    create(cluster, "moving", **{"min.insync.replicas": "2"})
    produce(cluster, "moving", [b"before %d" % n for n in range(500)])
    first = leader(cluster, "moving").leader
    cluster[first].stop()
    until(lambda: leader(cluster, "moving").leader not in (first, -1))
    produce(cluster, "moving", [b"after %d" % n for n in range(500)])
    expected = [b"before %d" % n for n in range(500)] + [b"after %d" % n for n in range(500)]
    assert read(cluster, "moving") == expected
    cluster[first].start()
    until(lambda: set(leader(cluster, "moving").isrs) == {1, 2, 3})
    until(lambda: len(set(logs(cluster, "moving"))) == 1)


def test_with_one_replica_left_acks_all_is_refused_when_two_must_be_in_sync(cluster):
    create(cluster, "strict", **{"min.insync.replicas": "2"})
    produce(cluster, "strict", [b"x"])
    last = leader(cluster, "strict").leader
    for number in {1, 2, 3} - {last}:
        cluster[number].stop()
    until(lambda: leader(cluster, "strict").isrs == [last])
    producer = Producer(
        {
            "bootstrap.servers": cluster[last].bootstrap,
            "acks": "all",
            "message.timeout.ms": 3000,
            "log_level": 0,
        }
    )
    errors = []
    producer.produce("strict", b"y", on_delivery=lambda error, _: errors.append(error))
    producer.flush(30)
    assert errors[0] is not None
    assert read(cluster, "strict") == [b"x"]


def test_a_follower_that_lost_its_session_returns_to_the_isr_of_a_quiet_partition(cluster):
    create(cluster, "quiet")
    produce(cluster, "quiet", [b"x"])
    first = leader(cluster, "quiet").leader
    follower = next(number for number in (1, 2, 3) if number != first)

    async def lose_session(node):
        epoch = node.cluster.broker_epoch
        node.cluster._store._writer.transport.abort()
        return epoch

    async def epoch_of(node):
        return node.cluster.broker_epoch

    before = cluster[follower].run(lose_session)
    until(lambda: cluster[follower].run(epoch_of) != before)
    until(lambda: set(leader(cluster, "quiet").isrs) == {1, 2, 3})
