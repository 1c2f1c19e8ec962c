import itertools
import uuid

import pytest

from headrace.server.api.metadata import describe
from headrace.server.cluster.changes import BrokerChanged, PartitionsChanged, TopicCreated
from headrace.server.cluster.differences import apply_changes
from headrace.server.cluster.image import Broker, Endpoint, MetadataImage, Partition, Topic
from headrace.wire.errors import ErrorCode
from headrace.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from headrace.wire.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from headrace.wire.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    TopicRequest,
)
from headrace.wire.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse

_numbers = itertools.count()


@pytest.fixture
def new_topic(wire):
    def create(partitions=1):
        name = f"made-{next(_numbers)}"
        request = CreateTopicsRequest([CreatableTopic(name, partitions, 1)])
        (result,) = wire.ask(request, 7, CreateTopicsResponse).topics
        assert result.error_code == 0
        return name, result.topic_id

    return create


@pytest.mark.parametrize("version", range(14))
def test_every_version_describes_a_topic(wire, broker, new_topic, version):
    name, topic_id = new_topic(3)
    request = MetadataRequest([MetadataRequestTopic(name=name)])
    response = wire.ask(request, version, MetadataResponse)
    assert [(each.node_id, each.host, each.port) for each in response.brokers] == [
        (1, "127.0.0.1", broker.port)
    ]
    (topic,) = response.topics
    assert (topic.error_code, topic.name) == (0, name)
    assert [partition.partition_index for partition in topic.partitions] == [0, 1, 2]
    for partition in topic.partitions:
        assert (partition.leader_id, partition.replica_nodes, partition.isr_nodes) == (1, [1], [1])
    if version >= 1:
        assert response.controller_id == 1
    if version >= 2:
        assert len(response.cluster_id) == 22
    if version >= 10:
        assert topic.topic_id == topic_id


@pytest.mark.parametrize("version", range(14))
def test_all_topics_are_described_when_none_is_named(wire, new_topic, version):
    names = {new_topic()[0], new_topic(2)[0]}
    request = MetadataRequest([] if version == 0 else None)
    response = wire.ask(request, version, MetadataResponse)
    assert names <= {topic.name for topic in response.topics}


def test_an_empty_list_means_no_topics_from_version_1_on(wire, new_topic):
    new_topic()
    assert wire.ask(MetadataRequest([]), 1, MetadataResponse).topics == []


def test_a_reply_is_the_same_whether_its_topics_were_kept_or_not(wire, new_topic):
    name, _ = new_topic(5)
    request = MetadataRequest([MetadataRequestTopic(name=name)])
    for version in range(14):
        first, second = wire.ask_raw(request, version), wire.ask_raw(request, version)
        assert first[4:] == second[4:]
    with_operations = MetadataRequest(
        [MetadataRequestTopic(name=name)], include_topic_authorized_operations=True
    )
    (topic,) = wire.ask(with_operations, 9, MetadataResponse).topics
    assert topic.topic_authorized_operations == 3576
    (topic,) = wire.ask(request, 9, MetadataResponse).topics
    assert topic.topic_authorized_operations == -(2**31)


def test_the_clusters_operations_are_told_when_asked_for(wire):
    request = MetadataRequest([], include_cluster_authorized_operations=True)
    assert wire.ask(request, 8, MetadataResponse).cluster_authorized_operations == 8096


@pytest.mark.parametrize("version", [0, 4, 9, 12, 13])
def test_a_topic_is_created_on_first_use_and_described_at_once(wire, version):
    name = f"auto-{next(_numbers)}"
    request = MetadataRequest([MetadataRequestTopic(name=name)])
    (topic,) = wire.ask(request, version, MetadataResponse).topics
    assert (topic.error_code, len(topic.partitions)) == (0, 1)
    assert topic.partitions[0].leader_id == 1


def test_a_client_can_forbid_creation(wire):
    request = MetadataRequest([MetadataRequestTopic(name="not-here")], allow_auto_topic_creation=False)
    (topic,) = wire.ask(request, 12, MetadataResponse).topics
    assert (topic.error_code, topic.name) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "not-here")


def test_the_broker_can_forbid_creation(make_broker, wire_to):
    wire = wire_to(make_broker({"auto.create.topics.enable": "false"}))
    request = MetadataRequest([MetadataRequestTopic(name="not-here")])
    (topic,) = wire.ask(request, 12, MetadataResponse).topics
    assert topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_created_topics_take_the_brokers_defaults(make_broker, wire_to):
    wire = wire_to(make_broker({"num.partitions": "4"}))
    (topic,) = wire.ask(MetadataRequest([MetadataRequestTopic(name="auto")]), 12, MetadataResponse).topics
    assert len(topic.partitions) == 4


def test_an_impossible_name_is_an_error_and_nothing_is_created(wire):
    request = MetadataRequest([MetadataRequestTopic(name="no spaces")])
    (topic,) = wire.ask(request, 12, MetadataResponse).topics
    assert topic.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION


def test_internal_topics_come_with_one_replica_on_a_lone_broker(make_broker, wire_to):
    wire = wire_to(make_broker({"offsets.topic.num.partitions": "3"}))
    request = MetadataRequest([MetadataRequestTopic(name="__consumer_offsets")])
    (topic,) = wire.ask(request, 12, MetadataResponse).topics
    assert (topic.error_code, topic.is_internal, len(topic.partitions)) == (0, True, 3)
    assert topic.partitions[0].replica_nodes == [1]


def test_topics_are_found_by_id(wire, new_topic):
    name, topic_id = new_topic()
    unknown = uuid.uuid4()
    asked = [
        MetadataRequestTopic(topic_id=topic_id, name=None),
        MetadataRequestTopic(topic_id=unknown, name=None),
    ]
    first, second = wire.ask(MetadataRequest(asked), 12, MetadataResponse).topics
    assert (first.error_code, first.name) == (0, name)
    assert (second.error_code, second.name, second.topic_id) == (ErrorCode.UNKNOWN_TOPIC_ID, None, unknown)


def test_a_name_is_described_once_however_often_it_is_asked(wire, new_topic):
    name, _ = new_topic()
    asked = [MetadataRequestTopic(name=name), MetadataRequestTopic(name=name)]
    assert len(wire.ask(MetadataRequest(asked), 12, MetadataResponse).topics) == 1


# What a partition looks like when brokers are missing.


def image_with(*brokers):
    topic = Topic("t", uuid.UUID(int=1), (Partition((1, 2, 3), (1, 2), 1, 4),))
    return apply_changes(MetadataImage(), 0, [*map(BrokerChanged, brokers), TopicCreated(topic)])


def broker_on(broker_id, *listeners, fenced=False):
    endpoints = tuple(Endpoint(name, "host", 9, "PLAINTEXT") for name in listeners)
    return Broker(broker_id, 1, endpoints, fenced=fenced)


def described(image, version):
    (partition,) = describe(image, image.topics["t"], "CLIENTS", version).partitions
    return partition


def test_replicas_on_brokers_that_are_away_are_offline():
    image = image_with(broker_on(1, "CLIENTS"), broker_on(2, "CLIENTS", fenced=True))
    partition = described(image, 12)
    assert (partition.error_code, partition.leader_id, partition.leader_epoch) == (0, 1, 4)
    assert (partition.replica_nodes, partition.isr_nodes, partition.offline_replicas) == (
        [1, 2, 3],
        [1, 2],
        [2, 3],
    )


def test_the_oldest_version_names_only_replicas_that_can_be_reached():
    partition = described(image_with(broker_on(1, "CLIENTS"), broker_on(2, "CLIENTS")), 0)
    assert partition.error_code == ErrorCode.REPLICA_NOT_AVAILABLE
    assert (partition.replica_nodes, partition.isr_nodes) == ([1, 2], [1, 2])


def test_a_partition_without_a_leader_says_so():
    image = image_with(broker_on(1, "CLIENTS"))
    image = apply_changes(
        image, 1, [PartitionsChanged(uuid.UUID(int=1), {0: Partition((1, 2), (2,), -1, 5)})]
    )
    partition = described(image, 12)
    assert (partition.error_code, partition.leader_id) == (ErrorCode.LEADER_NOT_AVAILABLE, -1)


@pytest.mark.parametrize(
    ("version", "error"), [(5, ErrorCode.LEADER_NOT_AVAILABLE), (6, ErrorCode.LISTENER_NOT_FOUND)]
)
def test_a_leader_that_has_not_this_listener_cannot_be_named(version, error):
    partition = described(image_with(broker_on(1, "REPLICATION"), broker_on(2, "CLIENTS")), version)
    assert (partition.error_code, partition.leader_id) == (error, -1)


# DescribeCluster and DescribeTopicPartitions.


@pytest.mark.parametrize("version", range(3))
def test_the_cluster_is_described(wire, broker, version):
    response = wire.ask(DescribeClusterRequest(True), version, DescribeClusterResponse)
    assert (response.error_code, response.controller_id, len(response.cluster_id)) == (0, 1, 22)
    assert [(each.broker_id, each.port) for each in response.brokers] == [(1, broker.port)]
    assert response.cluster_authorized_operations == 8096


def test_there_are_no_controller_endpoints(wire):
    response = wire.ask(DescribeClusterRequest(False, 2), 1, DescribeClusterResponse)
    assert response.error_code == ErrorCode.MISMATCHED_ENDPOINT_TYPE
    response = wire.ask(DescribeClusterRequest(False, 9), 1, DescribeClusterResponse)
    assert response.error_code == ErrorCode.UNSUPPORTED_ENDPOINT_TYPE


def pages(wire, names, limit):
    cursor, seen = None, []
    while True:
        request = DescribeTopicPartitionsRequest([TopicRequest(name) for name in names], limit, cursor)
        response = wire.ask(request, 0, DescribeTopicPartitionsResponse)
        page = [
            (topic.name, partition.partition_index)
            for topic in response.topics
            for partition in topic.partitions
        ]
        assert len(page) <= limit
        seen += page
        if response.next_cursor is None:
            return seen
        cursor = Cursor(response.next_cursor.topic_name, response.next_cursor.partition_index)


@pytest.mark.parametrize("limit", [1, 2, 3, 4, 100])
def test_partitions_come_in_pages_that_miss_nothing(wire, new_topic, limit):
    names = sorted([new_topic(3)[0], new_topic(1)[0], new_topic(2)[0]])
    counts = {
        name: len(
            wire.ask(MetadataRequest([MetadataRequestTopic(name=name)]), 12, MetadataResponse)
            .topics[0]
            .partitions
        )
        for name in names
    }
    expected = [(name, index) for name in names for index in range(counts[name])]
    assert pages(wire, names, limit) == expected


def test_without_names_every_topic_is_paged(wire, new_topic):
    name, _ = new_topic(2)
    assert {(name, 0), (name, 1)} <= set(pages(wire, [], 100))


def test_a_page_names_topics_that_are_not_there(wire):
    request = DescribeTopicPartitionsRequest([TopicRequest("not-here"), TopicRequest("no spaces")], 10)
    response = wire.ask(request, 0, DescribeTopicPartitionsResponse)
    assert {topic.name: topic.error_code for topic in response.topics} == {
        "not-here": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        "no spaces": ErrorCode.INVALID_TOPIC_EXCEPTION,
    }


def test_a_cursor_that_cannot_be_is_answered_and_not_cut_off(wire, new_topic):
    name, _ = new_topic()
    request = DescribeTopicPartitionsRequest([TopicRequest(name)], 10, Cursor(name, -1))
    (answer,) = wire.ask(request, 0, DescribeTopicPartitionsResponse).topics
    assert (answer.error_code, answer.name) == (ErrorCode.INVALID_REQUEST, name)
