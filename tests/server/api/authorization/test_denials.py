"""Every request asks the authorizer before it touches anything, and a denial is answered with Kafka's error."""

import pytest

from headrace.server.api.registry import APIS, BETWEEN_BROKERS, SERVED
from headrace.server.security.operations import Operation
from headrace.wire.errors import ErrorCode
from headrace.wire.messages import add_offsets_to_txn as aot
from headrace.wire.messages import add_partitions_to_txn as apt
from headrace.wire.messages import alter_client_quotas as acq
from headrace.wire.messages import alter_configs as ac
from headrace.wire.messages import alter_partition as ap
from headrace.wire.messages import alter_partition_reassignments as apr
from headrace.wire.messages import consumer_group_heartbeat as cgh
from headrace.wire.messages import create_partitions as cp
from headrace.wire.messages import delete_records as dr
from headrace.wire.messages import delete_topics as dt
from headrace.wire.messages import describe_configs as dc
from headrace.wire.messages import describe_producers as dp
from headrace.wire.messages import describe_topic_partitions as dtp
from headrace.wire.messages import incremental_alter_configs as iac
from headrace.wire.messages import join_group as jg
from headrace.wire.messages import list_offsets as lo
from headrace.wire.messages import metadata as md
from headrace.wire.messages import offset_delete as od
from headrace.wire.messages import offset_fetch as of
from headrace.wire.messages.allocate_producer_ids import AllocateProducerIdsRequest
from headrace.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from headrace.wire.messages.delete_groups import DeleteGroupsRequest
from headrace.wire.messages.describe_client_quotas import DescribeClientQuotasRequest
from headrace.wire.messages.describe_groups import DescribeGroupsRequest
from headrace.wire.messages.describe_log_dirs import DescribeLogDirsRequest
from headrace.wire.messages.describe_transactions import DescribeTransactionsRequest
from headrace.wire.messages.elect_leaders import ElectLeadersRequest
from headrace.wire.messages.end_txn import EndTxnRequest
from headrace.wire.messages.find_coordinator import FindCoordinatorRequest
from headrace.wire.messages.heartbeat import HeartbeatRequest
from headrace.wire.messages.init_producer_id import InitProducerIdRequest
from headrace.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from headrace.wire.messages.list_config_resources import ListConfigResourcesRequest
from headrace.wire.messages.list_partition_reassignments import ListPartitionReassignmentsRequest
from headrace.wire.messages.sync_group import SyncGroupRequest
from headrace.wire.messages.unregister_broker import UnregisterBrokerRequest
from headrace.wire.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from tests.server.api.authorization.requests import (
    codes,
    commit_of,
    fetch_of,
    produce_to,
    transactional_commit,
)
from tests.server.api.authorization.rules import GROUP, TOPIC, TXN

TOPIC_ROWS = [
    (Operation.WRITE, produce_to, 12),
    (Operation.READ, fetch_of, 12),
    (
        Operation.DESCRIBE,
        lambda t: lo.ListOffsetsRequest(-1, topics=[lo.ListOffsetsTopic(t, [lo.ListOffsetsPartition(0)])]),
        7,
    ),
    (Operation.DESCRIBE, lambda t: md.MetadataRequest([md.MetadataRequestTopic(name=t)]), 12),
    (
        Operation.DESCRIBE,
        lambda t: dtp.DescribeTopicPartitionsRequest([dtp.TopicRequest(t)]),
        0,
    ),
    (Operation.READ, commit_of, 8),
    (
        Operation.DESCRIBE,
        lambda t: of.OffsetFetchRequest(
            groups=[of.OffsetFetchRequestGroup("g", topics=[of.OffsetFetchRequestTopics(t, [0])])]
        ),
        8,
    ),
    (
        Operation.READ,
        lambda t: od.OffsetDeleteRequest(
            "g", [od.OffsetDeleteRequestTopic(t, [od.OffsetDeleteRequestPartition(0)])]
        ),
        0,
    ),
    (Operation.DESCRIBE, lambda t: cgh.ConsumerGroupHeartbeatRequest("g", "m", -1, None, None, -1, [t]), 1),
    (Operation.ALTER, lambda t: cp.CreatePartitionsRequest([cp.CreatePartitionsTopic(t, 2)], 1000, True), 3),
    (
        Operation.DELETE,
        lambda t: dr.DeleteRecordsRequest([dr.DeleteRecordsTopic(t, [dr.DeleteRecordsPartition(0, 0)])]),
        2,
    ),
    (Operation.DELETE, lambda t: dt.DeleteTopicsRequest([t], [dt.DeleteTopicState(t)]), 6),
    (Operation.DELETE, lambda t: dt.DeleteTopicsRequest([t]), 5),
    (
        Operation.DESCRIBE_CONFIGS,
        lambda t: dc.DescribeConfigsRequest([dc.DescribeConfigsResource(2, t)]),
        4,
    ),
    (
        Operation.ALTER_CONFIGS,
        lambda t: ac.AlterConfigsRequest([ac.AlterConfigsResource(2, t, [])], True),
        2,
    ),
    (
        Operation.ALTER_CONFIGS,
        lambda t: iac.IncrementalAlterConfigsRequest([iac.AlterConfigsResource(2, t, [])], True),
        1,
    ),
    (Operation.READ, lambda t: dp.DescribeProducersRequest([dp.TopicRequest(t, [0])]), 0),
    (Operation.READ, transactional_commit, 3),
    (
        Operation.WRITE,
        lambda t: apt.AddPartitionsToTxnRequest("tx", 1, 0, [apt.AddPartitionsToTxnTopic(t, [0])]),
        3,
    ),
]


def row_name(row):
    return f"{row[1]('t').__class__.__name__}-{row[0].name}"


@pytest.mark.parametrize("row", TOPIC_ROWS, ids=row_name)
def test_a_topic_that_is_denied_is_refused(wire, rules, topic, row):
    operation, make, version = row
    rules.deny(operation, TOPIC, topic)
    response = wire.ask(make(topic), version, make(topic).reply_type())
    found = codes(response) | {
        ErrorCode(each.partition_error_code)
        for result in getattr(response, "results_by_topic_v3_and_below", [])
        for each in result.results_by_partition
    }
    assert found - {ErrorCode.NONE} == {ErrorCode.TOPIC_AUTHORIZATION_FAILED}


GROUP_ROWS = [
    (Operation.READ, lambda g: jg.JoinGroupRequest(g, 10_000, 10_000, protocol_type="consumer"), 9),
    (Operation.READ, lambda g: SyncGroupRequest(g, 1, "m"), 5),
    (Operation.READ, lambda g: HeartbeatRequest(g, 1, "m"), 4),
    (Operation.READ, lambda g: LeaveGroupRequest(g, members=[MemberIdentity("m")]), 5),
    (Operation.READ, lambda g: commit_of("t", g), 8),
    (Operation.DESCRIBE, lambda g: of.OffsetFetchRequest(groups=[of.OffsetFetchRequestGroup(g)]), 8),
    (Operation.DESCRIBE, lambda g: of.OffsetFetchRequest(g), 7),
    (Operation.DESCRIBE, lambda g: FindCoordinatorRequest(key_type=0, coordinator_keys=[g]), 4),
    (Operation.DESCRIBE, lambda g: DescribeGroupsRequest([g]), 6),
    (Operation.DESCRIBE, lambda g: ConsumerGroupDescribeRequest([g]), 1),
    (Operation.READ, lambda g: cgh.ConsumerGroupHeartbeatRequest(g, "m", 0), 1),
    (Operation.DELETE, lambda g: DeleteGroupsRequest([g]), 2),
    (Operation.DELETE, lambda g: od.OffsetDeleteRequest(g, []), 0),
    (Operation.READ, lambda g: aot.AddOffsetsToTxnRequest("tx", 1, 0, g), 3),
    (Operation.READ, lambda g: transactional_commit("t"), 3),
    (
        Operation.DESCRIBE_CONFIGS,
        lambda g: dc.DescribeConfigsRequest([dc.DescribeConfigsResource(32, g)]),
        4,
    ),
]


@pytest.mark.parametrize("row", GROUP_ROWS, ids=row_name)
def test_a_group_that_is_denied_is_refused(wire, rules, row):
    operation, make, version = row
    rules.deny(operation, GROUP, "g")
    response = wire.ask(make("g"), version, make("g").reply_type())
    assert codes(response) - {ErrorCode.NONE} == {ErrorCode.GROUP_AUTHORIZATION_FAILED}


TRANSACTION_ROWS = [
    (Operation.WRITE, lambda t: InitProducerIdRequest("tx", 1000), 4),
    (Operation.WRITE, lambda t: EndTxnRequest("tx", 1, 0, True), 4),
    (Operation.WRITE, lambda t: aot.AddOffsetsToTxnRequest("tx", 1, 0, "g"), 3),
    (Operation.WRITE, transactional_commit, 3),
    (Operation.WRITE, lambda t: produce_to(t, "tx"), 12),
    (Operation.DESCRIBE, lambda t: FindCoordinatorRequest(key_type=1, coordinator_keys=["tx"]), 4),
    (Operation.DESCRIBE, lambda t: DescribeTransactionsRequest(["tx"]), 0),
]


@pytest.mark.parametrize("row", TRANSACTION_ROWS, ids=row_name)
def test_a_transactional_id_that_is_denied_is_refused(wire, rules, topic, row):
    operation, make, version = row
    rules.deny(operation, TXN, "tx")
    response = wire.ask(make(topic), version, make(topic).reply_type())
    assert codes(response) - {ErrorCode.NONE} == {ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED}


CLUSTER_ROWS = [
    (Operation.ALTER, lambda t: ElectLeadersRequest(), 2),
    (Operation.ALTER, lambda t: apr.AlterPartitionReassignmentsRequest(), 1),
    (Operation.DESCRIBE, lambda t: ListPartitionReassignmentsRequest(), 0),
    (Operation.ALTER, lambda t: UnregisterBrokerRequest(99), 0),
    (
        Operation.ALTER,
        lambda t: UpdateFeaturesRequest(1000, [FeatureUpdateKey("transaction.version", 2)], True),
        2,
    ),
    (Operation.DESCRIBE, lambda t: DescribeLogDirsRequest(), 4),
    (Operation.DESCRIBE_CONFIGS, lambda t: ListConfigResourcesRequest(), 1),
    (Operation.DESCRIBE_CONFIGS, lambda t: DescribeClientQuotasRequest(), 1),
    (Operation.ALTER_CONFIGS, lambda t: acq.AlterClientQuotasRequest([acq.EntryData()]), 1),
    (Operation.CLUSTER_ACTION, lambda t: ap.AlterPartitionRequest(1), 3),
    (Operation.CLUSTER_ACTION, lambda t: AllocateProducerIdsRequest(1), 0),
    (Operation.CLUSTER_ACTION, lambda t: apt.AddPartitionsToTxnRequest(), 4),
    (
        Operation.DESCRIBE_CONFIGS,
        lambda t: dc.DescribeConfigsRequest([dc.DescribeConfigsResource(4, "1")]),
        4,
    ),
    (
        Operation.ALTER_CONFIGS,
        lambda t: iac.IncrementalAlterConfigsRequest([iac.AlterConfigsResource(8, "1", [])]),
        1,
    ),
]


@pytest.mark.parametrize("row", CLUSTER_ROWS, ids=row_name)
def test_an_operation_on_the_cluster_that_is_denied_is_refused(wire, rules, row):
    operation, make, version = row
    rules.deny_on_cluster(operation)
    response = wire.ask(make(""), version, make("").reply_type())
    assert codes(response) - {ErrorCode.NONE} == {ErrorCode.CLUSTER_AUTHORIZATION_FAILED}


def test_every_served_api_that_touches_anything_has_a_row_here():
    asked = {make("t").API_KEY for _, make, _ in TOPIC_ROWS + GROUP_ROWS + TRANSACTION_ROWS + CLUSTER_ROWS}
    in_tests_below = {
        "api_versions",
        "create_topics",
        "describe_cluster",
        "list_groups",
        "list_transactions",
        "offset_for_leader_epoch",
        "write_txn_markers",
    }
    assert {APIS[key].name for key in asked} | in_tests_below == {*SERVED, *BETWEEN_BROKERS}
