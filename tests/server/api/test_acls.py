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
from headrace.server.identity import StartError
from headrace.server.security.operations import Operation, ResourceKind
from headrace.testing.broker import BrokerThread
from headrace.testing.wire import batch
from headrace.wire.errors import ErrorCode
from headrace.wire.messages import create_acls as ca
from headrace.wire.messages import delete_acls as de
from headrace.wire.messages import describe_acls as ds
from headrace.wire.messages import fetch as fe
from headrace.wire.messages import incremental_alter_configs as iac
from headrace.wire.messages import metadata as md
from headrace.wire.messages import produce as pr

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


def fetch_of(topic, session_id=0, epoch=0):
    named = [fe.FetchTopic(topic, partitions=[fe.FetchPartition(0, partition_max_bytes=1000)])]
    return fe.FetchRequest(
        max_wait_ms=0,
        min_bytes=1,
        session_id=session_id,
        session_epoch=epoch,
        topics=named if epoch == 0 else [],
    )


def codes_of(answer):
    return [each.error_code for topic in answer.responses for each in topic.partitions]


def test_an_acl_that_comes_in_the_middle_of_a_fetch_session_acts_on_the_next_fetch(broker, admin, wire):
    topic = broker.create_topic()
    first = wire.ask(fetch_of(topic), 12, fe.FetchResponse)
    session = first.session_id
    assert codes_of(first) == [ErrorCode.NONE]
    assert codes_of(wire.ask(fetch_of(topic, session, 1), 12, fe.FetchResponse)) == []
    create(admin, binding(topic, AclOperation.READ))
    # Nothing has been written: the partition itself has no news.
    denied = wire.ask(fetch_of(topic, session, 2), 12, fe.FetchResponse)
    assert codes_of(denied) == [ErrorCode.TOPIC_AUTHORIZATION_FAILED]
    for each in admin.delete_acls([everything()]).values():
        each.result(30)
    assert produced(broker, topic) is None
    allowed = wire.ask(fetch_of(topic, session, 3), 12, fe.FetchResponse)
    assert codes_of(allowed) == [ErrorCode.NONE]
    assert allowed.responses[0].partitions[0].records


def test_an_acl_acts_on_a_fetch_that_is_waiting(broker, admin, wire):
    topic = broker.create_topic()
    waiting = fetch_of(topic)
    waiting.max_wait_ms = 30_000
    number = wire.send(waiting, 12)
    create(admin, binding(topic, AclOperation.READ), binding(topic, permission=AclPermissionType.ALLOW))
    assert produced(broker, topic) is None
    answer = wire.receive(waiting, 12, number)
    assert codes_of(answer) == [ErrorCode.TOPIC_AUTHORIZATION_FAILED]


def test_a_produce_by_id_needs_the_same_permission_as_by_name(broker, admin, wire):
    topic = broker.create_topic()
    asked = md.MetadataRequest([md.MetadataRequestTopic(name=topic)])
    (known,) = wire.ask(asked, 12, md.MetadataResponse).topics
    data = [pr.PartitionProduceData(0, batch(b"v"))]

    def produce():
        by_id = pr.ProduceRequest(
            None, 1, 1000, [pr.TopicProduceData(topic_id=known.topic_id, partition_data=data)]
        )
        (answer,) = wire.ask(by_id, 13, pr.ProduceResponse).responses
        return answer.partition_responses[0].error_code

    assert produce() == ErrorCode.NONE
    create(admin, binding(topic))
    assert produce() == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    for each in admin.delete_acls([everything()]).values():
        each.result(30)
    assert produce() == ErrorCode.NONE


AUDIT = "kafka.authorizer.logger"


def set_audit_level(wire, level):
    config = iac.AlterableConfig(AUDIT, 0, level) if level else iac.AlterableConfig(AUDIT, 1, None)
    request = iac.IncrementalAlterConfigsRequest([iac.AlterConfigsResource(8, "1", [config])])
    (answer,) = wire.ask(request, 1, iac.IncrementalAlterConfigsResponse).responses
    assert answer.error_code == ErrorCode.NONE


def test_the_audit_log_has_kafkas_line_for_each_denial_and_when_switched_on_for_all(
    broker, admin, wire, caplog
):
    allowed, denied = broker.create_topic(), broker.create_topic()
    create(admin, binding(denied, AclOperation.READ))
    wire.ask(fetch_of(allowed), 12, fe.FetchResponse)
    try:
        set_audit_level(wire, "INFO")
        caplog.clear()
        wire.ask(fetch_of(denied), 12, fe.FetchResponse)
        wire.ask(fetch_of(allowed), 12, fe.FetchResponse)
        (line,) = [each for each in caplog.records if each.name == AUDIT]
        assert (line.levelname, line.getMessage()) == (
            "INFO",
            f"Principal = User:ANONYMOUS is Denied operation = READ from host = 127.0.0.1 on resource = Topic:LITERAL:{denied} "
            "for request = Fetch with resourceRefCount = 1 based on rule MatchingAcl(acl=StandardAcl[resourceType=TOPIC, "
            f"resourceName={denied}, patternType=LITERAL, principal=User:ANONYMOUS, host=*, operation=READ, "
            "permissionType=DENY])",
        )
        set_audit_level(wire, "DEBUG")
        caplog.clear()
        wire.ask(fetch_of(allowed), 12, fe.FetchResponse)
        wire.ask(fetch_of(allowed), 12, fe.FetchResponse)
        lines = [each for each in caplog.records if each.name == AUDIT and "Fetch" in each.getMessage()]
        assert [each.getMessage() for each in lines] == [
            f"Principal = User:ANONYMOUS is Allowed operation = READ from host = 127.0.0.1 on resource = Topic:LITERAL:{allowed} "
            "for request = Fetch with resourceRefCount = 1 based on rule DefaultAllow"
        ] * 2
        set_audit_level(wire, "ERROR")
        caplog.clear()
        wire.ask(fetch_of(denied), 12, fe.FetchResponse)
        assert [each for each in caplog.records if each.name == AUDIT] == []
    finally:
        set_audit_level(wire, None)


def test_while_the_audit_log_is_on_what_a_client_repeats_has_a_line_each_time(broker, wire, caplog):
    topic = broker.create_topic(partitions=3)

    def produce():
        data = [pr.TopicProduceData(topic, partition_data=[pr.PartitionProduceData(0, batch(b"v"))])]
        (answer,) = wire.ask(pr.ProduceRequest(None, 1, 1000, data), 9, pr.ProduceResponse).responses
        assert answer.partition_responses[0].error_code == ErrorCode.NONE

    def fetch():
        asked = [fe.FetchPartition(number, partition_max_bytes=1000) for number in range(3)]
        request = fe.FetchRequest(max_wait_ms=0, topics=[fe.FetchTopic(topic, partitions=asked)])
        assert codes_of(wire.ask(request, 12, fe.FetchResponse)) == [ErrorCode.NONE] * 3

    for _ in range(3):
        produce()
        fetch()
    try:
        set_audit_level(wire, "DEBUG")
        caplog.clear()
        for _ in range(3):
            produce()
            fetch()
        said = [
            each.getMessage() for each in caplog.records if each.name == AUDIT and topic in each.getMessage()
        ]
        assert [line.split("for request = ")[1].split()[0] for line in said] == ["Produce", "Fetch"] * 3
    finally:
        set_audit_level(wire, None)
    caplog.clear()
    produce()
    fetch()
    assert not [each for each in caplog.records if each.name == AUDIT]


def test_the_audit_log_leaves_out_what_a_client_did_not_ask_for(broker, admin, wire, caplog):
    hidden = broker.create_topic()
    create(admin, binding(hidden, AclOperation.DESCRIBE))
    try:
        set_audit_level(wire, "INFO")
        caplog.clear()
        listed = wire.ask(md.MetadataRequest(None), 12, md.MetadataResponse).topics
        assert hidden not in {each.name for each in listed}
        assert [each for each in caplog.records if each.name == AUDIT] == []
        wire.ask(md.MetadataRequest([md.MetadataRequestTopic(name=hidden)]), 12, md.MetadataResponse)
        assert len([each for each in caplog.records if each.name == AUDIT]) == 1
    finally:
        set_audit_level(wire, None)


class NobodyWrites:
    """An authorizer of one's own."""

    def __init__(self, settings):
        self.settings = settings

    def authorize(self, principal, host, operation, resource):
        return operation is not Operation.WRITE or resource.kind is not ResourceKind.TOPIC


def test_an_authorizer_of_ones_own_decides(tmp_path, wire_to):
    with BrokerThread(tmp_path, {"authorizer.class.name": f"{__name__}.NobodyWrites"}) as running:
        topic = running.create_topic()
        assert produced(running, topic).code() == KafkaError.TOPIC_AUTHORIZATION_FAILED
        wire = wire_to(running)
        assert codes_of(wire.ask(fetch_of(topic), 12, fe.FetchResponse)) == [ErrorCode.NONE]
        made = wire.ask(ca.CreateAclsRequest([creation()]), 3, ca.CreateAclsResponse)
        assert [(each.error_code, each.error_message) for each in made.results] == [
            (ErrorCode.SECURITY_DISABLED, "The broker's own authorizer does not decide by ACLs.")
        ]


def test_a_broker_whose_authorizer_cannot_be_had_does_not_start(tmp_path):
    with pytest.raises(StartError, match=r"authorizer\.class\.name=com\.acme\.Locks cannot be used"):
        BrokerThread(tmp_path, {"authorizer.class.name": "com.acme.Locks"}).start()
