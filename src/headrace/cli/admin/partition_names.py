"""Partitions as a command line names them: `orders` is all of a topic, `orders:0,3` are two of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from headrace.cli.admin import topics as admin
from headrace.cli.admin.placement import Partition
from headrace.cli.cluster.connection import Cluster
from headrace.cli.failure import Failure, Misuse


@dataclass(frozen=True, slots=True)
class PartitionState:
    topic: str
    partition: int
    leader: int | None
    replicas: list[int]
    isr: list[int]

    @property
    def key(self) -> Partition:
        return self.topic, self.partition


def resolve(cluster: Cluster, names: Sequence[str]) -> list[Partition]:
    """Raises Failure for a topic or partition that is not there."""
    asked: dict[str, list[int] | None] = {}
    for name in names:
        topic, colon, numbers = name.partition(":")
        try:
            asked[topic] = [int(number) for number in numbers.split(",")] if colon else None
        except ValueError:
            raise Misuse(f"Partitions are named as TOPIC or TOPIC:0,1, not '{name}'.") from None
    found: list[Partition] = []
    for description in admin.describe(cluster, list(asked)):
        there = [p.id for p in description.partitions]
        wanted = asked[description.name]
        for number in there if wanted is None else wanted:
            if number not in there:
                raise Failure(
                    f"Topic '{description.name}' has no partition {number}; it has 0 to {there[-1]}."
                )
            found.append((description.name, number))
    return found


def describe(cluster: Cluster, partitions: Iterable[Partition]) -> list[PartitionState]:
    """Their state now, in the order of their names. Raises Failure for one that is not there."""
    wanted = set(partitions)
    found = [
        PartitionState(topic.name, p.id, p.leader, p.replicas, p.isr)
        for topic in admin.describe(cluster, sorted({topic for topic, _ in wanted}))
        for p in topic.partitions
        if (topic.name, p.id) in wanted
    ]
    missing = wanted - {each.key for each in found}
    if missing:
        topic, number = min(missing)
        raise Failure(f"Topic '{topic}' has no partition {number}.")
    return found
