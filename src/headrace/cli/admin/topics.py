"""Topics: their names, what they look like, making and unmaking them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from confluent_kafka import KafkaError, KafkaException, TopicCollection, TopicPartition, Uuid
from confluent_kafka.cimpl import NewPartitions, NewTopic

from headrace.cli.cluster.connection import TIMEOUT, Cluster, Refused
from headrace.cli.failure import Failure, did_you_mean

INTERNAL = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})


@dataclass(frozen=True, slots=True)
class Partition:
    id: int
    leader: int | None
    replicas: list[int]
    isr: list[int]


@dataclass(frozen=True, slots=True)
class Topic:
    name: str
    topic_id: str
    internal: bool
    partitions: list[Partition]

    @property
    def replication_factor(self) -> int:
        return len(self.partitions[0].replicas) if self.partitions else 0


def names(cluster: Cluster, *, internal: bool) -> list[str]:
    try:
        found = cluster.admin.list_topics(timeout=TIMEOUT).topics
    except KafkaException as error:
        raise Refused(error.args[0]) from None
    return sorted(name for name in found if internal or name not in INTERNAL)


def describe(cluster: Cluster, topics: Sequence[str]) -> list[Topic]:
    """Descriptions in the order asked. A topic that is not there raises Failure with the nearest name."""
    if not topics:
        return []
    futures = cluster.admin.describe_topics(TopicCollection(list(topics)), request_timeout=TIMEOUT)
    answers, refusals = cluster.ask_all(futures)
    for topic, refused in refusals.items():
        if refused.error.code() == KafkaError.TOPIC_EXCEPTION:
            raise Failure(
                f"A topic is named with letters, digits, '.', '_' and '-', at most 249 of them, not '{topic}'."
            )
        raise unknown_topic(cluster, topic) if is_unknown(refused) else refused
    found = []
    for topic in topics:
        answer = answers[topic]
        partitions = [
            Partition(
                id=info.id,
                leader=info.leader.id if info.leader is not None and info.leader.id >= 0 else None,
                replicas=[node.id for node in info.replicas],
                isr=[node.id for node in info.isr],
            )
            for info in sorted(answer.partitions, key=lambda info: info.id)
        ]
        found.append(Topic(topic, _kafka_uuid(answer.topic_id), answer.is_internal, partitions))
    return found


def partitions_of(cluster: Cluster, topics: Sequence[str]) -> list[TopicPartition]:
    return [TopicPartition(topic.name, p.id) for topic in describe(cluster, topics) for p in topic.partitions]


def is_unknown(refused: Refused) -> bool:
    unknown = (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC, KafkaError._UNKNOWN_PARTITION)
    return refused.error.code() in unknown


def unknown_topic(cluster: Cluster, topic: str) -> Failure:
    hint = did_you_mean(topic, names(cluster, internal=True))
    remedy = hint or " 'headrace topics list' shows what there is."
    return Failure(f"There is no topic '{topic}'.{remedy}")


def create(
    cluster: Cluster,
    topics: Sequence[str],
    *,
    partitions: int | None = None,
    replication_factor: int | None = None,
    assignment: list[list[int]] | None = None,
    config: Mapping[str, str] | None = None,
    validate_only: bool = False,
) -> dict[str, Refused]:
    """Make topics; what is left out is the cluster's default. Returns the refusals by topic."""
    new = []
    for topic in topics:
        if assignment is not None:
            new.append(
                NewTopic(topic, len(assignment), replica_assignment=assignment, config=dict(config or {}))
            )
        else:
            new.append(NewTopic(topic, partitions or -1, replication_factor or -1, config=dict(config or {})))
    futures = cluster.admin.create_topics(
        new, validate_only=validate_only, request_timeout=TIMEOUT, operation_timeout=TIMEOUT
    )
    return cluster.ask_all(futures)[1]


def add_partitions(
    cluster: Cluster, topic: str, total: int, assignment: list[list[int]] | None = None
) -> None:
    new = NewPartitions(topic, total, assignment) if assignment is not None else NewPartitions(topic, total)
    futures = cluster.admin.create_partitions([new], request_timeout=TIMEOUT, operation_timeout=TIMEOUT)
    cluster.ask(futures[topic])


def delete(cluster: Cluster, topics: Sequence[str]) -> dict[str, Refused]:
    """Returns the refusals by topic."""
    futures = cluster.admin.delete_topics(list(topics), request_timeout=TIMEOUT, operation_timeout=TIMEOUT)
    return cluster.ask_all(futures)[1]


def parse_assignment(text: str) -> list[list[int]]:
    """`1:2,2:3` is partition 0 on brokers 1 and 2, partition 1 on brokers 2 and 3."""
    try:
        assignment = [[int(broker) for broker in part.split(":")] for part in text.split(",")]
    except ValueError:
        raise Failure(
            f"A replica assignment looks like 1:2,2:3 (brokers by partition), not '{text}'."
        ) from None
    for partition, brokers in enumerate(assignment):
        if len(set(brokers)) != len(brokers):
            raise Failure(f"Partition {partition} names a broker twice in '{text}'.")
        if len(brokers) != len(assignment[0]):
            raise Failure(
                f"Partition {partition} has another number of replicas than partition 0 in '{text}'."
            )
    return assignment


def _kafka_uuid(topic_id: Uuid) -> str:
    """Kafka writes ids in the URL-safe alphabet, librdkafka in the plain one."""
    return str(topic_id).rstrip("=").replace("+", "-").replace("/", "_")
