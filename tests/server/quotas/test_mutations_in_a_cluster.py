"""Created and deleted partitions count once in a cluster: at the controller, for the client that asked, whichever broker it asked."""

import pytest

from headrace.server.cluster.passed_on import Client, client_of, for_client
from headrace.testing.broker import BrokerThread
from headrace.testing.cluster import Cluster
from headrace.wire.errors import ErrorCode
from headrace.wire.messages import create_partitions as cp
from headrace.wire.messages import create_topics as ct
from headrace.wire.messages import delete_topics as dt
from headrace.wire.messages import metadata as md
from tests.server.api import quota_client
from tests.waiting import until

EXCEEDED = ErrorCode.THROTTLING_QUOTA_EXCEEDED


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with Cluster(BrokerThread, tmp_path_factory.mktemp("cluster"), 3) as running:
        yield running


@pytest.fixture
def client(cluster):
    opened = []

    def connect(broker, client_id="app"):
        opened.append(quota_client.Client(broker.bootstrap, client_id))
        return opened[-1]

    yield connect
    for each in opened:
        each.socket.close()


def limit(cluster, entity, rate):
    """Known to every broker when this returns: each then meters that client."""
    quota_client.set_quota(cluster[1].bootstrap, entity, controller_mutation_rate=rate)
    until(lambda: all(each.run(quotas) == cluster[1].run(quotas) for each in cluster), "all know the quota")


async def quotas(node):
    return node.cluster.image.quotas


def others(cluster):
    """The brokers that are not the controller."""
    controller = cluster[1].node.cluster.image.controller_id
    return [cluster[number] for number in (1, 2, 3) if number != controller]


def create(wire, *names, partitions=20, version=7):
    topics = [ct.CreatableTopic(name, partitions, 1) for name in names]
    reply = wire.call(ct.CreateTopicsRequest(topics), version)
    return {each.name: ErrorCode(each.error_code).name for each in reply.topics}, reply.throttle_time_ms


def test_a_client_gains_nothing_by_asking_several_brokers(cluster, client):
    limit(cluster, (("client-id", "greedy"),), 0.01)
    first, second = others(cluster)
    made, wait = create(client(first, "greedy"), "one", "two")
    assert made == {"one": "NONE", "two": EXCEEDED.name}
    assert wait > 60_000
    for broker in cluster:
        assert create(client(broker, "greedy"), "three")[0] == {"three": EXCEEDED.name}
    grown = cp.CreatePartitionsRequest([cp.CreatePartitionsTopic("one", 21)], 30_000)
    assert client(second, "greedy").call(grown, 3).results[0].error_code == EXCEEDED
    gone = dt.DeleteTopicsRequest(topics=[dt.DeleteTopicState("one")])
    assert client(second, "greedy").call(gone, 6).responses[0].error_code == EXCEEDED
    wanted = md.MetadataRequest([md.MetadataRequestTopic(name="first-use")], allow_auto_topic_creation=True)
    found = client(first, "greedy").call(wanted, 12)
    assert [each.error_code for each in found.topics] == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    # Another client, through the same brokers and their connection to the controller, does not wait.
    assert create(client(first, "modest"), "three") == ({"three": "NONE"}, 0)


def test_the_broker_that_passed_a_request_on_mutes_its_client(cluster, client):
    limit(cluster, (("client-id", "muted"),), 0.01)
    asked, _ = others(cluster)
    wire = client(asked, "muted")
    assert create(wire, "old-1", "old-2", version=5)[0] == {"old-1": "NONE", "old-2": "NONE"}
    wire.send(md.MetadataRequest([]), 12)

    async def muted(node):
        return [each.muted for each in node.acceptors.connections if each.allowance is not None]

    until(lambda: any(asked.run(muted)))
    assert create(client(asked, "another"), "old-3")[0] == {"old-3": "NONE"}


def test_a_users_clients_share_its_quota_on_all_brokers(cluster, client):
    limit(cluster, (("user", "ANONYMOUS"),), 0.01)
    first, second = others(cluster)
    assert create(client(first, "a"), "of-a")[0] == {"of-a": "NONE"}
    assert create(client(second, "b"), "of-b")[0] == {"of-b": EXCEEDED.name}


@pytest.mark.parametrize("name", ["", "app", "two words", "for x", "ü/%", "User:CN=a,OU=b"])
def test_names_arrive_as_they_were(name):
    client = Client(name, f"{name} too")
    assert client_of(for_client(b"headrace-broker-1", client).decode()) == client
    assert client_of("headrace-broker-1") is None


def test_a_name_that_fills_the_header_still_arrives():
    written = for_client(b"headrace-broker-1", Client("ü" * 20_000, "ü" * 20_000))
    assert len(written) < 32_767
    assert client_of(written.decode()) is not None
