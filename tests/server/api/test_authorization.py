"""Every request asks the authorizer before it touches anything, and a denial is answered in Kafka's words."""

import itertools
import uuid

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from headrace.server.security.operations import CLUSTER, Operation, Resource, ResourceKind
from headrace.testing.broker import BrokerThread
from headrace.testing.wire import batch
from headrace.wire.errors import ErrorCode
from headrace.wire.messages import create_topics as ct
from headrace.wire.messages import delete_topics as dt
from headrace.wire.messages import describe_topic_partitions as dtp
from headrace.wire.messages import fetch as fe
from headrace.wire.messages import metadata as md
from headrace.wire.messages import offset_commit as oc
from headrace.wire.messages import offset_fetch as of
from headrace.wire.messages import offset_for_leader_epoch as ole
from headrace.wire.messages import produce as pr
from headrace.wire.messages import txn_offset_commit as toc
from headrace.wire.messages import write_txn_markers as wtm
from headrace.wire.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from headrace.wire.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from headrace.wire.messages.find_coordinator import FindCoordinatorRequest
from headrace.wire.messages.init_producer_id import InitProducerIdRequest
from headrace.wire.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from headrace.wire.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse
from headrace.wire.records import BatchBuilder
from headrace.wire.schema import Message

TOPIC, GROUP, TXN = ResourceKind.TOPIC, ResourceKind.GROUP, ResourceKind.TRANSACTIONAL_ID
_numbers = itertools.count()


class Rules:
    """Everything is allowed but what is in `denied`; remembers what it was asked."""

    def __init__(self):
        self.denied = set()
        self.asked = []

    def authorize(self, principal, host, operation, resource):
        self.asked.append((principal, operation, resource))
        return (operation, resource) not in self.denied

    def deny(self, operation, kind, name):
        self.denied.add((operation, Resource(kind, name)))

    def deny_on_cluster(self, *operations):
        for operation in operations:
            self.denied.add((operation, CLUSTER))


@pytest.fixture(scope="module")
def rules():
    return Rules()


@pytest.fixture(scope="module")
def broker(tmp_path_factory, rules):
    running = BrokerThread(tmp_path_factory.mktemp("broker"), authorizer=rules).start()
    # A group that has committed, so that its coordinator is there to be asked.
    client = Consumer({"bootstrap.servers": running.bootstrap, "group.id": "g", "log_level": 0})
    admin = AdminClient({"bootstrap.servers": running.bootstrap})
    admin.create_topics([NewTopic("committed", 1)])["committed"].result(30)
    client.commit(offsets=[TopicPartition("committed", 0, 0)], asynchronous=False)
    client.close()
    yield running
    running.stop()


@pytest.fixture(autouse=True)
def start_with_everything_allowed(rules):
    rules.denied.clear()
    rules.asked.clear()
    rules.deny_on_cluster(Operation.DELETE)  # which would do for every topic


def codes(message):
    """Every error code in a response, however deep."""
    found = set()
    for name in message.__slots__:
        value = getattr(message, name)
        if name.endswith("error_code"):
            found.add(ErrorCode(value))
        elif isinstance(value, Message):
            found |= codes(value)
        elif isinstance(value, list):
            for each in value:
                if isinstance(each, Message):
                    found |= codes(each)
    return found


def produce_to(topic, transactional_id=None):
    data = [pr.TopicProduceData(topic, partition_data=[pr.PartitionProduceData(0, batch(b"v"))])]
    return pr.ProduceRequest(transactional_id, -1, 1000, data)


def fetch_of(topic, replica_id=-1):
    return fe.FetchRequest(
        replica_id=replica_id,
        max_wait_ms=0,
        topics=[fe.FetchTopic(topic, partitions=[fe.FetchPartition(0, partition_max_bytes=1000)])],
    )


def commit_of(topic, group="g"):
    return oc.OffsetCommitRequest(
        group, topics=[oc.OffsetCommitRequestTopic(topic, [oc.OffsetCommitRequestPartition(0, 1)])]
    )


def transactional_commit(topic):
    partitions = [toc.TxnOffsetCommitRequestPartition(0, 1)]
    topics = [toc.TxnOffsetCommitRequestTopic(topic, partitions)]
    return toc.TxnOffsetCommitRequest("tx", "g", topics=topics)


def marker(topic):
    return wtm.WriteTxnMarkersRequest(
        [wtm.WritableTxnMarker(1, 0, False, [wtm.WritableTxnMarkerTopic(topic, [0])])]
    )


def test_creating_a_topic_needs_the_cluster_or_the_topic(wire, rules):
    allowed, refused = f"made-{next(_numbers)}", f"made-{next(_numbers)}"
    rules.deny_on_cluster(Operation.CREATE)
    rules.deny(Operation.CREATE, TOPIC, refused)
    request = ct.CreateTopicsRequest([ct.CreatableTopic(name, 1, 1) for name in (allowed, refused)])
    response = wire.ask(request, 7, ct.CreateTopicsResponse)
    assert {each.name: each.error_code for each in response.topics} == {
        allowed: ErrorCode.NONE,
        refused: ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    }


def test_the_settings_of_a_new_topic_are_told_only_to_those_who_may_see_them(wire, rules):
    name = f"made-{next(_numbers)}"
    rules.deny(Operation.DESCRIBE_CONFIGS, TOPIC, name)
    (made,) = wire.ask(
        ct.CreateTopicsRequest([ct.CreatableTopic(name, 3, 1)]), 7, ct.CreateTopicsResponse
    ).topics
    assert made.error_code == ErrorCode.NONE
    assert made.topic_config_error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert (made.num_partitions, made.configs) == (-1, [])


def test_a_topic_is_not_created_on_first_use_by_those_who_may_not_create_it(wire, rules):
    name = f"made-{next(_numbers)}"
    rules.deny_on_cluster(Operation.CREATE)
    rules.deny(Operation.CREATE, TOPIC, name)
    ask = md.MetadataRequest([md.MetadataRequestTopic(name=name)])
    (answer,) = wire.ask(ask, 9, md.MetadataResponse).topics
    assert answer.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    rules.denied.clear()
    assert name not in {
        each.name for each in wire.ask(md.MetadataRequest(None), 9, md.MetadataResponse).topics
    }


def test_a_topic_nobody_may_see_is_not_in_the_list(wire, rules, topic):
    def listed():
        return {each.name for each in wire.ask(md.MetadataRequest(None), 9, md.MetadataResponse).topics}

    def paged():
        answer = wire.ask(dtp.DescribeTopicPartitionsRequest(), 0, dtp.DescribeTopicPartitionsResponse)
        return {each.name for each in answer.topics}

    assert topic in listed() & paged()
    rules.deny(Operation.DESCRIBE, TOPIC, topic)
    assert topic not in listed() | paged()


def test_a_hidden_topic_asked_for_by_id_does_not_tell_its_name(wire, rules, topic):
    (known,) = wire.ask(
        md.MetadataRequest([md.MetadataRequestTopic(name=topic)]), 12, md.MetadataResponse
    ).topics
    rules.deny(Operation.DESCRIBE, TOPIC, topic)
    by_id = md.MetadataRequest([md.MetadataRequestTopic(known.topic_id, None)])
    (answer,) = wire.ask(by_id, 12, md.MetadataResponse).topics
    assert (answer.error_code, answer.name) == (ErrorCode.TOPIC_AUTHORIZATION_FAILED, None)
    deletion = dt.DeleteTopicsRequest(topics=[dt.DeleteTopicState(None, known.topic_id)])
    (answer,) = wire.ask(deletion, 6, dt.DeleteTopicsResponse).responses
    assert (answer.error_code, answer.name) == (ErrorCode.TOPIC_AUTHORIZATION_FAILED, None)


def test_one_denied_topic_does_not_hold_up_the_others_of_a_request(wire, rules, topic):
    other = f"made-{next(_numbers)}"
    wire.ask(ct.CreateTopicsRequest([ct.CreatableTopic(other, 1, 1)]), 7, ct.CreateTopicsResponse)
    rules.deny(Operation.WRITE, TOPIC, other)
    request = produce_to(topic)
    request.topic_data += produce_to(other).topic_data
    response = wire.ask(request, 9, pr.ProduceResponse)
    assert {each.name: each.partition_responses[0].error_code for each in response.responses} == {
        topic: ErrorCode.NONE,
        other: ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    }


def test_a_fetch_session_ends_when_the_permission_does(wire, rules, topic):
    request = fetch_of(topic)
    request.session_epoch = 0
    first = wire.ask(request, 12, fe.FetchResponse)
    assert codes(first) == {ErrorCode.NONE}
    rules.deny(Operation.READ, TOPIC, topic)
    wire.ask(produce_to(topic), 9, pr.ProduceResponse)
    again = fe.FetchRequest(max_wait_ms=1000, min_bytes=1, session_id=first.session_id, session_epoch=1)
    assert ErrorCode.TOPIC_AUTHORIZATION_FAILED in codes(wire.ask(again, 12, fe.FetchResponse))


def test_records_of_a_transaction_that_is_not_named_are_refused(wire, topic):
    request = produce_to(topic)
    builder = BatchBuilder(producer_id=1, producer_epoch=0, base_sequence=0, transactional=True)
    request.topic_data[0].partition_data[0].records = batch(b"v", builder=builder)
    assert ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED in codes(wire.ask(request, 9, pr.ProduceResponse))


def test_only_a_broker_may_fetch_as_a_follower(wire, rules, topic):
    rules.deny_on_cluster(Operation.CLUSTER_ACTION)
    answer = wire.ask(fetch_of(topic, replica_id=2), 12, fe.FetchResponse)
    assert ErrorCode.TOPIC_AUTHORIZATION_FAILED in codes(answer)


def test_the_end_of_an_epoch_is_told_to_brokers_and_to_those_who_may_see_the_topic(wire, rules, topic):
    request = ole.OffsetForLeaderEpochRequest(
        -1, [ole.OffsetForLeaderTopic(topic, [ole.OffsetForLeaderPartition(0)])]
    )
    rules.deny(Operation.DESCRIBE, TOPIC, topic)
    assert codes(wire.ask(request, 4, ole.OffsetForLeaderEpochResponse)) == {ErrorCode.NONE}
    rules.deny_on_cluster(Operation.CLUSTER_ACTION)
    assert codes(wire.ask(request, 4, ole.OffsetForLeaderEpochResponse)) == {
        ErrorCode.TOPIC_AUTHORIZATION_FAILED
    }


def test_markers_are_written_by_brokers_and_administrators(wire, rules, topic):
    rules.deny_on_cluster(Operation.CLUSTER_ACTION)
    answer = wire.ask(marker(topic), 1, wtm.WriteTxnMarkersResponse)
    assert ErrorCode.CLUSTER_AUTHORIZATION_FAILED not in codes(answer)
    rules.deny_on_cluster(Operation.ALTER)
    answer = wire.ask(marker(topic), 1, wtm.WriteTxnMarkersResponse)
    assert codes(answer) == {ErrorCode.CLUSTER_AUTHORIZATION_FAILED}


def test_whoever_may_write_to_some_topic_may_do_so_idempotently(wire, rules, topic):
    request = InitProducerIdRequest(None, 0)
    rules.deny_on_cluster(Operation.IDEMPOTENT_WRITE)
    assert codes(wire.ask(request, 4, request.reply_type())) == {ErrorCode.NONE}
    for each in wire.ask(md.MetadataRequest(None), 9, md.MetadataResponse).topics:
        rules.deny(Operation.WRITE, TOPIC, each.name)
    assert codes(wire.ask(request, 4, request.reply_type())) == {ErrorCode.CLUSTER_AUTHORIZATION_FAILED}


def test_groups_are_listed_for_those_who_may_see_them(wire, rules, topic):
    group = f"group-{next(_numbers)}"
    wire.ask(
        FindCoordinatorRequest(key_type=0, coordinator_keys=[group]), 4, FindCoordinatorRequest().reply_type()
    )
    assert codes(wire.ask(commit_of(topic, group), 8, oc.OffsetCommitResponse)) == {ErrorCode.NONE}

    def listed():
        return {each.group_id for each in wire.ask(ListGroupsRequest(), 4, ListGroupsResponse).groups}

    rules.deny(Operation.DESCRIBE, GROUP, group)
    assert group in listed()  # who may describe the cluster sees all
    rules.deny_on_cluster(Operation.DESCRIBE)
    assert group not in listed()


def test_offsets_of_hidden_topics_are_left_out_of_all_offsets(wire, rules, topic):
    group = f"group-{next(_numbers)}"
    wire.ask(commit_of(topic, group), 8, oc.OffsetCommitResponse)
    request = of.OffsetFetchRequest(groups=[of.OffsetFetchRequestGroup(group)])

    def names():
        return [each.name for each in wire.ask(request, 8, of.OffsetFetchResponse).groups[0].topics]

    assert names() == [topic]
    rules.deny(Operation.DESCRIBE, TOPIC, topic)
    assert names() == []


def test_transactions_are_listed_for_those_who_may_see_them(wire, rules):
    transactional_id = f"tx-{next(_numbers)}"
    find = FindCoordinatorRequest(key_type=1, coordinator_keys=[transactional_id])
    wire.ask(find, 4, find.reply_type())
    request = InitProducerIdRequest(transactional_id, 1000)
    assert codes(wire.ask(request, 4, request.reply_type())) == {ErrorCode.NONE}

    def listed():
        answer = wire.ask(ListTransactionsRequest(), 0, ListTransactionsResponse)
        return {each.transactional_id for each in answer.transaction_states}

    assert transactional_id in listed()
    rules.deny(Operation.DESCRIBE, TXN, transactional_id)
    assert transactional_id not in listed()


def test_authorized_operations_are_those_the_authorizer_allows(wire, rules, topic):
    def bits(*operations):
        return sum(1 << each for each in operations)

    group = f"group-{next(_numbers)}"
    wire.ask(commit_of(topic, group), 8, oc.OffsetCommitResponse)
    rules.deny(Operation.WRITE, TOPIC, topic)
    rules.deny(Operation.DELETE, GROUP, group)
    rules.deny_on_cluster(Operation.ALTER)
    asked = md.MetadataRequest([md.MetadataRequestTopic(name=topic)], True, True, True)
    metadata = wire.ask(asked, 9, md.MetadataResponse)
    assert metadata.topics[0].topic_authorized_operations == 3576 - bits(Operation.WRITE)
    assert metadata.cluster_authorized_operations == 8096 - bits(Operation.ALTER)
    cluster = wire.ask(DescribeClusterRequest(True), 1, DescribeClusterResponse)
    assert cluster.cluster_authorized_operations == 8096 - bits(Operation.ALTER)
    (described,) = wire.ask(DescribeGroupsRequest([group], True), 5, DescribeGroupsResponse).groups
    assert described.authorized_operations == 3400 - bits(Operation.DELETE)
    rules.deny_on_cluster(Operation.DESCRIBE)
    cluster = wire.ask(DescribeClusterRequest(True), 1, DescribeClusterResponse)
    assert cluster.cluster_authorized_operations == 0


def test_the_authorizer_is_told_who_asks(wire, rules, topic):
    wire.ask(fetch_of(topic), 12, fe.FetchResponse)
    assert ("User:ANONYMOUS", Operation.READ, Resource(TOPIC, topic)) in rules.asked


def test_a_real_client_is_told_what_it_may_not_do(broker, rules, topic):
    rules.deny(Operation.WRITE, TOPIC, topic)
    rules.deny(Operation.READ, GROUP, "real")
    told = []
    producer = Producer({"bootstrap.servers": broker.bootstrap, "log_level": 0})
    producer.produce(topic, b"v", on_delivery=lambda error, _: told.append(error))
    assert producer.flush(30) == 0
    assert told[0].name() == "TOPIC_AUTHORIZATION_FAILED"
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "real", "log_level": 0})
    consumer.subscribe([topic])
    message = consumer.poll(30)
    assert message.error().name() == "GROUP_AUTHORIZATION_FAILED"
    consumer.close()


def test_offsets_of_a_topic_given_by_id_need_its_permission(wire, rules, topic):
    (known,) = wire.ask(
        md.MetadataRequest([md.MetadataRequestTopic(name=topic)]), 12, md.MetadataResponse
    ).topics
    rules.deny(Operation.READ, TOPIC, topic)
    rules.deny(Operation.DESCRIBE, TOPIC, topic)
    commit = commit_of("")
    commit.topics[0].topic_id = known.topic_id
    assert codes(wire.ask(commit, 10, oc.OffsetCommitResponse)) == {ErrorCode.TOPIC_AUTHORIZATION_FAILED}
    asked = [of.OffsetFetchRequestTopics("", [0], known.topic_id)]
    fetch = of.OffsetFetchRequest(groups=[of.OffsetFetchRequestGroup("g", topics=asked)])
    (answer,) = wire.ask(fetch, 10, of.OffsetFetchResponse).groups
    assert [(each.topic_id, each.partitions[0].error_code) for each in answer.topics] == [
        (known.topic_id, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    ]
    in_transaction = transactional_commit("")
    in_transaction.topics[0].topic_id = known.topic_id
    refused = wire.ask(in_transaction, 6, toc.TxnOffsetCommitResponse)
    assert codes(refused) == {ErrorCode.TOPIC_AUTHORIZATION_FAILED}
    rules.deny(Operation.READ, GROUP, "g")
    commit.topics[0].topic_id = uuid.uuid4()
    assert codes(wire.ask(commit, 10, oc.OffsetCommitResponse)) == {ErrorCode.GROUP_AUTHORIZATION_FAILED}
