"""Consumers that name their rack read from a replica in it (KIP-392)."""

import json
import time

import pytest
from confluent_kafka import Consumer, TopicPartition

from headrace.server.config.broker import BrokerConfig
from headrace.server.config.definition import ConfigError
from headrace.testing import cluster as testing
from headrace.testing.topics import unique_name
from headrace.testing.wire import WireClient
from headrace.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from headrace.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.server import clients


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    running = testing.threads(
        tmp_path_factory.mktemp("cluster"),
        3,
        {"replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector"},
        racks=("a", "b", "c"),
    )
    yield running
    running.stop()


def create(cluster, replicas):
    name = unique_name()
    clients.create(cluster.bootstrap, name, replicas)
    clients.produce(cluster.bootstrap, name, *(b"%d" % number for number in range(5)))
    return name


def fetch(cluster, broker, topic, *, rack, offset=0, version=12, max_wait_ms=30_000):
    with WireClient(cluster[broker].bootstrap) as client:
        metadata = client.call(MetadataRequest([MetadataRequestTopic(name=topic)]), 12)
        request = FetchRequest(
            max_wait_ms=max_wait_ms,
            min_bytes=1,
            rack_id=rack,
            topics=[
                FetchTopic(
                    topic=topic,
                    topic_id=metadata.topics[0].topic_id,
                    partitions=[FetchPartition(0, fetch_offset=offset, partition_max_bytes=1 << 20)],
                )
            ],
        )
        (reply,) = client.call(request, version).responses[0].partitions
    return reply


@pytest.mark.parametrize("version", [11, 12, 17])
def test_the_leader_names_the_replica_in_the_consumers_rack_at_once(cluster, version):
    topic = create(cluster, [1, 2, 3])
    for rack, nearest in (("b", 2), ("c", 3)):
        reply = fetch(cluster, 1, topic, rack=rack, version=version)
        assert (reply.error_code, reply.preferred_read_replica, reply.records or b"") == (0, nearest, b"")
        # That replica serves; it may not know the latest high watermark yet.
        assert fetch(cluster, nearest, topic, rack=rack, version=version).records


@pytest.mark.parametrize(
    ("rack", "replicas"),
    [("a", [1, 2]), ("elsewhere", [1, 2]), ("", [1, 2]), ("c", [1, 2])],
    ids=["the leader's", "unknown", "none", "without a replica"],
)
def test_the_leader_serves_who_has_nobody_nearer(cluster, rack, replicas):
    reply = fetch(cluster, 1, create(cluster, replicas), rack=rack)
    assert reply.preferred_read_replica == -1
    assert reply.records


def test_a_replica_that_has_not_got_the_offset_is_not_named(cluster):
    reply = fetch(cluster, 1, create(cluster, [1, 2]), rack="b", offset=99)
    assert reply.preferred_read_replica == -1
    assert reply.error_code == 1  # OFFSET_OUT_OF_RANGE, by the leader's own word


def test_versions_without_racks_are_served_by_the_leader(cluster):
    assert fetch(cluster, 1, create(cluster, [1, 2]), rack="b", version=10).records


def test_a_consumer_reads_everything_from_the_follower_next_to_it(cluster):
    topic = create(cluster, [1, 2])
    read_from = set()

    def note(statistics):
        for partition in (
            json.loads(statistics)["topics"].get(topic, {"partitions": {}})["partitions"].values()
        ):
            read_from.add(partition["broker"])

    consumer = Consumer(
        {
            "bootstrap.servers": cluster.bootstrap,
            "group.id": "near",
            "client.rack": "b",
            "enable.auto.commit": False,
            "log_level": 0,
            "statistics.interval.ms": 100,
            "stats_cb": note,
        }
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    found = []
    deadline = time.monotonic() + 60
    while (len(found) < 10 or 2 not in read_from) and time.monotonic() < deadline:
        message = consumer.poll(1)
        if message is not None:
            assert message.error() is None
            found.append(message.value())
            if len(found) == 5:
                clients.produce(cluster.bootstrap, topic, *(b"%d" % number for number in range(5, 10)))
    consumer.close()
    assert found == [b"%d" % number for number in range(10)]
    assert 2 in read_from


def test_a_selector_that_is_not_known_is_refused_with_those_that_are():
    with pytest.raises(ConfigError, match="RackAwareReplicaSelector"):
        BrokerConfig.load({}, {"replica.selector.class": "com.example.Mine"})
    short = BrokerConfig.load({}, {"replica.selector.class": "RackAwareReplicaSelector"})
    assert short.string("replica.selector.class") == "RackAwareReplicaSelector"
