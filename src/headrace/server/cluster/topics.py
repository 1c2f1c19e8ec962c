"""Creating, growing and deleting topics: what is allowed, with Kafka's error messages, and what changes."""

from __future__ import annotations

import re
import uuid
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from headrace.server.cluster.changes import Change, PartitionsChanged, TopicCreated, TopicDeleted
from headrace.server.cluster.ids import random_id
from headrace.server.cluster.image import ConfigResource, MetadataImage, Partition, ResourceType, Topic
from headrace.server.cluster.outcome import Outcome
from headrace.server.cluster.placement import Load, place
from headrace.server.cluster.policy_changes import ConfigsChanged
from headrace.server.cluster.read_only import refuse_read_only, refuse_to_delete
from headrace.server.config.broker import BrokerConfig
from headrace.server.config.definition import ConfigError
from headrace.server.config.topic import check_topic_config
from headrace.wire.errors import ErrorCode, KafkaError
from headrace.wire.messages.create_partitions import CreatePartitionsTopic, CreatePartitionsTopicResult
from headrace.wire.messages.create_topics import CreatableTopic

MAX_PARTITIONS_PER_REQUEST = 10_000
MAX_NAME_LENGTH = 249

_NAME = re.compile(r"[a-zA-Z0-9._-]+")


def check_topic_name(name: str) -> None:
    """KafkaError when `name` is not a valid topic name."""
    if not name:
        complaint = "the empty string is not allowed"
    elif name in (".", ".."):
        complaint = f"'{name}' is not allowed"
    elif len(name) > MAX_NAME_LENGTH:
        complaint = f"the length of '{name}' is longer than the max allowed length {MAX_NAME_LENGTH}"
    elif _NAME.fullmatch(name) is None:
        complaint = (
            f"'{name}' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"
        )
    else:
        return
    raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic name is invalid: {complaint}")


@dataclass(frozen=True, slots=True)
class CreatedTopic:
    """The result for one topic of a request: an error, or the topic with its settings."""

    name: str
    error: KafkaError | None = None
    topic: Topic | None = None
    configs: Mapping[str, str] | None = None


def create_topics(
    image: MetadataImage,
    config: BrokerConfig,
    requested: Sequence[CreatableTopic],
    cordoned: Collection[int] = (),
) -> Outcome[list[CreatedTopic]]:
    """Each topic succeeds or fails by itself; those that succeed are created together."""
    names = [topic.name for topic in requested]
    by_collision_key = {_collision_key(name): name for name in image.topics}
    load = Load(image)
    results: list[CreatedTopic] = []
    changes: list[Change] = []
    partitions = 0
    for spec in requested:
        try:
            if names.count(spec.name) > 1:
                raise KafkaError(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
            load.next_topic()
            topic, configs = _create(image, config, spec, by_collision_key, load, cordoned)
            partitions += len(topic.partitions)
            if partitions > MAX_PARTITIONS_PER_REQUEST:
                raise KafkaError(
                    ErrorCode.POLICY_VIOLATION, "Excessively large number of partitions per request."
                )
        except KafkaError as error:
            results.append(CreatedTopic(spec.name, error))
            continue
        by_collision_key[_collision_key(spec.name)] = spec.name
        changes.append(TopicCreated(topic))
        if configs:
            changes.append(ConfigsChanged(ConfigResource(ResourceType.TOPIC, spec.name), configs))
        results.append(CreatedTopic(spec.name, None, topic, configs))
    return Outcome(results, changes)


def _collision_key(name: str) -> str:
    """Topics with the same result cannot both exist: metrics turn '.' into '_'."""
    return name.replace(".", "_")


def _create(
    image: MetadataImage,
    config: BrokerConfig,
    spec: CreatableTopic,
    by_collision_key: Mapping[str, str],
    load: Load,
    cordoned: Collection[int],
) -> tuple[Topic, dict[str, str]]:
    check_topic_name(spec.name)
    if spec.name in image.topics:
        raise KafkaError(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{spec.name}' already exists.")
    alike = by_collision_key.get(_collision_key(spec.name))
    if alike is not None:
        raise KafkaError(
            ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic '{spec.name}' collides with existing topic: {alike}"
        )
    configs = _creation_configs(config, spec)
    if spec.assignments:
        placed = _manual_placement(image, spec)
    else:
        placed = _automatic_placement(image, config, spec, load, cordoned)
    partitions = tuple(_new_partition(image, replicas) for replicas in placed)
    return Topic(spec.name, random_id(), partitions), configs


def _creation_configs(config: BrokerConfig, spec: CreatableTopic) -> dict[str, str]:
    missing = [entry.name for entry in spec.configs if entry.value is None]
    if missing:
        raise KafkaError(
            ErrorCode.INVALID_CONFIG, f"Null value not supported for topic configs: {','.join(missing)}"
        )
    configs = {entry.name: entry.value for entry in spec.configs if entry.value is not None}
    try:
        check_topic_config(config.topic_config(configs))
    except ConfigError as error:
        raise KafkaError(ErrorCode.INVALID_CONFIG, str(error)) from None
    return configs


def _automatic_placement(
    image: MetadataImage, config: BrokerConfig, spec: CreatableTopic, load: Load, cordoned: Collection[int]
) -> list[tuple[int, ...]]:
    if spec.replication_factor < -1 or spec.replication_factor == 0:
        raise KafkaError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            "Replication factor must be larger than 0, or -1 to use the default value.",
        )
    if spec.num_partitions < -1 or spec.num_partitions == 0:
        raise KafkaError(
            ErrorCode.INVALID_PARTITIONS, "Number of partitions was set to an invalid non-positive value."
        )
    factor = spec.replication_factor
    if factor == -1:
        factor = config.integer("default.replication.factor")
    partitions = spec.num_partitions
    if partitions == -1:
        partitions = config.integer("num.partitions")
    if partitions > MAX_PARTITIONS_PER_REQUEST:
        raise KafkaError(ErrorCode.POLICY_VIOLATION, "Excessively large number of partitions per request.")
    return place(image.brokers.values(), load, partitions, factor, cordoned=cordoned)


def _manual_placement(image: MetadataImage, spec: CreatableTopic) -> list[tuple[int, ...]]:
    if spec.replication_factor != -1:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            "A manual partition assignment was specified, but replication factor was not set to -1.",
        )
    if spec.num_partitions != -1:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            "A manual partition assignment was specified, but numPartitions was not set to -1.",
        )
    placed: dict[int, tuple[int, ...]] = {}
    factor: int | None = None
    for assignment in spec.assignments:
        index = assignment.partition_index
        if index in placed:
            raise KafkaError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"Found multiple manual partition assignments for partition {index}",
            )
        check_assignment(image, assignment.broker_ids, factor)
        factor = len(assignment.broker_ids)
        _check_some_active(image, index, assignment.broker_ids)
        placed[index] = tuple(assignment.broker_ids)
    if set(placed) != set(range(len(placed))):
        raise KafkaError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "partitions should be a consecutive 0-based integer sequence",
        )
    return [placed[index] for index in range(len(placed))]


def check_assignment(image: MetadataImage, replicas: Sequence[int], factor: int | None) -> None:
    """KafkaError when a manually given list of replicas is invalid."""
    complaint: str | None = None
    unknown = sorted(broker for broker in replicas if broker not in image.brokers)
    repeated = sorted(broker for broker in set(replicas) if list(replicas).count(broker) > 1)
    if not replicas:
        complaint = "an empty replica list."
    elif unknown:
        complaint = f"broker {unknown[0]}, but no such broker is registered."
    elif repeated:
        complaint = f"the broker {repeated[0]} more than once."
    elif factor is not None and len(replicas) != factor:
        complaint = (
            f"a partition with {len(replicas)} replica(s), but this is not consistent with previous partitions, "
            f"which have {factor} replica(s)."
        )
    if complaint is not None:
        raise KafkaError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT, f"The manual partition assignment includes {complaint}"
        )


def _check_some_active(image: MetadataImage, index: int, replicas: Sequence[int]) -> None:
    if not any(map(image.active, replicas)):
        raise KafkaError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"All brokers specified in the manual partition assignment for partition {index} "
            "are fenced or in controlled shutdown.",
        )


def _new_partition(image: MetadataImage, replicas: tuple[int, ...]) -> Partition:
    isr = tuple(filter(image.active, replicas))
    return Partition(replicas, isr, isr[0])


def create_partitions(
    image: MetadataImage, requested: Sequence[CreatePartitionsTopic], cordoned: Collection[int] = ()
) -> Outcome[list[CreatePartitionsTopicResult]]:
    """Add partitions; they can never be removed."""
    names = [topic.name for topic in requested]
    results: list[CreatePartitionsTopicResult] = []
    changes: list[Change] = []
    total = 0
    for spec in requested:
        try:
            if names.count(spec.name) > 1:
                raise KafkaError(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
            refuse_read_only(image, spec.name, "add partitions to")
            change = add_partitions(image, spec, cordoned)
            total += len(change.partitions)
            if total > MAX_PARTITIONS_PER_REQUEST:
                raise KafkaError(
                    ErrorCode.POLICY_VIOLATION, "Excessively large number of partitions per request."
                )
        except KafkaError as error:
            results.append(CreatePartitionsTopicResult(spec.name, error.code, error.message or None))
            continue
        changes.append(change)
        results.append(CreatePartitionsTopicResult(spec.name, ErrorCode.NONE, None))
    return Outcome(results, changes)


def add_partitions(
    image: MetadataImage, spec: CreatePartitionsTopic, cordoned: Collection[int] = ()
) -> PartitionsChanged:
    """The change that adds partitions to one topic; KafkaError when it cannot be done."""
    topic = image.topics.get(spec.name)
    if topic is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{spec.name}' does not exist.")
    present = len(topic.partitions)
    if spec.count == present:
        raise KafkaError(ErrorCode.INVALID_PARTITIONS, f"Topic already has {present} partition(s).")
    if spec.count < present:
        raise KafkaError(
            ErrorCode.INVALID_PARTITIONS,
            f"The topic {spec.name} currently has {present} partition(s); {spec.count} would not be an increase.",
        )
    additional = spec.count - present
    if additional > MAX_PARTITIONS_PER_REQUEST:
        raise KafkaError(ErrorCode.POLICY_VIOLATION, "Excessively large number of partitions per request.")
    first = topic.partitions[0]
    factor = len(first.replicas) - len(first.removing)
    if spec.assignments is not None:
        if len(spec.assignments) != additional:
            raise KafkaError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"Attempted to add {additional} additional partition(s), "
                f"but only {len(spec.assignments)} assignment(s) were specified.",
            )
        placed: list[tuple[int, ...]] = []
        for index, assignment in enumerate(spec.assignments, present):
            check_assignment(image, assignment.broker_ids, factor)
            _check_some_active(image, index, assignment.broker_ids)
            placed.append(tuple(assignment.broker_ids))
    else:
        load = Load(image, topic.partitions)
        placed = place(image.brokers.values(), load, additional, factor, present, cordoned)
    states = {present + number: _new_partition(image, replicas) for number, replicas in enumerate(placed)}
    return PartitionsChanged(topic.id, states)


def delete_topics(
    image: MetadataImage, topic_ids: Sequence[uuid.UUID]
) -> Outcome[dict[uuid.UUID, KafkaError | None]]:
    results: dict[uuid.UUID, KafkaError | None] = {}
    changes: list[Change] = []
    for topic_id in topic_ids:
        if topic_id in image.topics_by_id:
            try:
                refuse_to_delete(image, topic_id)
            except KafkaError as error:
                results[topic_id] = error
                continue
            changes.append(TopicDeleted(topic_id))
            results[topic_id] = None
        else:
            results[topic_id] = KafkaError(
                ErrorCode.UNKNOWN_TOPIC_ID, "This server does not host this topic ID."
            )
    return Outcome(results, changes)
