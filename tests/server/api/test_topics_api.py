import itertools
import uuid

import pytest

from headrace.wire.errors import ErrorCode
from headrace.wire.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
)
from headrace.wire.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from headrace.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse, DeleteTopicState
from headrace.wire.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse

_numbers = itertools.count()


def fresh():
    return f"orders-{next(_numbers)}"


def create(wire, *topics, version=7, **more):
    return wire.ask(CreateTopicsRequest(list(topics), **more), version, CreateTopicsResponse).topics


def exists(wire, name):
    request = MetadataRequest([MetadataRequestTopic(name=name)], allow_auto_topic_creation=False)
    return wire.ask(request, 12, MetadataResponse).topics[0].error_code == 0


@pytest.mark.parametrize("version", range(2, 8))
def test_every_version_creates_a_topic_and_tells_what_it_can(wire, version):
    name = fresh()
    spec = CreatableTopic(name, 3, 1, configs=[CreatableTopicConfig("retention.ms", "777")])
    (result,) = create(wire, spec, version=version)
    assert (result.name, result.error_code) == (name, 0)
    if version >= 5:
        assert (result.num_partitions, result.replication_factor) == (3, 1)
        configs = {config.name: config for config in result.configs}
        assert (configs["retention.ms"].value, configs["retention.ms"].config_source) == ("777", 1)
        assert configs["segment.bytes"].config_source == 5
    if version >= 7:
        assert result.topic_id.int != 0
    assert exists(wire, name)


def test_each_topic_of_a_request_stands_for_itself(wire):
    good, manual = fresh(), fresh()
    results = create(
        wire,
        CreatableTopic(good, 1, 1),
        CreatableTopic("no spaces", 1, 1),
        CreatableTopic(fresh(), 1, 3),
        CreatableTopic(
            manual, -1, -1, [CreatableReplicaAssignment(0, [1]), CreatableReplicaAssignment(1, [1])]
        ),
    )
    assert [result.error_code for result in results] == [
        0,
        ErrorCode.INVALID_TOPIC_EXCEPTION,
        ErrorCode.INVALID_REPLICATION_FACTOR,
        0,
    ]
    assert "only 1 broker(s) are live" in results[2].error_message
    assert results[3].num_partitions == 2


def test_creating_twice_is_an_error_the_second_time(wire):
    name = fresh()
    create(wire, CreatableTopic(name, 1, 1))
    (result,) = create(wire, CreatableTopic(name, 1, 1))
    assert result.error_code == ErrorCode.TOPIC_ALREADY_EXISTS
    assert result.error_message == f"Topic '{name}' already exists."


def test_validate_only_creates_nothing(wire):
    name = fresh()
    (result,) = create(wire, CreatableTopic(name, 2, 1), validate_only=True)
    assert (result.error_code, result.num_partitions) == (0, 2)
    assert not exists(wire, name)


@pytest.mark.parametrize("version", range(1, 7))
def test_every_version_deletes_by_name(wire, version):
    name = fresh()
    create(wire, CreatableTopic(name, 2, 1))
    request = DeleteTopicsRequest(
        topic_names=[name, "not-here"], topics=[DeleteTopicState(name), DeleteTopicState("not-here")]
    )
    deleted, absent = wire.ask(request, version, DeleteTopicsResponse).responses
    assert (deleted.name, deleted.error_code) == (name, 0)
    assert (absent.name, absent.error_code) == ("not-here", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    assert not exists(wire, name)


def test_a_topic_is_deleted_by_its_id(wire):
    name = fresh()
    topic_id = create(wire, CreatableTopic(name, 1, 1))[0].topic_id
    unknown = uuid.uuid4()
    asked = [
        DeleteTopicState(None, topic_id),
        DeleteTopicState(None, unknown),
        DeleteTopicState(None),
        DeleteTopicState("both", unknown),
    ]
    results = wire.ask(DeleteTopicsRequest(topics=asked), 6, DeleteTopicsResponse).responses
    assert [result.error_code for result in results] == [
        0,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.INVALID_REQUEST,
    ]
    assert results[0].name == name
    assert not exists(wire, name)
    (result,) = wire.ask(DeleteTopicsRequest(topics=[asked[0]]), 6, DeleteTopicsResponse).responses
    assert result.error_code == ErrorCode.UNKNOWN_TOPIC_ID


def test_deleting_a_name_twice_in_one_request_deletes_nothing(wire):
    name = fresh()
    create(wire, CreatableTopic(name, 1, 1))
    request = DeleteTopicsRequest(topics=[DeleteTopicState(name), DeleteTopicState(name)])
    results = wire.ask(request, 6, DeleteTopicsResponse).responses
    assert [result.error_code for result in results] == [ErrorCode.INVALID_REQUEST] * 2
    assert exists(wire, name)


def test_a_topic_can_be_made_again_after_it_was_deleted(wire):
    name = fresh()
    first = create(wire, CreatableTopic(name, 1, 1))[0].topic_id
    wire.ask(DeleteTopicsRequest(topics=[DeleteTopicState(name)]), 6, DeleteTopicsResponse)
    second = create(wire, CreatableTopic(name, 3, 1))[0]
    assert (second.error_code, second.num_partitions) == (0, 3)
    assert second.topic_id != first


@pytest.mark.parametrize(
    ("version", "code"), [(2, ErrorCode.INVALID_REQUEST), (4, ErrorCode.TOPIC_DELETION_DISABLED)]
)
def test_deletion_can_be_forbidden(make_broker, wire_to, version, code):
    wire = wire_to(make_broker({"delete.topic.enable": "false"}))
    create(wire, CreatableTopic("kept", 1, 1))
    (result,) = wire.ask(DeleteTopicsRequest(["kept"]), version, DeleteTopicsResponse).responses
    assert result.error_code == code
    assert exists(wire, "kept")


@pytest.mark.parametrize("version", range(4))
def test_every_version_adds_partitions(wire, version):
    name = fresh()
    create(wire, CreatableTopic(name, 1, 1))
    asked = [CreatePartitionsTopic(name, 4, None), CreatePartitionsTopic("not-here", 4, None)]
    grown, absent = wire.ask(CreatePartitionsRequest(asked), version, CreatePartitionsResponse).results
    assert (grown.name, grown.error_code) == (name, 0)
    assert absent.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    topic = wire.ask(MetadataRequest([MetadataRequestTopic(name=name)]), 12, MetadataResponse).topics[0]
    assert [partition.leader_id for partition in topic.partitions] == [1, 1, 1, 1]


def test_partitions_are_never_taken_away(wire):
    name = fresh()
    create(wire, CreatableTopic(name, 3, 1))
    request = CreatePartitionsRequest([CreatePartitionsTopic(name, 2, None)])
    (result,) = wire.ask(request, 3, CreatePartitionsResponse).results
    assert result.error_code == ErrorCode.INVALID_PARTITIONS
    assert "would not be an increase" in result.error_message


def test_topics_and_settings_outlive_the_broker(make_broker, wire_to, tmp_path):
    broker = make_broker()
    wire = wire_to(broker)
    spec = CreatableTopic("kept", 3, 1, configs=[CreatableTopicConfig("retention.ms", "5")])
    topic_id = create(wire, spec)[0].topic_id
    broker.stop()
    broker.start()
    wire = wire_to(broker)
    (topic,) = wire.ask(MetadataRequest([MetadataRequestTopic(name="kept")]), 12, MetadataResponse).topics
    assert (topic.topic_id, len(topic.partitions)) == (topic_id, 3)
