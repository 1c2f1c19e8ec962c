from collections.abc import Callable, Iterable

import pytest

from headrace.server.cluster.differences import apply_changes
from headrace.server.cluster.image import Broker, MetadataImage
from headrace.server.cluster.topics import create_partitions, create_topics, delete_topics
from headrace.server.config.broker import BrokerConfig
from headrace.wire.errors import ErrorCode
from headrace.wire.messages.create_partitions import CreatePartitionsAssignment, CreatePartitionsTopic
from headrace.wire.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
)

ImageOf = Callable[[Iterable[Broker]], MetadataImage]
CONFIG = BrokerConfig.load({"num.partitions": "3"})


@pytest.fixture
def image(image_of: ImageOf, broker: Callable[..., Broker]) -> MetadataImage:
    """Three brokers alive, a fourth fenced, and a topic `present` with two partitions."""
    empty = image_of([broker(1), broker(2), broker(3), broker(4, fenced=True)])
    outcome = create_topics(empty, CONFIG, [CreatableTopic("present", 2, 2)])
    return apply_changes(empty, 1, outcome.changes)


def manual(*replicas: list[int]) -> list[CreatableReplicaAssignment]:
    return [CreatableReplicaAssignment(index, brokers) for index, brokers in enumerate(replicas)]


def test_a_topic_gets_what_was_asked_for(image: MetadataImage) -> None:
    outcome = create_topics(image, CONFIG, [CreatableTopic("new", 4, 3)])
    topic = outcome.result[0].topic
    assert topic is not None
    assert len(topic.partitions) == 4
    for partition in topic.partitions:
        assert partition.leader == partition.replicas[0]
        assert partition.isr == partition.replicas
        assert (len(partition.replicas), partition.leader_epoch, partition.partition_epoch) == (3, 0, 0)
    after = apply_changes(image, 2, outcome.changes)
    assert after.topics["new"] is after.topics_by_id[topic.id]


def test_minus_one_takes_the_brokers_defaults(image: MetadataImage) -> None:
    (created,) = create_topics(image, CONFIG, [CreatableTopic("new", -1, -1)]).result
    assert created.topic is not None
    assert len(created.topic.partitions) == 3
    assert len(created.topic.partitions[0].replicas) == 1


def test_a_manual_assignment_is_kept_and_only_live_replicas_are_in_sync(image: MetadataImage) -> None:
    spec = CreatableTopic("new", -1, -1, manual([4, 2], [3, 1]))
    (created,) = create_topics(image, CONFIG, [spec]).result
    assert created.topic is not None
    first, second = created.topic.partitions
    assert (first.replicas, first.isr, first.leader) == ((4, 2), (2,), 2)
    assert (second.replicas, second.isr, second.leader) == ((3, 1), (3, 1), 3)


def test_settings_come_into_being_with_the_topic_and_go_with_it(image: MetadataImage) -> None:
    spec = CreatableTopic("new", 1, 1, configs=[CreatableTopicConfig("retention.ms", "5")])
    outcome = create_topics(image, CONFIG, [spec])
    after = apply_changes(image, 2, outcome.changes)
    assert after.topic_configs("new") == {"retention.ms": "5"}
    gone = delete_topics(after, [after.topics["new"].id])
    assert gone.result == {after.topics["new"].id: None}
    final = apply_changes(after, 3, gone.changes)
    assert "new" not in final.topics
    assert final.topic_configs("new") == {}


@pytest.mark.parametrize(
    ("spec", "code", "sentence"),
    [
        (CreatableTopic("present", 1, 1), ErrorCode.TOPIC_ALREADY_EXISTS, "Topic 'present' already exists."),
        (CreatableTopic("", 1, 1), ErrorCode.INVALID_TOPIC_EXCEPTION, "empty string"),
        (CreatableTopic("..", 1, 1), ErrorCode.INVALID_TOPIC_EXCEPTION, "'..' is not allowed"),
        (CreatableTopic("a b", 1, 1), ErrorCode.INVALID_TOPIC_EXCEPTION, "ASCII alphanumerics"),
        (CreatableTopic("a\n", 1, 1), ErrorCode.INVALID_TOPIC_EXCEPTION, "ASCII alphanumerics"),
        (CreatableTopic("x" * 250, 1, 1), ErrorCode.INVALID_TOPIC_EXCEPTION, "max allowed length 249"),
        (CreatableTopic("new", 0, 1), ErrorCode.INVALID_PARTITIONS, "non-positive"),
        (CreatableTopic("new", -5, 1), ErrorCode.INVALID_PARTITIONS, "non-positive"),
        (CreatableTopic("new", 1, 0), ErrorCode.INVALID_REPLICATION_FACTOR, "larger than 0"),
        (CreatableTopic("new", 1, 4), ErrorCode.INVALID_REPLICATION_FACTOR, "only 3 broker(s) are live"),
        (CreatableTopic("new", 20_000, 1), ErrorCode.POLICY_VIOLATION, "Excessively large"),
        (
            CreatableTopic("new", 1, -1, manual([1])),
            ErrorCode.INVALID_REQUEST,
            "numPartitions was not set to -1",
        ),
        (CreatableTopic("new", -1, 1, manual([1])), ErrorCode.INVALID_REQUEST, "factor was not set to -1"),
        (
            CreatableTopic("new", -1, -1, manual([9])),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "broker 9, but no such",
        ),
        (
            CreatableTopic("new", -1, -1, manual([1, 1])),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "more than once",
        ),
        (
            CreatableTopic("new", -1, -1, manual([])),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "empty replica list",
        ),
        (
            CreatableTopic("new", -1, -1, manual([1], [1, 2])),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "not consistent",
        ),
        (CreatableTopic("new", -1, -1, manual([4])), ErrorCode.INVALID_REPLICA_ASSIGNMENT, "are fenced"),
        (
            CreatableTopic("new", -1, -1, [CreatableReplicaAssignment(1, [1])]),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "consecutive 0-based",
        ),
        (
            CreatableTopic("new", 1, 1, configs=[CreatableTopicConfig("retention.ms", "soon")]),
            ErrorCode.INVALID_CONFIG,
            "Not a number of type LONG",
        ),
        (
            CreatableTopic("new", 1, 1, configs=[CreatableTopicConfig("colour", "red")]),
            ErrorCode.INVALID_CONFIG,
            "Unknown topic config name: colour",
        ),
        (
            CreatableTopic("new", 1, 1, configs=[CreatableTopicConfig("retention.ms", None)]),
            ErrorCode.INVALID_CONFIG,
            "Null value not supported",
        ),
    ],
)
def test_what_cannot_be_created_is_refused_in_kafkas_words(
    image: MetadataImage, spec: CreatableTopic, code: ErrorCode, sentence: str
) -> None:
    outcome = create_topics(image, CONFIG, [spec])
    error = outcome.result[0].error
    assert error is not None
    assert (error.code, sentence in error.message) == (code, True), error.message
    assert outcome.changes == []


def test_a_wrong_topic_does_not_hold_back_the_others(image: MetadataImage) -> None:
    outcome = create_topics(image, CONFIG, [CreatableTopic("bad name", 1, 1), CreatableTopic("good", 1, 1)])
    assert [result.error is None for result in outcome.result] == [False, True]
    assert "good" in apply_changes(image, 2, outcome.changes).topics


def test_names_that_differ_only_in_dot_and_underscore_collide(image: MetadataImage) -> None:
    specs = [CreatableTopic("a.b", 1, 1), CreatableTopic("a_b", 1, 1)]
    first, second = create_topics(image, CONFIG, specs).result
    assert first.error is None
    assert second.error is not None
    assert second.error.message == "Topic 'a_b' collides with existing topic: a.b"


def test_a_name_given_twice_fails_both_times(image: MetadataImage) -> None:
    specs = [CreatableTopic("twin", 1, 1), CreatableTopic("twin", 2, 1)]
    errors = [result.error for result in create_topics(image, CONFIG, specs).result]
    assert [error.code for error in errors if error is not None] == [ErrorCode.INVALID_REQUEST] * 2


def test_partitions_are_added_with_the_topics_replication(image: MetadataImage) -> None:
    outcome = create_partitions(image, [CreatePartitionsTopic("present", 6, None)])
    assert [result.error_code for result in outcome.result] == [0]
    topic = apply_changes(image, 2, outcome.changes).topics["present"]
    assert len(topic.partitions) == 6
    assert topic.partitions[:2] == image.topics["present"].partitions
    assert {len(partition.replicas) for partition in topic.partitions} == {2}
    leaders = [partition.leader for partition in topic.partitions]
    assert {leaders.count(broker) for broker in (1, 2, 3)} == {2}


def test_added_partitions_may_be_placed_by_hand(image: MetadataImage) -> None:
    spec = CreatePartitionsTopic("present", 3, [CreatePartitionsAssignment([3, 1])])
    outcome = create_partitions(image, [spec])
    assert apply_changes(image, 2, outcome.changes).topics["present"].partitions[2].replicas == (3, 1)


@pytest.mark.parametrize(
    ("spec", "code", "sentence"),
    [
        (CreatePartitionsTopic("absent", 6, None), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "does not exist"),
        (
            CreatePartitionsTopic("present", 2, None),
            ErrorCode.INVALID_PARTITIONS,
            "already has 2 partition(s)",
        ),
        (CreatePartitionsTopic("present", 1, None), ErrorCode.INVALID_PARTITIONS, "would not be an increase"),
        (
            CreatePartitionsTopic("present", 4, []),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "only 0 assignment(s)",
        ),
        (
            CreatePartitionsTopic("present", 3, [CreatePartitionsAssignment([1])]),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "which have 2 replica(s)",
        ),
    ],
)
def test_partitions_that_cannot_be_added_are_refused(
    image: MetadataImage, spec: CreatePartitionsTopic, code: ErrorCode, sentence: str
) -> None:
    outcome = create_partitions(image, [spec])
    (result,) = outcome.result
    assert result.error_code == code
    assert result.error_message is not None
    assert sentence in result.error_message
    assert outcome.changes == []
