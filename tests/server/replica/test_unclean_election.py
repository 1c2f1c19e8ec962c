"""Unclean election by setting, on brokers in separate processes: a partition whose last in-sync replica is away comes back
with less, if the setting allows it."""

import pytest

from headrace.server.cluster.image import ResourceType
from headrace.testing import cluster as testing
from headrace.testing.wire import WireClient
from headrace.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from tests.server.clients import admin_of, create, partition_of, produce, values
from tests.server.replica.logs import log_bytes
from tests.waiting import until

TOPIC = "orders"
UNCLEAN = "unclean.leader.election.enable"


@pytest.fixture
def cluster(tmp_path):
    running = testing.processes(tmp_path, 3, {"replica.lag.time.max.ms": "2000"})
    yield running
    running.stop()


def state(broker):
    """The partition as one broker reports it."""
    return partition_of(broker.bootstrap, TOPIC)


def allow(broker, resource):
    """Set it as a client does that can name the default of all brokers, which librdkafka cannot."""
    wanted = AlterConfigsResource(*resource, configs=[AlterableConfig(UNCLEAN, 0, "true")])
    with WireClient(broker.bootstrap, timeout=60) as client:
        (answer,) = client.call(IncrementalAlterConfigsRequest([wanted]), 1).responses
    assert answer.error_code == 0, answer.error_message


def lose_the_last_in_sync(cluster):
    """Brokers 1 and 2 hold the partition; 1 alone has the last record and is gone, as is 2. Broker 3 holds nothing."""
    create(cluster[3].bootstrap, TOPIC, [1, 2])
    produce(cluster[3].bootstrap, TOPIC, b"on both")
    until(lambda: len(state(cluster[3]).isrs) == 2, "both are in sync")
    cluster[2].kill()
    until(lambda: state(cluster[3]).isrs == [1], "broker 1 is alone in sync")
    produce(cluster[3].bootstrap, TOPIC, b"on broker 1 only")
    cluster[1].kill()
    until(lambda: state(cluster[3]).leader == -1, "nobody leads")


def broker_2_is_up_and_does_not_lead(cluster):
    cluster[2].start()
    until(lambda: 2 in admin_of(cluster[3].bootstrap).list_topics(timeout=30).brokers, "broker 2 is known")
    assert state(cluster[3]).leader == -1
    assert state(cluster[3]).isrs == [1]


def broker_2_leads_with_what_it_has_and_1_follows(cluster):
    until(lambda: state(cluster[3]).leader == 2, "broker 2 leads")
    assert values(cluster[3].bootstrap, TOPIC) == [b"on both"]
    produce(cluster[3].bootstrap, TOPIC, b"after")
    cluster[1].start()
    until(lambda: set(state(cluster[3]).isrs) == {1, 2}, "broker 1 is in sync")
    assert values(cluster[3].bootstrap, TOPIC) == [b"on both", b"after"]
    assert log_bytes(cluster[1], TOPIC) == log_bytes(cluster[2], TOPIC)


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
