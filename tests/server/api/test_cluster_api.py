"""Requests that concern the whole cluster, sent to any of three brokers."""

import pytest
from confluent_kafka import Producer

from headrace.testing import cluster as testing
from headrace.wire.errors import ErrorCode
from headrace.wire.messages import incremental_alter_configs
from headrace.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignableTopic,
)
from headrace.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from headrace.wire.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
)
from headrace.wire.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from headrace.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse, DeleteTopicState
from headrace.wire.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from headrace.wire.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    PartitionData,
    TopicData,
)
from headrace.wire.messages.elect_leaders import ElectLeadersRequest, ElectLeadersResponse, TopicPartitions
from headrace.wire.messages.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from headrace.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from headrace.wire.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    ListPartitionReassignmentsTopics,
)
from headrace.wire.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from headrace.wire.messages.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse
from tests.waiting import until


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    running = testing.threads(tmp_path_factory.mktemp("cluster"), 3)
    yield running
    running.stop()


@pytest.fixture
def wires(cluster, wire_to):
    """A connection to each broker, by id."""
    return {number: wire_to(cluster[number]) for number in (1, 2, 3)}


@pytest.fixture
def elsewhere(wires):
    """A connection to a broker that is not the controller."""
    controller = wires[1].ask(DescribeClusterRequest(), 1, DescribeClusterResponse).controller_id
    return wires[1 if controller != 1 else 2]


def create(wire, name, *replicas):
    assignments = [CreatableReplicaAssignment(index, list(each)) for index, each in enumerate(replicas)]
    request = CreateTopicsRequest([CreatableTopic(name, -1, -1, assignments)])
    (result,) = wire.ask(request, 7, CreateTopicsResponse).topics
    assert result.error_code == 0, result.error_message


def partitions(wire, name):
    request = MetadataRequest([MetadataRequestTopic(name=name)], allow_auto_topic_creation=False)
    (topic,) = wire.ask(request, 12, MetadataResponse).topics
    return topic.partitions


def reassign(wire, name, *targets, version=1, **more):
    topic = ReassignableTopic(
        name, [ReassignablePartition(index, target) for index, target in enumerate(targets)]
    )
    request = AlterPartitionReassignmentsRequest(topics=[topic], **more)
    response = wire.ask(request, version, AlterPartitionReassignmentsResponse)
    assert response.error_code == 0
    return [partition.error_code for partition in response.responses[0].partitions]


def on_the_move(wire, topics=None):
    response = wire.ask(
        ListPartitionReassignmentsRequest(topics=topics), 0, ListPartitionReassignmentsResponse
    )
    return {topic.name: topic.partitions for topic in response.topics}


def test_any_broker_creates_grows_configures_and_deletes_topics(elsewhere, wires):
    (made,) = elsewhere.ask(
        CreateTopicsRequest([CreatableTopic("any", 2, 3)]), 7, CreateTopicsResponse
    ).topics
    assert (made.error_code, made.num_partitions, made.replication_factor) == (0, 2, 3)
    # The broker that passed the request on knows the topic when it answers.
    assert len(partitions(elsewhere, "any")) == 2
    request = CreatePartitionsRequest([CreatePartitionsTopic("any", 4, None)])
    assert elsewhere.ask(request, 3, CreatePartitionsResponse).results[0].error_code == 0
    assert len(partitions(elsewhere, "any")) == 4
    configs = [incremental_alter_configs.AlterableConfig("retention.ms", 0, "5")]
    resource = incremental_alter_configs.AlterConfigsResource(2, "any", configs)
    response = elsewhere.ask(IncrementalAlterConfigsRequest([resource]), 1, IncrementalAlterConfigsResponse)
    assert response.responses[0].error_code == 0
    request = DeleteTopicsRequest(topics=[DeleteTopicState("any")])
    assert elsewhere.ask(request, 6, DeleteTopicsResponse).responses[0].error_code == 0
    request = MetadataRequest([MetadataRequestTopic(name="any")], allow_auto_topic_creation=False)
    (topic,) = elsewhere.ask(request, 12, MetadataResponse).topics
    assert topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_any_broker_creates_a_topic_on_first_use(elsewhere):
    (topic,) = elsewhere.ask(
        MetadataRequest([MetadataRequestTopic(name="first")]), 12, MetadataResponse
    ).topics
    assert (topic.error_code, len(topic.partitions)) == (0, 1)


def test_every_broker_gives_out_producer_ids_and_none_twice(wires):
    given = [
        wires[number].ask(InitProducerIdRequest(None), 4, InitProducerIdResponse).producer_id
        for number in (1, 2, 3, 1, 2, 3)
    ]
    assert len(set(given)) == 6


def test_a_sentence_survives_being_passed_on(elsewhere):
    (result,) = elsewhere.ask(
        CreateTopicsRequest([CreatableTopic("many", 1, 4)]), 7, CreateTopicsResponse
    ).topics
    assert result.error_code == ErrorCode.INVALID_REPLICATION_FACTOR
    assert "only 3 broker(s) are live" in result.error_message


@pytest.mark.parametrize("version", [0, 1])
def test_a_partition_moves_with_its_records_and_serves_on(cluster, elsewhere, wires, version):
    name = f"moving-{version}"
    create(elsewhere, name, [1, 2])
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "acks": "all", "log_level": 0})
    for number in range(500):
        producer.produce(name, b"%d" % number, partition=0)
    assert producer.flush(60) == 0
    assert reassign(elsewhere, name, [3, 2], version=version) == [0]
    until(lambda: not on_the_move(elsewhere))
    until(lambda: partitions(elsewhere, name)[0].replica_nodes == [3, 2])
    (partition,) = partitions(elsewhere, name)
    assert set(partition.isr_nodes) == {2, 3}
    assert partition.leader_id in (2, 3)
    until(lambda: not list((cluster[1].data).glob(f"{name}-0")))
    moved = b"".join(path.read_bytes() for path in (cluster[3].data / f"{name}-0").glob("*.log"))
    kept = b"".join(path.read_bytes() for path in (cluster[2].data / f"{name}-0").glob("*.log"))
    assert moved == kept


def test_a_move_to_a_broker_that_is_away_is_listed_and_can_be_cancelled(cluster, wires, wire_to):
    create(wires[1], "stuck", [1, 2])
    cluster[3].stop()
    try:
        until(lambda: len(wires[1].ask(DescribeClusterRequest(), 1, DescribeClusterResponse).brokers) == 2)
        assert reassign(wires[1], "stuck", [1, 3]) == [0]
        (moving,) = on_the_move(wires[1])["stuck"]
        assert (moving.replicas, moving.adding_replicas, moving.removing_replicas) == ([1, 3, 2], [3], [2])
        asked = [
            ListPartitionReassignmentsTopics("stuck", [0, 5]),
            ListPartitionReassignmentsTopics("no-such", [0]),
        ]
        assert list(on_the_move(wires[2], asked)) == ["stuck"]
        assert reassign(wires[2], "stuck", None) == [0]
        assert on_the_move(wires[2]) == {}
        assert partitions(wires[2], "stuck")[0].replica_nodes == [1, 2]
    finally:
        cluster[3].start()
    until(lambda: len(wires[1].ask(DescribeClusterRequest(), 1, DescribeClusterResponse).brokers) == 3)


def test_moves_that_cannot_be_are_refused(elsewhere):
    create(elsewhere, "still", [1, 2])
    assert reassign(elsewhere, "still", None) == [ErrorCode.NO_REASSIGNMENT_IN_PROGRESS]
    assert reassign(elsewhere, "still", [1, 9]) == [ErrorCode.INVALID_REPLICA_ASSIGNMENT]
    assert reassign(elsewhere, "still", [1, 1]) == [ErrorCode.INVALID_REPLICA_ASSIGNMENT]
    assert reassign(elsewhere, "no-such", [1]) == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert reassign(elsewhere, "still", [1, 2], [1]) == [0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    refused = reassign(elsewhere, "still", [1], allow_replication_factor_change=False)
    assert refused == [ErrorCode.INVALID_REPLICATION_FACTOR]


@pytest.mark.parametrize("version", range(3))
def test_leadership_goes_back_to_the_preferred_leader(elsewhere, version):
    name = f"led-{version}"
    create(elsewhere, name, [1, 2, 3])
    assert reassign(elsewhere, name, [2, 1, 3]) == [0]
    until(lambda: partitions(elsewhere, name)[0].replica_nodes == [2, 1, 3])
    assert partitions(elsewhere, name)[0].leader_id == 1

    def elect():
        request = ElectLeadersRequest(0, [TopicPartitions(name, [0])])
        (topic,) = elsewhere.ask(request, version, ElectLeadersResponse).replica_election_results
        return topic.partition_result[0].error_code

    assert elect() == 0
    until(lambda: partitions(elsewhere, name)[0].leader_id == 2)
    assert elect() == ErrorCode.ELECTION_NOT_NEEDED


def test_elections_of_what_is_not_there_say_so(elsewhere):
    create(elsewhere, "voters", [1, 2])
    request = ElectLeadersRequest(1, [TopicPartitions("voters", [0, 9]), TopicPartitions("no-such", [0])])
    known, unknown = elsewhere.ask(request, 2, ElectLeadersResponse).replica_election_results
    assert [result.error_code for result in known.partition_result] == [
        ErrorCode.ELECTION_NOT_NEEDED,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ]
    assert unknown.partition_result[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    response = elsewhere.ask(ElectLeadersRequest(9, None), 2, ElectLeadersResponse)
    assert response.error_code == ErrorCode.INVALID_REQUEST


def test_all_partitions_that_need_it_are_elected_when_none_is_named(elsewhere):
    create(elsewhere, "stray", [1, 2, 3])
    assert reassign(elsewhere, "stray", [3, 1, 2]) == [0]
    response = elsewhere.ask(ElectLeadersRequest(0, None), 2, ElectLeadersResponse)
    results = {topic.topic: topic.partition_result for topic in response.replica_election_results}
    assert [result.error_code for result in results["stray"]] == [0]
    until(lambda: partitions(elsewhere, "stray")[0].leader_id == 3)


def test_a_broker_that_stops_hands_its_leaders_over_before_it_goes(cluster, wires):
    create(wires[1], "handed", [3, 1], [3, 2])
    cluster[3].stop()
    # No wait: the leaders moved while it still served.
    assert {partition.leader_id for partition in partitions(wires[1], "handed")} <= {1, 2}
    cluster[3].start()
    until(lambda: all(3 in partition.isr_nodes for partition in partitions(wires[1], "handed")))


def test_only_a_registered_broker_can_be_forgotten(elsewhere):
    response = elsewhere.ask(UnregisterBrokerRequest(9), 0, UnregisterBrokerResponse)
    assert response.error_code == ErrorCode.BROKER_ID_NOT_REGISTERED
    assert "not currently registered" in response.error_message


def test_a_client_that_reached_another_broker_or_cluster_is_told_to_start_over(wires):
    known = wires[1].ask(DescribeClusterRequest(), 1, DescribeClusterResponse).cluster_id

    def code(cluster_id, node_id, version=5):
        asked = ApiVersionsRequest("test", "1", cluster_id, node_id)
        return wires[2].ask(asked, version, ApiVersionsResponse).error_code

    assert code(None, -1) == code(known, 2) == ErrorCode.NONE
    assert code(known, 1) == code("another", 2) == ErrorCode.REBOOTSTRAP_REQUIRED
    assert code(known, -1) == code(None, 2) == ErrorCode.INVALID_REQUEST
    assert code(known, 1, 4) == ErrorCode.NONE, "version 4 does not say whom it means"


def test_what_plays_the_quorum_is_described_by_any_broker(wires, elsewhere):
    def ask(wire, topic="__cluster_metadata"):
        return wire.ask(
            DescribeQuorumRequest([TopicData(topic, [PartitionData(0)])]), 2, DescribeQuorumResponse
        )

    controller = wires[1].ask(DescribeClusterRequest(), 1, DescribeClusterResponse).controller_id
    for wire in (elsewhere, wires[controller]):
        reply = ask(wire)
        (quorum,) = reply.topics[0].partitions
        assert (reply.error_code, quorum.error_code, quorum.leader_id) == (0, 0, controller)
        assert quorum.leader_epoch > 0
        assert {each.replica_id: each.log_end_offset for each in quorum.current_voters} == dict.fromkeys(
            (1, 2, 3), quorum.high_watermark
        )
        assert quorum.observers == []
        assert {node.node_id for node in reply.nodes} == {1, 2, 3}
    (other,) = ask(elsewhere, "orders").topics[0].partitions
    assert other.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
