"""Replicas that catch up take no more than their throttle allows; replicas in sync take what they need."""

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import (
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)

from headrace.server.replica.throttle import leader_throttle
from headrace.testing import cluster as testing
from headrace.testing.wire import WireClient
from headrace.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from tests.server.clients import admin_of, create
from tests.server.replica.logs import log_end_offset
from tests.waiting import until


class HandClock:
    """Time that stands still until the test moves it."""

    def __init__(self):
        self.now = 100.0

    def monotonic(self):
        return self.now


async def test_what_was_sent_is_paid_off_at_the_rate(make_partition):
    clock = HandClock()
    throttle = leader_throttle(1, clock)
    partition = make_partition("orders", leader_replication_throttled_replicas="0:1,0:2")
    assert not throttle.covers(partition), "no rate, no throttle"
    throttle.limit(1000)
    assert throttle.covers(partition)
    throttle.count(3000)
    assert throttle.seconds_left() == 3.0
    clock.now += 2
    assert throttle.seconds_left() == 1.0
    throttle.limit(500)
    assert throttle.seconds_left() == 2.0
    clock.now += 60
    assert throttle.seconds_left() == 0.0
    throttle.count(500)
    assert throttle.seconds_left() == 1.0, "a quiet time gives no credit"
    throttle.limit(0)
    clock.now += 1000
    assert throttle.seconds_left() > 0, "a rate of 0 lets nothing through"


@pytest.mark.parametrize(("named", "covered"), [("*", True), ("0:1", True), ("0:2,1:1", False), ("", False)])
async def test_only_the_replicas_named_are_throttled(make_partition, named, covered):
    throttle = leader_throttle(1, HandClock())
    throttle.limit(1000)
    assert throttle.covers(make_partition("orders", leader_replication_throttled_replicas=named)) is covered


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    running = testing.threads(tmp_path_factory.mktemp("cluster"), 2, {"replica.fetch.max.bytes": 100_000})
    yield running
    running.stop()


def alter(cluster, kind, name, **settings):
    entries = [
        ConfigEntry(
            key.replace("_", "."),
            None if value is None else str(value),
            incremental_operation=AlterConfigOpType.DELETE if value is None else AlterConfigOpType.SET,
        )
        for key, value in settings.items()
    ]
    resource = ConfigResource(kind, name, incremental_configs=entries)
    admin = admin_of(cluster.bootstrap)
    admin.incremental_alter_configs([resource])[resource].result(30)


def move(cluster, topic, replicas):
    request = AlterPartitionReassignmentsRequest(
        topics=[ReassignableTopic(topic, [ReassignablePartition(0, replicas)])]
    )
    with WireClient(cluster[1].bootstrap) as client:
        response = client.call(request, 0)
    assert [p.error_code for t in response.responses for p in t.partitions] == [0]


def fill(cluster, topic, count):
    """One record at a time, so that each of them is a batch."""
    producer = Producer(
        {"bootstrap.servers": cluster.bootstrap, "acks": "all", "log_level": 0, "linger.ms": 0}
    )
    for _ in range(count):
        producer.produce(topic, b"x" * 10_000)
        producer.flush(30)
    assert len(producer) == 0


@pytest.mark.parametrize("side", ["leader", "follower"])
def test_a_new_replica_waits_while_others_go_on(cluster, side):
    topic, other = f"moved-{side}", f"other-{side}"
    all_of_them = {f"{side}.replication.throttled.replicas": "*"}
    create(cluster.bootstrap, topic, [1], config=all_of_them)
    create(cluster.bootstrap, other, [1, 2], config=all_of_them)
    fill(cluster, topic, 100)
    throttled = "1" if side == "leader" else "2"
    alter(cluster, ResourceType.BROKER, throttled, **{f"{side}_replication_throttled_rate": 1})
    move(cluster, topic, [1, 2])
    until(lambda: log_end_offset(cluster[2], topic) > 0, "the first records are there")
    # In sync from the start, and throttled by name: it must continue all the same. That takes many round trips.
    fill(cluster, other, 30)
    assert log_end_offset(cluster[2], other) == 30
    assert log_end_offset(cluster[2], topic) < log_end_offset(cluster[1], topic) == 100
    alter(cluster, ResourceType.BROKER, throttled, **{f"{side}_replication_throttled_rate": None})
    until(lambda: log_end_offset(cluster[2], topic) == 100, "the replica has everything")
