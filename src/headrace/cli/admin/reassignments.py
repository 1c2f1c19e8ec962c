"""Moves of partitions: starting, listing and cancelling them, and how far the data has come."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from headrace.cli.admin.placement import Partition
from headrace.cli.cluster.connection import Cluster
from headrace.cli.failure import Exit, Failure
from headrace.cli.raw.refused import RequestRefused, check
from headrace.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from headrace.wire.messages.describe_log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
)
from headrace.wire.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
)


@dataclass(frozen=True, slots=True)
class Move:
    """A partition on the move: `replicas` holds the old ones and the new ones."""

    topic: str
    partition: int
    replicas: list[int]
    adding: list[int]
    removing: list[int]

    @property
    def key(self) -> Partition:
        return self.topic, self.partition

    @property
    def target(self) -> list[int]:
        return [broker for broker in self.replicas if broker not in self.removing]


@dataclass(frozen=True, slots=True)
class Progress:
    """Bytes that the new replicas of a move have, of those they need."""

    copied: int
    total: int


def moves(cluster: Cluster) -> dict[Partition, Move]:
    with cluster.broker() as broker:
        answer = broker.ask(ListPartitionReassignmentsRequest())
    check(answer.error_code, answer.error_message)
    found = [
        Move(
            topic.name,
            p.partition_index,
            list(p.replicas),
            list(p.adding_replicas),
            list(p.removing_replicas),
        )
        for topic in answer.topics
        for p in topic.partitions
    ]
    return {move.key: move for move in sorted(found, key=lambda move: move.key)}


def start(cluster: Cluster, targets: Mapping[Partition, Sequence[int]]) -> dict[Partition, RequestRefused]:
    """Ask for these replicas; returns the refusals."""
    return _alter(cluster, {partition: list(replicas) for partition, replicas in targets.items()})


def cancel(cluster: Cluster, partitions: Iterable[Partition]) -> dict[Partition, RequestRefused]:
    return _alter(cluster, dict.fromkeys(partitions))


def _alter(
    cluster: Cluster, targets: Mapping[Partition, list[int] | None]
) -> dict[Partition, RequestRefused]:
    topics: dict[str, ReassignableTopic] = {}
    for (topic, number), replicas in targets.items():
        topics.setdefault(topic, ReassignableTopic(topic)).partitions.append(
            ReassignablePartition(number, replicas)
        )
    request = AlterPartitionReassignmentsRequest(topics=list(topics.values()))
    with cluster.broker() as broker:
        answer = broker.ask(request)
    check(answer.error_code, answer.error_message)
    return {
        (topic.name, p.partition_index): RequestRefused(p.error_code, p.error_message)
        for topic in answer.responses
        for p in topic.partitions
        if p.error_code
    }


def sizes(
    cluster: Cluster, brokers: Iterable[int], partitions: Collection[Partition] | None = None
) -> dict[tuple[int, Partition], int]:
    """Bytes that live brokers hold, by broker and partition; of all partitions, or of those named."""
    asked: list[DescribableLogDirTopic] | None = None
    if partitions is not None:
        topics: dict[str, DescribableLogDirTopic] = {}
        for topic, number in partitions:
            topics.setdefault(topic, DescribableLogDirTopic(topic)).partitions.append(number)
        asked = list(topics.values())
    live = {node.id for node in cluster.nodes}
    found: dict[tuple[int, Partition], int] = {}
    for broker_id in sorted(set(brokers) & live):
        try:
            with cluster.broker(broker_id) as broker:
                answer = broker.ask(DescribeLogDirsRequest(asked))
        except Failure as failure:
            # It may have died without the cluster knowing yet; what it holds is then unknown.
            if failure.code is not Exit.UNREACHABLE:
                raise
            continue
        for directory in answer.results:
            for of_topic in directory.topics:
                for p in of_topic.partitions:
                    if not p.is_future_key:
                        found[broker_id, (of_topic.name, p.partition_index)] = p.partition_size
    return found


def progress(cluster: Cluster, moving: Mapping[Partition, Move]) -> dict[Partition, Progress]:
    """How far each move is, measured against the largest of the old replicas."""
    brokers = {broker for move in moving.values() for broker in move.replicas}
    held = sizes(cluster, brokers, list(moving)) if moving else {}
    found = {}
    for key, move in moving.items():
        old = [held.get((broker, key), 0) for broker in move.replicas if broker not in move.adding]
        whole = max(old, default=0)
        copied = sum(min(held.get((broker, key), 0), whole) for broker in move.adding)
        found[key] = Progress(copied, whole * len(move.adding))
    return found
