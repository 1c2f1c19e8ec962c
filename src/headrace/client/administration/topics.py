"""Topics: their names, what they look like, creating and deleting them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from confluent_kafka import KafkaError, KafkaException, TopicCollection, Uuid
from confluent_kafka.cimpl import NewPartitions, NewTopic

from headrace.client.administration import names as of
from headrace.client.administration.errors import NotPossible, UnknownTopic
from headrace.client.administration.session import Session
from headrace.client.errors import BrokerError, kafka_error
from headrace.client.record import TopicPartition
from headrace.link.cluster import CONTROL_TOPICS

INTERNAL = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})
_UNKNOWN = (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC, KafkaError._UNKNOWN_PARTITION)


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


@dataclass(frozen=True, slots=True)
class PartitionState:
    topic: str
    partition: int
    leader: int | None
    replicas: list[int]
    isr: list[int]

    @property
    def key(self) -> of.Partition:
        return self.topic, self.partition


def names(session: Session, *, internal: bool) -> list[str]:
    try:
        found = session.librdkafka.list_topics(timeout=session.limits.timeout).topics
    except KafkaException as error:
        raise session.refusal(kafka_error(error), "asking for metadata") from error
    return sorted(name for name in found if internal or name not in INTERNAL)


def users_own(session: Session) -> list[str]:
    """The names without the topics that Kafka or Headrace keep for themselves."""
    return [name for name in names(session, internal=False) if not name.startswith(CONTROL_TOPICS)]


def find(session: Session, topics: Sequence[str]) -> tuple[dict[str, Topic], dict[str, BrokerError]]:
    """Descriptions and refusals by topic. Never creates a topic, as asking for its metadata may."""
    if not topics:
        return {}, {}
    if not all(topics):
        raise NotPossible("The name of a topic must not be empty.")
    futures = session.librdkafka.describe_topics(TopicCollection(list(topics)), **session.limits.request)
    answers, refusals = session.wait_for_all(futures, lambda topic: f"describing topic {topic}")
    found = {}
    for topic, answer in answers.items():
        partitions = [
            Partition(
                id=info.id,
                leader=info.leader.id if info.leader is not None and info.leader.id >= 0 else None,
                replicas=[node.id for node in info.replicas],
                isr=[node.id for node in info.isr],
            )
            for info in sorted(answer.partitions, key=lambda info: info.id)
        ]
        found[topic] = Topic(topic, _kafka_uuid(answer.topic_id), answer.is_internal, partitions)
    return found, refusals


def describe(session: Session, topics: Sequence[str]) -> list[Topic]:
    """Descriptions in the order asked. Raises UnknownTopic for a topic that is not there."""
    found, refusals = find(session, topics)
    for topic, refused in refusals.items():
        if refused.code == KafkaError.TOPIC_EXCEPTION:
            raise NotPossible(
                f"A topic is named with letters, digits, '.', '_' and '-', at most 249 of them, not '{topic}'."
            )
        raise UnknownTopic(topic) if is_unknown(refused) else refused
    return [found[topic] for topic in topics]


def partitions_of(session: Session, topics: Sequence[str]) -> list[TopicPartition]:
    return [TopicPartition(topic.name, p.id) for topic in describe(session, topics) for p in topic.partitions]


def partition_states(session: Session, partitions: Iterable[of.Partition]) -> list[PartitionState]:
    """The state of each now, in the order of their names. Raises NotPossible for one that is not there."""
    wanted = set(partitions)
    found = [
        PartitionState(topic.name, p.id, p.leader, p.replicas, p.isr)
        for topic in describe(session, sorted({topic for topic, _ in wanted}))
        for p in topic.partitions
        if (topic.name, p.id) in wanted
    ]
    missing = wanted - {each.key for each in found}
    if missing:
        name, number = min(missing)
        raise NotPossible(f"Topic '{name}' has no partition {number}.")
    return found


def is_unknown(refused: BrokerError) -> bool:
    return refused.code in _UNKNOWN


def create(
    session: Session,
    topics: Sequence[str],
    *,
    partitions: int | None = None,
    replication_factor: int | None = None,
    assignment: list[list[int]] | None = None,
    config: Mapping[str, str] | None = None,
    validate_only: bool = False,
) -> dict[str, BrokerError]:
    """Create topics; what is left out is the cluster's default. Returns the refusals by topic."""
    count = -1 if partitions is None else partitions
    factor = -1 if replication_factor is None else replication_factor
    new = []
    for topic in topics:
        settings = dict(config or {})
        if assignment is not None:
            new.append(NewTopic(topic, len(assignment), replica_assignment=assignment, config=settings))
        else:
            new.append(NewTopic(topic, count, factor, config=settings))
    futures = session.librdkafka.create_topics(new, validate_only=validate_only, **session.limits.change)
    return session.wait_for_all(futures, lambda topic: f"creating topic {topic}")[1]


def add_partitions(
    session: Session, topic: str, total: int, assignment: list[list[int]] | None = None
) -> None:
    new = NewPartitions(topic, total, assignment) if assignment is not None else NewPartitions(topic, total)
    futures = session.librdkafka.create_partitions([new], **session.limits.change)
    session.wait(futures[topic], f"adding partitions to {topic}")


def delete(session: Session, topics: Sequence[str]) -> dict[str, BrokerError]:
    """Returns the refusals by topic."""
    futures = session.librdkafka.delete_topics(list(topics), **session.limits.change)
    return session.wait_for_all(futures, lambda topic: f"deleting topic {topic}")[1]


def _kafka_uuid(topic_id: Uuid) -> str:
    """Kafka writes ids in the URL-safe alphabet, librdkafka in the plain one."""
    return str(topic_id).rstrip("=").replace("+", "-").replace("/", "_")
