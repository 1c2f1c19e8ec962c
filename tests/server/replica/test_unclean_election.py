"""Unclean election by setting, on brokers in processes of their own: a partition whose last in-sync replica is away comes back
with less, when somebody says that it may."""

import pytest
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from headrace.server.cluster.image import ResourceType
from headrace.testing import cluster as testing
from headrace.testing.wire import WireClient
from headrace.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from tests.waiting import until

TOPIC = "orders"
UNCLEAN = "unclean.leader.election.enable"


@pytest.fixture
def cluster(tmp_path):
    running = testing.processes(tmp_path, 3, {"replica.lag.time.max.ms": "2000"})
    yield running
    running.stop()


def admin_of(broker):
    return AdminClient({"bootstrap.servers": broker.bootstrap, "log_level": 0})


def state(broker):
    """The partition as one broker tells it."""
    return admin_of(broker).list_topics(TOPIC, 30).topics[TOPIC].partitions[0]


def produce(broker, *values):
    producer = Producer({"bootstrap.servers": broker.bootstrap, "acks": "all", "log_level": 0})
    failures = []
    for value in values:
        producer.produce(TOPIC, value, on_delivery=lambda error, _: failures.append(error) if error else None)
    assert producer.flush(90) == 0
    assert failures == []


def read(broker):
    settings = {"group.id": "r", "enable.partition.eof": True, "enable.auto.commit": False, "log_level": 0}
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, **settings})
    consumer.assign([TopicPartition(TOPIC, 0, 0)])
    found = []
    while True:
        message = consumer.poll(60)
        assert message is not None
        if message.error():
            assert message.error().code() == KafkaError._PARTITION_EOF
            consumer.close()
            return found
        found.append(message.value())


def allow(broker, resource):
    """Set it as a client does that can name the default of all brokers, which librdkafka cannot."""
    wanted = AlterConfigsResource(*resource, configs=[AlterableConfig(UNCLEAN, 0, "true")])
    with WireClient(broker.bootstrap, timeout=60) as client:
        (answer,) = client.call(IncrementalAlterConfigsRequest([wanted]), 1).responses
    assert answer.error_code == 0, answer.error_message


def lose_the_last_in_sync(cluster):
    """Brokers 1 and 2 hold the partition; 1 alone has the last record and is gone, as is 2. Broker 3 holds nothing."""
    admin = admin_of(cluster[3])
    admin.create_topics([NewTopic(TOPIC, 1, replica_assignment=[[1, 2]])])[TOPIC].result(60)
    produce(cluster[3], b"on both")
    until(lambda: len(state(cluster[3]).isrs) == 2, "both are in sync")
    cluster[2].kill()
    until(lambda: state(cluster[3]).isrs == [1], "broker 1 is alone in sync")
    produce(cluster[3], b"on broker 1 only")
    cluster[1].kill()
    until(lambda: state(cluster[3]).leader == -1, "nobody leads")


def broker_2_is_up_and_does_not_lead(cluster):
    cluster[2].start()
    until(lambda: 2 in admin_of(cluster[3]).list_topics(timeout=30).brokers, "broker 2 is known")
    assert state(cluster[3]).leader == -1
    assert state(cluster[3]).isrs == [1]


def broker_2_leads_with_what_it_has_and_1_follows(cluster):
    until(lambda: state(cluster[3]).leader == 2, "broker 2 leads")
    assert read(cluster[3]) == [b"on both"]
    produce(cluster[3], b"after")
    cluster[1].start()
    until(lambda: set(state(cluster[3]).isrs) == {1, 2}, "broker 1 is in sync")
    assert read(cluster[3]) == [b"on both", b"after"]
    logs = [next((cluster[n].data / f"{TOPIC}-0").glob("*.log")).read_bytes() for n in (1, 2)]
    assert logs[0] == logs[1]


RESOURCES = {
    "the topic": (ResourceType.TOPIC, TOPIC),
    "all brokers": (ResourceType.BROKER, ""),
}


@pytest.mark.parametrize("resource", RESOURCES.values(), ids=RESOURCES.keys())
def test_a_live_replica_leads_as_soon_as_the_setting_allows_it(cluster, resource):
    lose_the_last_in_sync(cluster)
    broker_2_is_up_and_does_not_lead(cluster)
    allow(cluster[3], resource)
    broker_2_leads_with_what_it_has_and_1_follows(cluster)


@pytest.mark.parametrize("resource", RESOURCES.values(), ids=RESOURCES.keys())
def test_a_replica_that_returns_leads_when_the_setting_was_changed_before(cluster, resource):
    lose_the_last_in_sync(cluster)
    allow(cluster[3], resource)
    cluster[2].start()
    broker_2_leads_with_what_it_has_and_1_follows(cluster)
