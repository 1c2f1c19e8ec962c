"""Quotas in a cluster: every broker has them at once, and none of them holds up replication."""

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from headrace.testing import cluster as testing
from headrace.wire.errors import ErrorCode
from headrace.wire.messages import create_topics as ct
from headrace.wire.messages import describe_client_quotas as dcq
from tests.server.api.quota_client import Client, set_quota
from tests.waiting import until


@pytest.fixture
def cluster(tmp_path):
    running = testing.threads(tmp_path, 3)
    yield running
    running.stop()


def follower(cluster):
    """A broker that is not the controller."""
    for number in (1, 2, 3):
        if not cluster[number].node.cluster.is_controller:
            return cluster[number]
    raise AssertionError("every broker is the controller")


def test_tiny_quotas_for_everybody_do_not_hold_up_replication(cluster):
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap, "client.id": "operator"})
    admin.create_topics([NewTopic("copied", 3, 3, config={"min.insync.replicas": "3"})])["copied"].result(60)
    # The producer has a quota of its own, so that it gets through; everybody else, brokers included, next to nothing.
    set_quota(cluster[1].bootstrap, [("client-id", "fast")], producer_byte_rate=1e12, request_percentage=1e6)
    tiny = {"producer_byte_rate": 1, "consumer_byte_rate": 1, "request_percentage": 1e-9}
    set_quota(cluster[1].bootstrap, [("client-id", None)], **tiny)
    for number in (1, 2, 3):
        until(lambda broker=cluster[number]: broker.node.engines.quotas.in_force)
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "acks": "all", "client.id": "fast"})
    failures = []
    for number in range(300):  # far more than followers could take of their quota in the time
        producer.produce(
            "copied",
            bytes(1000),
            partition=number % 3,
            on_delivery=lambda e, _: failures.append(e) if e else None,
        )
    assert producer.flush(90) == 0
    assert failures == []


def test_every_broker_takes_changes_and_shows_them(cluster):
    set_quota(follower(cluster).bootstrap, [("user", "ada")], producer_byte_rate=1e9)
    for number in (1, 2, 3):
        broker = cluster[number]
        until(lambda broker=broker: broker.node.engines.quotas.in_force)
        with Client(broker.bootstrap, "operator") as client:
            (entry,) = client.call(dcq.DescribeClientQuotasRequest([], False), 1).entries
        assert [(value.key, value.value) for value in entry.values] == [("producer_byte_rate", 1e9)]


def test_a_broker_that_passes_a_request_on_counts_it_for_its_client(cluster):
    broker = follower(cluster)
    set_quota(broker.bootstrap, [("client-id", "maker")], controller_mutation_rate=0.1)
    with Client(broker.bootstrap, "maker") as client:
        topics = [ct.CreatableTopic(name, 30, 1) for name in ("first", "second")]
        reply = client.call(ct.CreateTopicsRequest(topics, 60_000), 7)
    assert {each.name: each.error_code for each in reply.topics} == {
        "first": 0,
        "second": ErrorCode.THROTTLING_QUOTA_EXCEEDED,
    }
    assert reply.throttle_time_ms > 0
