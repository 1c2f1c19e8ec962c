"""The table of permissions: what every request needs, as Kafka 4.3 asks for it, and where its reply says that it is missing.

Each row is tried as `User:alice` with exactly the ACLs it names. Without the one it is about, the reply has the error in the right
place and nothing has happened; with it, no permission is missing.
"""

import itertools
import uuid
from typing import NamedTuple

import pytest

from headrace.server.api.registry import APIS, BETWEEN_BROKERS, OF_OUR_OWN, SERVED
from headrace.server.cluster.decisions import create_acls, delete_acls
from headrace.server.config.authorization import STANDARD
from headrace.server.security.acls import Acl, AclFilter, PatternType, Permission
from headrace.server.security.operations import CLUSTER, DENIAL, Operation, ResourceKind
from headrace.testing.broker import BrokerThread
from headrace.testing.wire import batch, frame
from headrace.wire.errors import ErrorCode
from headrace.wire.frames import decode_reply
from headrace.wire.messages import add_offsets_to_txn as aot
from headrace.wire.messages import add_partitions_to_txn as apt
from headrace.wire.messages import alter_client_quotas as acq
from headrace.wire.messages import alter_configs as ac
from headrace.wire.messages import alter_partition as ap
from headrace.wire.messages import alter_partition_reassignments as apr
from headrace.wire.messages import alter_user_scram_credentials as ausc
from headrace.wire.messages import consumer_group_heartbeat as cgh
from headrace.wire.messages import create_acls as ca
from headrace.wire.messages import create_partitions as cp
from headrace.wire.messages import create_topics as ct
from headrace.wire.messages import delete_acls as da
from headrace.wire.messages import delete_records as dr
from headrace.wire.messages import delete_share_group_state as dsgs
from headrace.wire.messages import delete_topics as dt
from headrace.wire.messages import describe_configs as dc
from headrace.wire.messages import describe_producers as dp
from headrace.wire.messages import describe_share_group_offsets as dsgo
from headrace.wire.messages import describe_topic_partitions as dtp
from headrace.wire.messages import fetch as fe
from headrace.wire.messages import incremental_alter_configs as iac
from headrace.wire.messages import initialize_share_group_state as isgs
from headrace.wire.messages import join_group as jg
from headrace.wire.messages import list_offsets as lo
from headrace.wire.messages import metadata as md
from headrace.wire.messages import offset_commit as oc
from headrace.wire.messages import offset_delete as od
from headrace.wire.messages import offset_fetch as of
from headrace.wire.messages import offset_for_leader_epoch as ole
from headrace.wire.messages import produce as pr
from headrace.wire.messages import read_share_group_state as rsgs
from headrace.wire.messages import read_share_group_state_summary as rsgss
from headrace.wire.messages import txn_offset_commit as toc
from headrace.wire.messages import write_share_group_state as wsgs
from headrace.wire.messages import write_txn_markers as wtm
from headrace.wire.messages.allocate_producer_ids import AllocateProducerIdsRequest
from headrace.wire.messages.alter_mirrors import AlterMirrorsRequest
from headrace.wire.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from headrace.wire.messages.alter_share_group_offsets import AlterShareGroupOffsetsRequest
from headrace.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from headrace.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from headrace.wire.messages.delete_groups import DeleteGroupsRequest
from headrace.wire.messages.delete_share_group_offsets import DeleteShareGroupOffsetsRequest
from headrace.wire.messages.describe_acls import DescribeAclsRequest
from headrace.wire.messages.describe_client_quotas import DescribeClientQuotasRequest
from headrace.wire.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from headrace.wire.messages.describe_groups import DescribeGroupsRequest
from headrace.wire.messages.describe_log_dirs import DescribeLogDirsRequest
from headrace.wire.messages.describe_mirrors import DescribeMirrorsRequest
from headrace.wire.messages.describe_quorum import DescribeQuorumRequest
from headrace.wire.messages.describe_transactions import DescribeTransactionsRequest
from headrace.wire.messages.describe_user_scram_credentials import DescribeUserScramCredentialsRequest
from headrace.wire.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from headrace.wire.messages.end_txn import EndTxnRequest
from headrace.wire.messages.find_coordinator import FindCoordinatorRequest
from headrace.wire.messages.heartbeat import HeartbeatRequest
from headrace.wire.messages.init_producer_id import InitProducerIdRequest
from headrace.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from headrace.wire.messages.list_config_resources import ListConfigResourcesRequest
from headrace.wire.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from headrace.wire.messages.list_partition_reassignments import ListPartitionReassignmentsRequest
from headrace.wire.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse
from headrace.wire.messages.report_mirrors import ReportMirrorsRequest
from headrace.wire.messages.share_acknowledge import ShareAcknowledgeRequest
from headrace.wire.messages.share_fetch import ShareFetchRequest
from headrace.wire.messages.share_group_describe import ShareGroupDescribeRequest
from headrace.wire.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from headrace.wire.messages.sync_group import SyncGroupRequest
from headrace.wire.messages.unregister_broker import UnregisterBrokerRequest
from headrace.wire.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from headrace.wire.schema import Message

TOPIC, GROUP, TXN, ON_CLUSTER = (
    ResourceKind.TOPIC,
    ResourceKind.GROUP,
    ResourceKind.TRANSACTIONAL_ID,
    ResourceKind.CLUSTER,
)
READ, WRITE, CREATE, DELETE, ALTER, DESCRIBE = (
    Operation.READ,
    Operation.WRITE,
    Operation.CREATE,
    Operation.DELETE,
    Operation.ALTER,
    Operation.DESCRIBE,
)
ACTION, SHOW, CHANGE = Operation.CLUSTER_ACTION, Operation.DESCRIBE_CONFIGS, Operation.ALTER_CONFIGS
ALICE, GROUP_NAME, TXN_NAME = "User:alice", "g", "tx"


class Row(NamedTuple):
    operation: Operation
    kind: ResourceKind
    where: str
    """Where the reply has the error."""
    version: int
    make: object
    """The request, given a topic."""
    also: tuple = ()
    """What it needs besides."""


def produce(t, transactional_id=None):
    data = [pr.TopicProduceData(t, partition_data=[pr.PartitionProduceData(0, batch(b"v"))])]
    return pr.ProduceRequest(transactional_id, -1, 1000, data)


def fetch(t, replica_id=-1):
    return fe.FetchRequest(
        replica_id=replica_id,
        max_wait_ms=0,
        topics=[fe.FetchTopic(t, partitions=[fe.FetchPartition(0, partition_max_bytes=1000)])],
    )


def commit(t):
    return oc.OffsetCommitRequest(
        "g", topics=[oc.OffsetCommitRequestTopic(t, [oc.OffsetCommitRequestPartition(0, 1)])]
    )


def offsets_of(t):
    return of.OffsetFetchRequest(
        groups=[of.OffsetFetchRequestGroup("g", topics=[of.OffsetFetchRequestTopics(t, [0])])]
    )


def forget_offsets(t):
    return od.OffsetDeleteRequest("g", [od.OffsetDeleteRequestTopic(t, [od.OffsetDeleteRequestPartition(0)])])


def transactional_commit(t):
    topics = [toc.TxnOffsetCommitRequestTopic(t, [toc.TxnOffsetCommitRequestPartition(0, 1)])]
    return toc.TxnOffsetCommitRequest("tx", "g", topics=topics)


def enlist(t):
    return apt.AddPartitionsToTxnRequest("tx", 1, 0, [apt.AddPartitionsToTxnTopic(t, [0])])


def marker(t):
    return wtm.WriteTxnMarkersRequest(
        [wtm.WritableTxnMarker(1, 0, False, [wtm.WritableTxnMarkerTopic(t, [0])])]
    )


def epochs(t):
    return ole.OffsetForLeaderEpochRequest(
        -1, [ole.OffsetForLeaderTopic(t, [ole.OffsetForLeaderPartition(0)])]
    )


def configs(kind, name=None):
    return lambda t: dc.DescribeConfigsRequest([dc.DescribeConfigsResource(kind, name or t)])


def change(kind, name=None):
    return lambda t: iac.IncrementalAlterConfigsRequest([iac.AlterConfigsResource(kind, name or t, [])], True)


def replace(kind, name=None):
    return lambda t: ac.AlterConfigsRequest([ac.AlterConfigsResource(kind, name or t, [])], True)


def share_state(module, data):
    """A partition of a topic that is not there: what brokers ask of a share coordinator."""
    return [getattr(module, data)(uuid.UUID(int=7), [module.PartitionData(0)])]


def heartbeat_with(t):
    return cgh.ConsumerGroupHeartbeatRequest("g", "m", -1, None, None, -1, [t])


ROWS = [
    Row(WRITE, TOPIC, "responses.partition_responses", 12, produce),
    Row(WRITE, TXN, "responses.partition_responses", 12, lambda t: produce(t, "tx"), ((WRITE, TOPIC),)),
    Row(READ, TOPIC, "responses.partitions", 12, fetch),
    Row(
        DESCRIBE,
        TOPIC,
        "topics.partitions",
        7,
        lambda t: lo.ListOffsetsRequest(-1, topics=[lo.ListOffsetsTopic(t, [lo.ListOffsetsPartition(0)])]),
    ),
    Row(DESCRIBE, TOPIC, "topics", 12, lambda t: md.MetadataRequest([md.MetadataRequestTopic(name=t)])),
    Row(DESCRIBE, TOPIC, "topics", 0, lambda t: dtp.DescribeTopicPartitionsRequest([dtp.TopicRequest(t)])),
    Row(READ, GROUP, "topics.partitions", 8, commit, ((READ, TOPIC),)),
    Row(READ, TOPIC, "topics.partitions", 8, commit, ((READ, GROUP),)),
    Row(DESCRIBE, GROUP, "groups", 8, offsets_of, ((DESCRIBE, TOPIC),)),
    Row(DESCRIBE, TOPIC, "groups.topics.partitions", 8, offsets_of, ((DESCRIBE, GROUP),)),
    Row(DESCRIBE, GROUP, "", 7, lambda t: of.OffsetFetchRequest("g")),
    Row(
        DESCRIBE,
        GROUP,
        "coordinators",
        4,
        lambda t: FindCoordinatorRequest(key_type=0, coordinator_keys=["g"]),
    ),
    Row(
        DESCRIBE,
        TXN,
        "coordinators",
        4,
        lambda t: FindCoordinatorRequest(key_type=1, coordinator_keys=["tx"]),
    ),
    Row(DESCRIBE, GROUP, "", 3, lambda t: FindCoordinatorRequest("g")),
    Row(READ, GROUP, "", 9, lambda t: jg.JoinGroupRequest("g", 10_000, 10_000, protocol_type="consumer")),
    Row(READ, GROUP, "", 4, lambda t: HeartbeatRequest("g", 1, "m")),
    Row(READ, GROUP, "", 5, lambda t: LeaveGroupRequest("g", members=[MemberIdentity("m")])),
    Row(READ, GROUP, "", 5, lambda t: SyncGroupRequest("g", 1, "m")),
    Row(DESCRIBE, GROUP, "groups", 6, lambda t: DescribeGroupsRequest(["g"])),
    Row(CREATE, TOPIC, "topics", 7, lambda t: ct.CreateTopicsRequest([ct.CreatableTopic(t, 1, 1)])),
    Row(DELETE, TOPIC, "responses", 6, lambda t: dt.DeleteTopicsRequest(topics=[dt.DeleteTopicState(t)])),
    Row(DELETE, TOPIC, "responses", 5, lambda t: dt.DeleteTopicsRequest([t])),
    Row(
        DELETE,
        TOPIC,
        "topics.partitions",
        2,
        lambda t: dr.DeleteRecordsRequest([dr.DeleteRecordsTopic(t, [dr.DeleteRecordsPartition(0, 0)])]),
    ),
    Row(WRITE, TXN, "", 4, lambda t: InitProducerIdRequest("tx", 1000)),
    Row(Operation.IDEMPOTENT_WRITE, ON_CLUSTER, "", 4, lambda t: InitProducerIdRequest(None, 0)),
    Row(DESCRIBE, TOPIC, "topics.partitions", 4, epochs),
    Row(WRITE, TXN, "results_by_topic_v3_and_below.results_by_partition", 3, enlist, ((WRITE, TOPIC),)),
    Row(WRITE, TOPIC, "results_by_topic_v3_and_below.results_by_partition", 3, enlist, ((WRITE, TXN),)),
    Row(ACTION, ON_CLUSTER, "", 4, lambda t: apt.AddPartitionsToTxnRequest()),
    Row(WRITE, TXN, "", 3, lambda t: aot.AddOffsetsToTxnRequest("tx", 1, 0, "g"), ((READ, GROUP),)),
    Row(READ, GROUP, "", 3, lambda t: aot.AddOffsetsToTxnRequest("tx", 1, 0, "g"), ((WRITE, TXN),)),
    Row(WRITE, TXN, "", 4, lambda t: EndTxnRequest("tx", 1, 0, True)),
    Row(ACTION, ON_CLUSTER, "markers.topics.partitions", 1, marker),
    Row(WRITE, TXN, "topics.partitions", 3, transactional_commit, ((READ, GROUP), (READ, TOPIC))),
    Row(READ, GROUP, "topics.partitions", 3, transactional_commit, ((WRITE, TXN), (READ, TOPIC))),
    Row(READ, TOPIC, "topics.partitions", 3, transactional_commit, ((WRITE, TXN), (READ, GROUP))),
    Row(DESCRIBE, ON_CLUSTER, "", 3, lambda t: DescribeAclsRequest(1, None, 1, None, None, 1, 1)),
    Row(
        ALTER,
        ON_CLUSTER,
        "results",
        3,
        lambda t: ca.CreateAclsRequest([ca.AclCreation(2, t, 3, "User:new", "*", 3, 3)]),
    ),
    Row(
        ALTER,
        ON_CLUSTER,
        "filter_results",
        3,
        lambda t: da.DeleteAclsRequest([da.DeleteAclsFilter(2, t, 3, "User:bob", None, 1, 1)]),
    ),
    Row(SHOW, TOPIC, "results", 4, configs(2)),
    Row(SHOW, ON_CLUSTER, "results", 4, configs(4, "1")),
    Row(SHOW, ON_CLUSTER, "results", 4, configs(8, "1")),
    Row(SHOW, GROUP, "results", 4, configs(32, "g")),
    Row(SHOW, ON_CLUSTER, "results", 4, configs(16, "s")),
    Row(CHANGE, TOPIC, "responses", 2, replace(2)),
    Row(CHANGE, ON_CLUSTER, "responses", 2, replace(4, "1")),
    Row(CHANGE, TOPIC, "responses", 1, change(2)),
    Row(CHANGE, ON_CLUSTER, "responses", 1, change(4, "1")),
    Row(CHANGE, ON_CLUSTER, "responses", 1, change(8, "1")),
    Row(CHANGE, GROUP, "responses", 1, change(32, "g")),
    Row(CHANGE, ON_CLUSTER, "responses", 1, change(16, "s")),
    Row(CHANGE, ON_CLUSTER, "responses", 2, replace(16, "s")),
    Row(DESCRIBE, ON_CLUSTER, "", 4, lambda t: DescribeLogDirsRequest()),
    Row(DESCRIBE, ON_CLUSTER, "", 2, lambda t: DescribeQuorumRequest()),
    Row(
        ALTER,
        ON_CLUSTER,
        "results.partitions",
        2,
        lambda t: AlterReplicaLogDirsRequest([AlterReplicaLogDir("/d", [AlterReplicaLogDirTopic(t, [0])])]),
    ),
    Row(
        ALTER,
        TOPIC,
        "results",
        3,
        lambda t: cp.CreatePartitionsRequest([cp.CreatePartitionsTopic(t, 2)], 1000),
    ),
    Row(DELETE, GROUP, "results", 2, lambda t: DeleteGroupsRequest(["g"])),
    Row(ALTER, ON_CLUSTER, "", 2, lambda t: ElectLeadersRequest(0, None)),
    Row(
        ALTER,
        ON_CLUSTER,
        "replica_election_results.partition_result",
        0,
        lambda t: ElectLeadersRequest(0, [TopicPartitions(t, [0])]),
    ),
    Row(ALTER, ON_CLUSTER, "", 1, lambda t: apr.AlterPartitionReassignmentsRequest()),
    Row(DESCRIBE, ON_CLUSTER, "", 0, lambda t: ListPartitionReassignmentsRequest()),
    Row(DELETE, GROUP, "", 0, forget_offsets, ((READ, TOPIC),)),
    Row(READ, TOPIC, "topics.partitions", 0, forget_offsets, ((DELETE, GROUP),)),
    Row(ACTION, ON_CLUSTER, "", 3, lambda t: ap.AlterPartitionRequest(1)),
    Row(
        ALTER,
        ON_CLUSTER,
        "",
        2,
        lambda t: UpdateFeaturesRequest(1000, [FeatureUpdateKey("transaction.version", 2)], True),
    ),
    Row(
        READ, TOPIC, "topics.partitions", 0, lambda t: dp.DescribeProducersRequest([dp.TopicRequest(t, [0])])
    ),
    Row(ALTER, ON_CLUSTER, "", 0, lambda t: UnregisterBrokerRequest(99)),
    Row(DESCRIBE, ON_CLUSTER, "", 0, lambda t: DescribeUserScramCredentialsRequest(None)),
    Row(
        ALTER,
        ON_CLUSTER,
        "results",
        0,
        lambda t: ausc.AlterUserScramCredentialsRequest(
            [], [ausc.ScramCredentialUpsertion("new", 1, 4096, b"salt", b"salted")]
        ),
    ),
    Row(DESCRIBE, TXN, "transaction_states", 0, lambda t: DescribeTransactionsRequest(["tx"])),
    Row(ACTION, ON_CLUSTER, "", 0, lambda t: AllocateProducerIdsRequest(1)),
    Row(
        ACTION,
        ON_CLUSTER,
        "",
        0,
        lambda t: ReportMirrorsRequest('{"epochs":[],"failed":{},"ends":[],"agreed":{}}'),
    ),
    Row(ALTER, ON_CLUSTER, "", 0, lambda t: AlterMirrorsRequest('{"operation":"pause","link":"dc"}')),
    Row(DESCRIBE, ON_CLUSTER, "", 0, lambda t: DescribeMirrorsRequest()),
    Row(READ, GROUP, "", 1, heartbeat_with, ((DESCRIBE, TOPIC),)),
    Row(DESCRIBE, TOPIC, "", 1, heartbeat_with, ((READ, GROUP),)),
    Row(DESCRIBE, GROUP, "groups", 1, lambda t: ConsumerGroupDescribeRequest(["g"])),
    Row(
        READ,
        GROUP,
        "",
        1,
        lambda t: ShareGroupHeartbeatRequest("g", "m", -1, None, [t]),
        ((DESCRIBE, TOPIC),),
    ),
    Row(
        DESCRIBE,
        TOPIC,
        "",
        1,
        lambda t: ShareGroupHeartbeatRequest("g", "m", -1, None, [t]),
        ((READ, GROUP),),
    ),
    Row(DESCRIBE, GROUP, "groups", 1, lambda t: ShareGroupDescribeRequest(["g"])),
    Row(READ, GROUP, "", 2, lambda t: ShareFetchRequest("g", "m", 0)),
    Row(READ, GROUP, "", 2, lambda t: ShareAcknowledgeRequest("g", "m", 1)),
    Row(
        ACTION,
        ON_CLUSTER,
        "results.partitions",
        0,
        lambda t: isgs.InitializeShareGroupStateRequest("g", share_state(isgs, "InitializeStateData")),
    ),
    Row(
        ACTION,
        ON_CLUSTER,
        "results.partitions",
        0,
        lambda t: rsgs.ReadShareGroupStateRequest("g", share_state(rsgs, "ReadStateData")),
    ),
    Row(
        ACTION,
        ON_CLUSTER,
        "results.partitions",
        1,
        lambda t: wsgs.WriteShareGroupStateRequest("g", share_state(wsgs, "WriteStateData")),
    ),
    Row(
        ACTION,
        ON_CLUSTER,
        "results.partitions",
        0,
        lambda t: dsgs.DeleteShareGroupStateRequest("g", share_state(dsgs, "DeleteStateData")),
    ),
    Row(
        ACTION,
        ON_CLUSTER,
        "results.partitions",
        1,
        lambda t: rsgss.ReadShareGroupStateSummaryRequest("g", share_state(rsgss, "ReadStateSummaryData")),
    ),
    Row(
        DESCRIBE,
        GROUP,
        "groups",
        1,
        lambda t: dsgo.DescribeShareGroupOffsetsRequest([dsgo.DescribeShareGroupOffsetsRequestGroup("g")]),
    ),
    Row(READ, GROUP, "", 0, lambda t: AlterShareGroupOffsetsRequest("g")),
    Row(DELETE, GROUP, "", 0, lambda t: DeleteShareGroupOffsetsRequest("g")),
    Row(SHOW, ON_CLUSTER, "", 1, lambda t: ListConfigResourcesRequest()),
    Row(SHOW, ON_CLUSTER, "", 1, lambda t: DescribeClientQuotasRequest()),
    Row(
        Operation.ALTER_CONFIGS,
        ON_CLUSTER,
        "entries",
        1,
        lambda t: acq.AlterClientQuotasRequest([acq.EntryData()]),
    ),
]

WITH_TESTS_OF_THEIR_OWN = {
    *("api_versions", "describe_cluster", "list_groups", "list_transactions"),
    *("sasl_authenticate", "sasl_handshake"),
    *("get_telemetry_subscriptions", "push_telemetry"),
    *(f"{what}_delegation_token" for what in ("create", "renew", "expire", "describe")),
}
"""They refuse nobody, and show what the client may see; or they are about the client itself (tests/server/security)."""

INSTEAD = {
    "CreateTopicsRequest": [(CREATE, ON_CLUSTER)],
    "DeleteTopicsRequest": [(DELETE, ON_CLUSTER)],
    "InitProducerIdRequest": [(WRITE, TOPIC)],
    "OffsetForLeaderEpochRequest": [(ACTION, ON_CLUSTER)],
    "WriteTxnMarkersRequest": [(ALTER, ON_CLUSTER)],
}
"""Another permission that will do, for rows about the cluster or a topic."""


def row_name(row):
    return f"{type(row.make('t')).__name__}-{row.operation.name}-{row.kind.name}"


def test_every_api_has_a_row():
    in_table = {APIS[row.make("t").API_KEY].name for row in ROWS}
    assert in_table | WITH_TESTS_OF_THEIR_OWN == {*SERVED, *BETWEEN_BROKERS, *OF_OUR_OWN}


@pytest.fixture(scope="module")
def broker(tmp_path_factory):
    settings = {"authorizer.class.name": STANDARD, "super.users": "User:ANONYMOUS"}
    running = BrokerThread(tmp_path_factory.mktemp("broker"), settings).start()
    yield running
    running.stop()


class Acls:
    def __init__(self, broker):
        self._broker = broker

    def grant(self, *needed, topic="", principal=ALICE):
        names = {TOPIC: topic, GROUP: GROUP_NAME, TXN: TXN_NAME, ON_CLUSTER: CLUSTER.name}
        acls = [
            Acl(kind, names[kind], PatternType.LITERAL, principal, "*", operation, Permission.ALLOW)
            for operation, kind in needed
        ]
        self._decide(create_acls(acls))

    def clear(self):
        self._decide(delete_acls([AclFilter()]))

    def _decide(self, decision):
        async def decide(node):
            return await node.cluster.decide(decision)

        self._broker.run(decide)


@pytest.fixture
def acls(broker):
    made = Acls(broker)
    made.clear()
    return made


@pytest.fixture(autouse=True)
def group_with_offsets(wire, topic):
    """So that there is a coordinator to be asked."""
    for key_type, key in ((0, GROUP_NAME), (1, TXN_NAME)):
        find = FindCoordinatorRequest(key_type=key_type, coordinator_keys=[key])
        wire.ask(find, 4, find.reply_type())
    assert errors(wire.ask(commit(topic), 8, oc.OffsetCommitResponse)) == set()


@pytest.fixture
def alice(broker, wire_to):
    return log_in(broker, wire_to(broker), ALICE)


def log_in(broker, wire, principal):
    """There is no login yet: give the server's end of the connection its principal."""
    wire.ask(ApiVersionsRequest("test", "1"), 4, ApiVersionsResponse)
    port = wire.socket.getsockname()[1]

    async def set_principal(node):
        for connection in node.acceptors.connections:
            if connection.transport.get_extra_info("peername")[1] == port:
                connection.identify(principal)
                return
        raise AssertionError("the connection is not there")

    broker.run(set_principal)
    return wire


def errors(message, path=""):
    """(where, code) of every error in a response, however deep."""
    found = set()
    for name in message.__slots__:
        value = getattr(message, name)
        below = f"{path}.{name}" if path else name
        if name.endswith("error_code") and value:
            found.add((path, ErrorCode(value)))
        elif isinstance(value, Message):
            found |= errors(value, below)
        elif isinstance(value, list):
            for each in value:
                if isinstance(each, Message):
                    found |= errors(each, below)
    return found


def state_of(broker, topic):
    """What a forbidden request must not change."""

    async def look(node):
        log = node.replicas.find(topic.encode(), 0, by_id=False).log
        groups = [(each.group_id, each.group_state) for each in node.groups.list([], [])]
        return node.cluster.image.offset, log.log_end_offset, log.log_start_offset, groups

    return broker.run(look)


_numbers = itertools.count()


@pytest.mark.parametrize("row", ROWS, ids=row_name)
def test_without_the_permission_the_reply_says_so_in_the_right_place_and_nothing_happens(
    broker, acls, alice, topic, row
):
    acls.grant(*row.also, topic=topic)
    before = state_of(broker, topic)
    request = row.make(topic)
    reply = alice.ask(request, row.version, request.reply_type())
    assert errors(reply) == {(row.where, DENIAL[row.kind])}
    assert state_of(broker, topic) == before


@pytest.mark.parametrize("row", ROWS, ids=row_name)
def test_with_the_permission_nothing_is_forbidden(acls, alice, topic, row):
    acls.grant((row.operation, row.kind), *row.also, topic=topic)
    # What a new topic looks like is told only to those who may see its settings.
    acls.grant(*[(SHOW, TOPIC)] * (row.operation is CREATE), topic=topic)
    request = row.make(topic)
    reply = alice.ask(request, row.version, request.reply_type())
    assert {code for _, code in errors(reply)} & set(DENIAL.values()) == set()


@pytest.mark.parametrize(
    ("row", "other"),
    [
        (row, other)
        for row in ROWS
        for other in INSTEAD.get(type(row.make("t")).__name__, [])
        if row.kind != TXN
    ],
    ids=lambda each: row_name(each) if isinstance(each, Row) else each[0].name,
)
def test_another_permission_that_will_do(acls, alice, topic, row, other):
    acls.grant(other, *row.also, topic=topic)
    acls.grant((SHOW, TOPIC), topic=topic)
    request = row.make(topic)
    reply = alice.ask(request, row.version, request.reply_type())
    assert {code for _, code in errors(reply)} & set(DENIAL.values()) == set()


def test_api_versions_needs_nothing(acls, alice):
    answer = alice.ask(ApiVersionsRequest("test", "1"), 4, ApiVersionsResponse)
    assert answer.error_code == ErrorCode.NONE
    assert answer.api_keys


def test_the_cluster_is_described_to_everyone_and_its_operations_to_those_who_may_see_them(acls, alice):
    request = DescribeClusterRequest(True)
    assert alice.ask(request, 1, DescribeClusterResponse).cluster_authorized_operations == 0
    acls.grant((ALTER, ON_CLUSTER), (CREATE, ON_CLUSTER))
    answer = alice.ask(request, 1, DescribeClusterResponse)
    assert answer.cluster_authorized_operations == 1 << ALTER | 1 << CREATE | 1 << DESCRIBE


def test_groups_and_transactions_are_listed_to_those_who_may_see_them(acls, alice, wire):
    begin = InitProducerIdRequest(TXN_NAME, 1000)
    wire.ask(begin, 4, begin.reply_type())

    def listed():
        groups = alice.ask(ListGroupsRequest(), 4, ListGroupsResponse).groups
        transactions = alice.ask(ListTransactionsRequest(), 0, ListTransactionsResponse).transaction_states
        return {each.group_id for each in groups}, {each.transactional_id for each in transactions}

    assert listed() == (set(), set())
    acls.grant((READ, GROUP))
    assert listed() == ({GROUP_NAME}, set())
    acls.grant((WRITE, TXN))
    assert listed() == ({GROUP_NAME}, {TXN_NAME})
    acls.clear()
    acls.grant((DESCRIBE, ON_CLUSTER))
    assert listed()[0] >= {GROUP_NAME}


def test_a_hidden_topic_tells_neither_its_name_nor_its_id(acls, alice, wire, topic):
    asked = md.MetadataRequest([md.MetadataRequestTopic(name=topic)])
    (known,) = wire.ask(asked, 12, md.MetadataResponse).topics
    (by_name,) = alice.ask(asked, 12, md.MetadataResponse).topics
    assert (by_name.name, by_name.topic_id.int, by_name.partitions) == (topic, 0, [])
    by_id = md.MetadataRequest([md.MetadataRequestTopic(known.topic_id, None)])
    (answer,) = alice.ask(by_id, 12, md.MetadataResponse).topics
    assert (answer.error_code, answer.name) == (ErrorCode.TOPIC_AUTHORIZATION_FAILED, None)
    assert answer.partitions == []


def test_a_fetch_as_a_follower_needs_the_permission_of_brokers(acls, alice, topic):
    acls.grant((READ, TOPIC), topic=topic)
    request = fetch(topic, replica_id=2)
    denied = alice.ask(request, 12, request.reply_type())
    assert errors(denied) == {("responses.partitions", ErrorCode.TOPIC_AUTHORIZATION_FAILED)}
    acls.grant((ACTION, ON_CLUSTER))
    allowed = alice.ask(request, 12, request.reply_type())
    assert ErrorCode.TOPIC_AUTHORIZATION_FAILED not in {code for _, code in errors(allowed)}


def test_a_topic_is_made_on_first_use_only_with_the_permission_to_create(broker, acls, alice):
    name = f"first-use-{next(_numbers)}"
    acls.grant((WRITE, TOPIC), topic=name)
    request = md.MetadataRequest([md.MetadataRequestTopic(name=name)])
    (answer,) = alice.ask(request, 12, md.MetadataResponse).topics
    assert (answer.error_code, answer.topic_id.int) == (ErrorCode.TOPIC_AUTHORIZATION_FAILED, 0)
    acls.grant((CREATE, TOPIC), topic=name)
    (answer,) = alice.ask(request, 12, md.MetadataResponse).topics
    assert answer.error_code == ErrorCode.NONE


def as_broker(wire, request, version):
    """Ask with the client id of a broker."""
    wire.socket.sendall(frame(request, version, 1, "headrace-broker-2"))
    return decode_reply(request.reply_type(), version, wire.receive_frame())


def test_a_client_that_takes_a_brokers_client_id_gains_nothing(acls, alice, topic):
    made = ct.CreateTopicsRequest([ct.CreatableTopic(f"faked-{next(_numbers)}", 1, 1)])
    assert errors(as_broker(alice, made, 7)) == {("topics", ErrorCode.TOPIC_AUTHORIZATION_FAILED)}
    gone = dt.DeleteTopicsRequest(topics=[dt.DeleteTopicState(topic)])
    assert errors(as_broker(alice, gone, 6)) == {("responses", ErrorCode.TOPIC_AUTHORIZATION_FAILED)}
    # Whoever may do what brokers do is taken for one, as with Kafka's Envelope.
    acls.grant((ACTION, ON_CLUSTER))
    assert errors(as_broker(alice, made, 7)) == set()


def test_brokers_pass_requests_on_by_their_own_listener_only(tmp_path, wire_to):
    settings = {
        "authorizer.class.name": STANDARD,
        "super.users": "User:ANONYMOUS",
        "listeners": "PLAINTEXT://127.0.0.1:0,INSIDE://127.0.0.1:0",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,INSIDE:PLAINTEXT",
        "inter.broker.listener.name": "INSIDE",
    }
    with BrokerThread(tmp_path, settings) as running:
        Acls(running).grant((ACTION, ON_CLUSTER))
        alice = log_in(running, wire_to(running), ALICE)
        made = ct.CreateTopicsRequest([ct.CreatableTopic("faked", 1, 1)])
        assert errors(as_broker(alice, made, 7)) == {("topics", ErrorCode.TOPIC_AUTHORIZATION_FAILED)}
