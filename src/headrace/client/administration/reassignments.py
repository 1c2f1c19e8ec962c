"""Moves of partitions: starting, listing and cancelling them, and how far the data has come."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from headrace.client.administration import log_dirs
from headrace.client.administration.errors import Refused, Unreachable, check
from headrace.client.administration.names import Partition
from headrace.client.administration.session import Session
from headrace.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
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


def moves(session: Session) -> dict[Partition, Move]:
    answer = session.call(ListPartitionReassignmentsRequest())
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


def start(session: Session, targets: Mapping[Partition, Sequence[int]]) -> dict[Partition, Refused]:
    """Ask for these replicas; returns the refusals."""
    return _alter(session, {partition: list(replicas) for partition, replicas in targets.items()})


def cancel(session: Session, partitions: Iterable[Partition]) -> dict[Partition, Refused]:
    return _alter(session, dict.fromkeys(partitions))


def _alter(session: Session, targets: Mapping[Partition, list[int] | None]) -> dict[Partition, Refused]:
    topics: dict[str, ReassignableTopic] = {}
    for (topic, number), replicas in targets.items():
        topics.setdefault(topic, ReassignableTopic(topic)).partitions.append(
            ReassignablePartition(number, replicas)
        )
    request = AlterPartitionReassignmentsRequest(topics=list(topics.values()))
    answer = session.call(request)
    check(answer.error_code, answer.error_message)
    return {
        (topic.name, p.partition_index): Refused(p.error_code, p.error_message)
        for topic in answer.responses
        for p in topic.partitions
        if p.error_code
    }


def sizes(
    session: Session, brokers: Iterable[int], partitions: Collection[Partition] | None = None
) -> dict[tuple[int, Partition], int]:
    """Bytes that live brokers hold, by broker and partition; of all partitions, or of those named."""
    live = {node.id for node in session.nodes}
    found: dict[tuple[int, Partition], int] = {}
    for broker_id in sorted(set(brokers) & live):
        try:
            directories = log_dirs.describe(session, broker_id, partitions)
        except (Refused, Unreachable):
            continue  # it may have died without the cluster knowing yet; what it holds is then unknown
        for directory in directories:
            for each in directory.replicas:
                if not each.is_future:
                    found[broker_id, (each.topic, each.partition)] = each.size
    return found


def progress(session: Session, moving: Mapping[Partition, Move]) -> dict[Partition, Progress]:
    """How far each move is, measured against the largest of the old replicas."""
    brokers = {broker for move in moving.values() for broker in move.replicas}
    held = sizes(session, brokers, list(moving)) if moving else {}
    found = {}
    for key, move in moving.items():
        old = [held.get((broker, key), 0) for broker in move.replicas if broker not in move.adding]
        whole = max(old, default=0)
        copied = sum(min(held.get((broker, key), 0), whole) for broker in move.adding)
        found[key] = Progress(copied, whole * len(move.adding))
    return found
