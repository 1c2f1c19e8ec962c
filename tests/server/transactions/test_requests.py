"""The errors of requests about transactions, byte by byte: clients act on the error codes."""

import uuid

import pytest

from headrace.testing.topics import create_topic
from headrace.testing.wire import WireClient
from headrace.wire.errors import ErrorCode
from headrace.wire.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from headrace.wire.messages.find_coordinator import FindCoordinatorRequest
from headrace.wire.messages.init_producer_id import InitProducerIdRequest
from headrace.wire.messages.list_transactions import ListTransactionsRequest
from headrace.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from headrace.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from headrace.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from headrace.wire.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from tests.waiting import until


def find(client, kind, name):
    request = FindCoordinatorRequest(key_type=kind, coordinator_keys=[name])
    until(lambda: client.call(request, 4).coordinators[0].error_code == 0)


@pytest.fixture
def client(bootstrap, topic):
    with WireClient(bootstrap) as client:
        find(client, 1, topic)
        yield client


def init(client, name):
    request = InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=60_000)
    until(lambda: client.call(request, 5).error_code == 0)
    reply = client.call(request, 5)
    assert reply.error_code == 0
    return reply.producer_id, reply.producer_epoch


@pytest.mark.parametrize("name", [None, "half"])
@pytest.mark.parametrize("half", [(7, -1), (-1, 0)])
def test_a_producer_id_without_its_epoch_is_refused(client, name, half):
    request = InitProducerIdRequest(name, 60_000, *half)
    assert client.call(request, 5).error_code == ErrorCode.INVALID_REQUEST


def test_a_client_does_not_write_to_the_brokers_own_topics_in_a_transaction(client, topic):
    find(client, 0, "group")
    topics = [AddPartitionsToTxnTopic("__consumer_offsets", [0]), AddPartitionsToTxnTopic(topic, [0])]
    reply = client.call(AddPartitionsToTxnRequest(topic, *init(client, topic), topics), 3)
    codes = {
        each.name: each.results_by_partition[0].partition_error_code
        for each in reply.results_by_topic_v3_and_below
    }
    assert codes == {
        "__consumer_offsets": ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        topic: ErrorCode.OPERATION_NOT_ATTEMPTED,
    }


def offsets(name, group, producer, *topics):
    asked = [
        TxnOffsetCommitRequestTopic(each, [TxnOffsetCommitRequestPartition(index, 5) for index in indexes])
        for each, indexes in topics
    ]
    return TxnOffsetCommitRequest(name, group, *producer, topics=asked)


def codes_of(reply):
    return {
        (each.name, partition.partition_index): ErrorCode(partition.error_code)
        for each in reply.topics
        for partition in each.partitions
    }


def test_offsets_of_a_partition_that_does_not_exist_are_refused_and_the_others_kept(client, topic):
    find(client, 0, "group")
    request = offsets(topic, "group", init(client, topic), (topic, [0, 9]), ("nowhere", [0]))
    replies = []

    def answered():
        replies.append(codes_of(client.call(request, 5)))
        return replies[-1][topic, 0] is ErrorCode.NONE

    until(answered)
    assert replies[-1] == {
        (topic, 0): ErrorCode.NONE,
        (topic, 9): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ("nowhere", 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
    wanted = [OffsetFetchRequestTopics("nowhere", [0]), OffsetFetchRequestTopics(topic, [0])]
    group = OffsetFetchRequestGroup("group", topics=wanted)
    found = client.call(OffsetFetchRequest(groups=[group], require_stable=True), 8).groups[0].topics
    assert [each.partitions[0].error_code for each in found] == [
        ErrorCode.NONE,
        ErrorCode.UNSTABLE_OFFSET_COMMIT,
    ]


def id_of(client, topic):
    (known,) = client.call(MetadataRequest([MetadataRequestTopic(name=topic)]), 12).topics
    return known.topic_id


def test_offsets_of_topics_by_id_are_kept_and_of_unknown_ids_refused(client, topic):
    find(client, 0, "group")
    known, unknown = id_of(client, topic), uuid.uuid4()
    request = offsets(topic, "group", init(client, topic), (topic, [0, 9]), ("", [0]))
    for asked, topic_id in zip(request.topics, (known, unknown), strict=True):
        asked.topic_id = topic_id
    replies = []

    def answered():
        reply = client.call(request, 6)
        replies.append(
            {
                (each.topic_id, one.partition_index): ErrorCode(one.error_code)
                for each in reply.topics
                for one in each.partitions
            }
        )
        return replies[-1][known, 0] is ErrorCode.NONE

    until(answered)
    assert replies[-1] == {
        (known, 0): ErrorCode.NONE,
        (known, 9): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        (unknown, 0): ErrorCode.UNKNOWN_TOPIC_ID,
    }


@pytest.mark.parametrize(
    ("version", "code"), [(5, ErrorCode.ILLEGAL_GENERATION), (6, ErrorCode.GROUP_ID_NOT_FOUND)]
)
def test_offsets_of_a_member_of_no_group_are_refused_with_a_code_the_client_knows(
    client, topic, version, code
):
    group = f"none-{topic}"
    find(client, 0, group)
    request = offsets(topic, group, init(client, topic), (topic, [0]))
    request.topics[0].topic_id = id_of(client, topic)
    request.generation_id_or_member_epoch, request.member_id = 3, "member"
    until(lambda: set(codes_of(client.call(request, version)).values()) == {code})


def test_a_broker_that_does_not_coordinate_the_group_sends_its_offsets_on(make_broker):
    broker = make_broker()
    create_topic(broker.bootstrap, "orders")
    with WireClient(broker.bootstrap) as client:
        find(client, 1, "tx")
        # No group has a coordinator yet: the topic of their offsets is made when one is asked for.
        request = offsets("tx", "group", init(client, "tx"), ("orders", [0]))
        assert codes_of(client.call(request, 5)) == {("orders", 0): ErrorCode.NOT_COORDINATOR}


@pytest.mark.parametrize("version", [3, 5])
def test_the_offsets_of_a_zombie_are_refused_with_a_code_that_old_clients_know(client, topic, version):
    find(client, 0, "group")
    zombie = init(client, topic)
    init(client, topic)
    request = offsets(topic, "group", zombie, (topic, [0]))
    assert codes_of(client.call(request, version)) == {(topic, 0): ErrorCode.INVALID_PRODUCER_EPOCH}


@pytest.mark.parametrize("verifies", [True, False])
def test_offsets_of_an_old_client_are_verified_unless_that_is_switched_off(make_broker, verifies):
    broker = make_broker({"transaction.partition.verification.enable": str(verifies).lower()})
    create_topic(broker.bootstrap, "orders")
    with WireClient(broker.bootstrap) as client:
        find(client, 1, "tx")
        find(client, 0, "group")
        # Without AddOffsetsToTxn before it.
        request = offsets("tx", "group", init(client, "tx"), ("orders", [0]))
        expected = ErrorCode.INVALID_TXN_STATE if verifies else ErrorCode.NONE
        assert codes_of(client.call(request, 3)) == {("orders", 0): expected}


async def resign(node, group):
    node.groups.resign(node.groups.partition_for(group))


def test_who_sends_markers_to_a_group_that_is_not_ready_is_told_to_ask_again(make_broker):
    broker = make_broker()
    with WireClient(broker.bootstrap) as client:
        find(client, 0, "group")
        broker.run(lambda node: resign(node, "group"))
        index = broker.node.groups.partition_for("group")
        topics = [WritableTxnMarkerTopic("__consumer_offsets", [index, 9999])]
        request = WriteTxnMarkersRequest([WritableTxnMarker(7, 0, False, topics, 0)])
        (answered,) = client.call(request, 1).markers[0].topics
    assert {each.partition_index: each.error_code for each in answered.partitions} == {
        index: ErrorCode.NOT_LEADER_OR_FOLLOWER,
        9999: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }


def test_every_state_that_kafka_names_is_a_known_filter(client):
    request = ListTransactionsRequest(state_filters=["Ongoing", "Dead", "PrepareEpochFence", "Sleeping"])
    reply = client.call(request, 1)
    assert (reply.error_code, reply.unknown_state_filters) == (0, ["Sleeping"])
