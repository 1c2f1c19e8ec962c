"""ACLs over the wire: made, shown and removed as in Kafka, kept over a restart, and in force at once."""

import pytest
from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from headrace.server.config.authorization import STANDARD
from headrace.testing.broker import BrokerThread
from headrace.wire.errors import ErrorCode
from headrace.wire.messages import create_acls as ca
from headrace.wire.messages import delete_acls as de
from headrace.wire.messages import describe_acls as ds

ANONYMOUS = "User:ANONYMOUS"
OPEN = {"authorizer.class.name": STANDARD, "allow.everyone.if.no.acl.found": "true"}
"""There is no login yet, so everyone is ANONYMOUS, who may do what no ACL forbids."""


@pytest.fixture(scope="module")
def broker(tmp_path_factory):
    running = BrokerThread(tmp_path_factory.mktemp("broker"), OPEN).start()
    yield running
    running.stop()


@pytest.fixture
def admin(broker):
    client = AdminClient({"bootstrap.servers": broker.bootstrap})
    yield client
    for each in client.delete_acls([everything()]).values():
        each.result(30)


def everything():
    return AclBindingFilter(
        ResourceType.ANY,
        None,
        ResourcePatternType.ANY,
        None,
        None,
        AclOperation.ANY,
        AclPermissionType.ANY,
    )


def binding(
    name,
    operation=AclOperation.WRITE,
    permission=AclPermissionType.DENY,
    pattern=ResourcePatternType.LITERAL,
    principal=ANONYMOUS,
    host="*",
):
    return AclBinding(ResourceType.TOPIC, name, pattern, principal, host, operation, permission)


def create(admin, *bindings):
    for each in admin.create_acls(list(bindings)).values():
        each.result(30)


def described(admin, wanted=None):
    return admin.describe_acls(wanted or everything()).result(30)


def produced(broker, topic):
    """The error, or None."""
    told = []
    producer = Producer({"bootstrap.servers": broker.bootstrap, "log_level": 0})
    producer.produce(topic, b"v", on_delivery=lambda error, _: told.append(error))
    assert producer.flush(30) == 0
    return told[0]


def test_a_client_creates_describes_and_deletes_acls(admin):
    literal, prefixed = binding("a"), binding("pre", pattern=ResourcePatternType.PREFIXED)
    create(admin, literal, prefixed)
    create(admin, literal)  # again, which changes nothing
    assert sorted(described(admin), key=repr) == sorted([literal, prefixed], key=repr)
    match = AclBindingFilter(
        ResourceType.TOPIC,
        "prelude",
        ResourcePatternType.MATCH,
        None,
        None,
        AclOperation.ANY,
        AclPermissionType.ANY,
    )
    assert described(admin, match) == [prefixed]
    (removed,) = admin.delete_acls([match]).values()
    assert removed.result(30) == [prefixed]
    assert described(admin) == [literal]


def test_an_acl_is_in_force_when_it_has_been_made_and_not_when_it_is_gone(broker, admin):
    topic = broker.create_topic()
    assert produced(broker, topic) is None
    create(admin, binding(topic))
    assert produced(broker, topic).code() == KafkaError.TOPIC_AUTHORIZATION_FAILED
    for each in admin.delete_acls([everything()]).values():
        each.result(30)
    assert produced(broker, topic) is None


def test_acls_are_there_after_a_restart(tmp_path):
    running = BrokerThread(tmp_path, OPEN).start()
    topic = running.create_topic()
    admin = AdminClient({"bootstrap.servers": running.bootstrap})
    create(admin, binding(topic))
    running.stop()
    running.start()
    try:
        assert produced(running, topic).code() == KafkaError.TOPIC_AUTHORIZATION_FAILED
        assert described(admin) == [binding(topic)]
    finally:
        running.stop()


def test_a_denied_client_may_neither_see_nor_change_acls(broker, admin, wire):
    create(admin, binding("t"))
    topic = broker.create_topic()
    denial = AclBinding(
        ResourceType.BROKER,
        "kafka-cluster",
        ResourcePatternType.LITERAL,
        ANONYMOUS,
        "10.9.9.9",
        AclOperation.ALTER,
        AclPermissionType.ALLOW,
    )
    create(admin, denial)  # Once the cluster has an ACL for somebody, nobody else has permission.
    try:
        request = ds.DescribeAclsRequest(1, None, 1, None, None, 1, 1)
        shown = wire.ask(request, 3, ds.DescribeAclsResponse)
        assert (shown.error_code, shown.resources) == (ErrorCode.CLUSTER_AUTHORIZATION_FAILED, [])
        with pytest.raises(KafkaException, match="CLUSTER_AUTHORIZATION_FAILED"):
            create(admin, binding(topic))
        with pytest.raises(KafkaException, match="CLUSTER_AUTHORIZATION_FAILED"):
            next(iter(admin.delete_acls([everything()]).values())).result(30)
        assert produced(broker, topic) is None
        assert len(broker.run(image_of).acls) == 2
    finally:
        broker.run(remove_all)


async def image_of(node):
    return node.cluster.image


async def remove_all(node):
    from headrace.server.cluster.decisions import delete_acls
    from headrace.server.security.acls import AclFilter

    await node.cluster.decide(delete_acls([AclFilter()]))


def creation(kind=2, name="t", pattern=3, principal="User:a", host="*", operation=3, permission=3):
    return ca.AclCreation(kind, name, pattern, principal, host, operation, permission)


@pytest.mark.parametrize("version", [1, 2, 3])
@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        (creation(kind=1), "Invalid resourceType ANY"),
        (creation(kind=99), "Invalid resourceType UNKNOWN"),
        (creation(pattern=1), "Invalid patternType ANY"),
        (creation(pattern=2), "Invalid patternType MATCH"),
        (creation(operation=1), "Invalid operation ANY"),
        (creation(operation=77), "Invalid operation UNKNOWN"),
        (creation(permission=1), "Invalid permissionType ANY"),
        (creation(name=""), "Invalid empty resource name"),
        (creation(kind=4, name="other"), "The only valid name for the CLUSTER resource is kafka-cluster"),
        (
            creation(principal="alice"),
            "Could not parse principal from `alice` "
            "(no colon is present separating the principal type from the principal name)",
        ),
    ],
)
def test_an_acl_that_makes_no_sense_is_refused_for_itself(wire, admin, wrong, sentence, version):
    request = ca.CreateAclsRequest([creation(name="good"), wrong])
    good, bad = wire.ask(request, version, ca.CreateAclsResponse).results
    assert (good.error_code, good.error_message) == (ErrorCode.NONE, None)
    assert (bad.error_code, bad.error_message) == (ErrorCode.INVALID_REQUEST, sentence)
    assert [each.name for each in described(admin)] == ["good"]


def test_a_filter_that_makes_no_sense_removes_nothing(wire, admin):
    create(admin, binding("t"))
    request = de.DeleteAclsRequest(
        [
            de.DeleteAclsFilter(99, None, 1, None, None, 1, 1),
            de.DeleteAclsFilter(1, None, 1, None, None, 99, 1),
        ]
    )
    first, second = wire.ask(request, 3, de.DeleteAclsResponse).filter_results
    assert (first.error_code, first.error_message) == (ErrorCode.INVALID_REQUEST, "Unknown patternFilter.")
    assert (second.error_code, second.error_message) == (ErrorCode.INVALID_REQUEST, "Unknown entryFilter.")
    answer = wire.ask(ds.DescribeAclsRequest(1, None, 0, None, None, 1, 1), 3, ds.DescribeAclsResponse)
    assert answer.error_code == ErrorCode.INVALID_REQUEST
    assert len(described(admin)) == 1


def test_an_acl_that_two_filters_pick_is_told_to_both(wire, admin):
    create(admin, binding("t"))
    everything_twice = [de.DeleteAclsFilter(1, None, 1, None, None, 1, 1)] * 2
    results = wire.ask(de.DeleteAclsRequest(everything_twice), 2, de.DeleteAclsResponse).filter_results
    assert [[acl.resource_name for acl in each.matching_acls] for each in results] == [["t"], ["t"]]
    assert described(admin) == []


def test_without_an_authorizer_there_are_no_acls(tmp_path, wire_to):
    with BrokerThread(tmp_path) as running:
        wire = wire_to(running)
        made = wire.ask(ca.CreateAclsRequest([creation()]), 3, ca.CreateAclsResponse)
        assert [each.error_code for each in made.results] == [ErrorCode.SECURITY_DISABLED]
        removed = wire.ask(de.DeleteAclsRequest([de.DeleteAclsFilter()]), 3, de.DeleteAclsResponse)
        assert [each.error_code for each in removed.filter_results] == [ErrorCode.SECURITY_DISABLED]
        shown = wire.ask(ds.DescribeAclsRequest(), 3, ds.DescribeAclsResponse)
        assert (shown.error_code, shown.error_message) == (
            ErrorCode.SECURITY_DISABLED,
            "No Authorizer is configured on the broker",
        )
