"""Every broker of a cluster decides by the same ACLs, and the controller trusts what brokers pass on to it."""

import pytest

from headrace.server.cluster.decisions import create_acls
from headrace.server.config.authorization import STANDARD
from headrace.server.security.acls import ALL, Acl, PatternType, Permission
from headrace.server.security.operations import CLUSTER, TOPIC, Operation, ResourceKind
from headrace.testing.cluster import threads
from headrace.testing.wire import WireClient, batch
from headrace.wire.errors import ErrorCode
from headrace.wire.messages import create_acls as ca
from headrace.wire.messages import create_topics as ct
from headrace.wire.messages import describe_acls as ds
from headrace.wire.messages import produce as pr
from headrace.wire.messages.api_versions import ApiVersionsRequest
from tests.waiting import until

ALICE, BROKERS = "User:alice", "User:ANONYMOUS"


def allow(kind, name, principal, operation):
    return Acl(kind, name, PatternType.LITERAL, principal, "*", operation, Permission.ALLOW)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    settings = {"authorizer.class.name": STANDARD, "allow.everyone.if.no.acl.found": "true"}
    with threads(tmp_path_factory.mktemp("cluster"), 2, settings) as running:
        controller = next(each for each in running if each.node.cluster.is_controller)

        async def lock(node):
            # With these, brokers may do nothing but what brokers do.
            acls = [
                allow(*CLUSTER, BROKERS, Operation.CLUSTER_ACTION),
                allow(*CLUSTER, ALICE, Operation.ALTER),
                allow(TOPIC, "*", ALICE, ALL),
                allow(ResourceKind.GROUP, "*", ALICE, ALL),
            ]
            await node.cluster.decide(create_acls(acls))

        controller.run(lock)
        until(lambda: all(len(each.node.cluster.image.acls) == 4 for each in running), "the ACLs")
        yield running


@pytest.fixture
def other(cluster):
    """The broker that is not the controller."""
    return next(each for each in cluster if not each.node.cluster.is_controller)


def client_of(broker, principal):
    wire = WireClient(broker.bootstrap)
    wire.call(ApiVersionsRequest("test", "1"), 4)
    port = wire.socket.getsockname()[1]

    async def log_in(node):
        (mine,) = [
            each
            for each in node.acceptors.connections
            if each.transport.get_extra_info("peername")[1] == port
        ]
        mine.identify(principal)

    broker.run(log_in)
    return wire


def test_a_request_passed_on_needs_the_clients_permission_and_no_more_of_the_broker(cluster, other):
    request = ct.CreateTopicsRequest([ct.CreatableTopic("passed-on", 1, 2)], 30_000)
    with client_of(other, ALICE) as alice:
        (made,) = alice.call(request, 7).topics
        assert (made.error_code, made.error_message) == (ErrorCode.NONE, None)
    with client_of(other, BROKERS) as somebody:
        denied = ct.CreateTopicsRequest([ct.CreatableTopic("denied", 1, 2)], 30_000)
        (refused,) = somebody.call(denied, 7).topics
        assert refused.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert "denied" not in other.node.cluster.image.topics


def test_an_acl_made_at_one_broker_counts_at_all(cluster, other):
    controller = next(each for each in cluster if each is not other)
    creation = ca.AclCreation(TOPIC, "shared", 3, "User:bob", "*", Operation.WRITE, 3)
    filter_ = ds.DescribeAclsRequest(2, "shared", 3, None, None, 1, 1)
    with client_of(other, ALICE) as alice:
        request = ct.CreateTopicsRequest([ct.CreatableTopic("shared", 1, 2)], 30_000)
        alice.call(request, 7)
        (made,) = alice.call(ca.CreateAclsRequest([creation]), 3).results
        assert made.error_code == ErrorCode.NONE
        assert [each.resource_name for each in alice.call(filter_, 3).resources] == ["shared"]
    until(lambda: len(controller.node.cluster.image.acls) == 5, "the ACL at the other broker")
    data = [pr.TopicProduceData("shared", partition_data=[pr.PartitionProduceData(0, batch(b"v"))])]
    denials = set()
    for broker in cluster:
        for user in ("User:bob", "User:eve"):
            with client_of(broker, user) as wire:
                (answer,) = wire.call(pr.ProduceRequest(None, 1, 30_000, data), 9).responses
                if answer.partition_responses[0].error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED:
                    denials.add((broker.node.broker_id, user))
    assert denials == {(1, "User:eve"), (2, "User:eve")}


def test_followers_fetch_by_the_permission_of_brokers(cluster, other):
    """acks=all is answered only when the follower has fetched."""
    with client_of(other, ALICE) as alice:
        alice.call(ct.CreateTopicsRequest([ct.CreatableTopic("replicated", 1, 2)], 30_000), 7)
    data = [pr.TopicProduceData("replicated", partition_data=[pr.PartitionProduceData(0, batch(b"v"))])]
    leader = cluster[other.node.cluster.image.partition("replicated", 0).leader]

    def written():
        with client_of(leader, ALICE) as alice:
            (answer,) = alice.call(pr.ProduceRequest(None, -1, 30_000, data), 9).responses
            return answer.partition_responses[0].error_code == ErrorCode.NONE

    until(written, "a write that both replicas have")
