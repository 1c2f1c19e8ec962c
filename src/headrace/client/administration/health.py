"""Whether a cluster is healthy: which brokers are down, and which partitions lack a leader or replicas."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from headrace.client.administration import brokers, configs, reassignments
from headrace.client.administration import topics as admin
from headrace.client.administration.errors import Unreachable
from headrace.client.administration.names import Partition
from headrace.client.administration.session import Session

_TOLERANCE = "leader.imbalance.per.broker.percentage"


@dataclass(frozen=True, slots=True)
class Replica:
    """One partition as health sees it."""

    topic: str
    partition: int
    leader: int | None
    replicas: list[int]
    isr: list[int]
    min_isr: int

    @property
    def key(self) -> Partition:
        return self.topic, self.partition


@dataclass(slots=True)
class Health:
    controller: int | None
    dead: list[int] = field(default_factory=list)
    """Brokers that are down, or unknown though partitions are assigned to them."""
    offline: list[Replica] = field(default_factory=list)
    under_min_isr: list[Replica] = field(default_factory=list)
    under_replicated: list[Replica] = field(default_factory=list)
    leader_skewed: list[Replica] = field(default_factory=list)
    """Led by another than the preferred leader, though that one is up and in sync."""
    skewed_brokers: list[int] = field(default_factory=list)
    """Brokers that miss more of what they should lead than leader.imbalance.per.broker.percentage tolerates."""
    partitions: int = 0
    moving: int = 0

    @property
    def sound(self) -> bool:
        return self.controller is not None and not (
            self.dead or self.offline or self.under_min_isr or self.under_replicated or self.skewed_brokers
        )


def partitions(session: Session) -> list[Replica]:
    """Every partition of every topic, internal ones included."""
    names = admin.names(session, internal=True)
    minimum = {
        topic: int(next((s.value or "1" for s in settings if s.name == "min.insync.replicas"), "1"))
        for topic, settings in configs.describe(session, "topic", names).items()
    }
    return [
        Replica(topic.name, p.id, p.leader, p.replicas, p.isr, minimum.get(topic.name, 1))
        for topic in admin.describe(session, names)
        for p in topic.partitions
    ]


def check_health(session: Session) -> Health:
    description = brokers.describe(session)
    found = partitions(session)
    moving = reassignments.moves(session)
    tolerated = _tolerated_imbalance(session, description)
    return judge(description, found, moving, tolerated)


def judge(
    description: brokers.Description,
    found: Sequence[Replica],
    moving: dict[Partition, reassignments.Move],
    tolerated_percentage: int,
) -> Health:
    live = {broker.id for broker in description.brokers if broker.live}
    assigned = {broker for each in found for broker in each.replicas}
    known = {broker.id for broker in description.brokers}
    health = Health(description.controller, partitions=len(found), moving=len(moving))
    health.dead = sorted((known | assigned) - live)
    preferred: Counter[int] = Counter()
    astray: Counter[int] = Counter()
    for each in found:
        move = moving.get(each.key)
        # What a move is still bringing is not missing yet.
        expected = len(each.replicas) - (len(move.adding) if move is not None else 0)
        preferred[each.replicas[0]] += 1
        if each.leader is None or each.leader not in live:
            health.offline.append(each)
            continue
        if len(each.isr) < each.min_isr:
            health.under_min_isr.append(each)
        if len(each.isr) < expected:
            health.under_replicated.append(each)
        first = each.replicas[0]
        if each.leader != first and first in live and first in each.isr:
            health.leader_skewed.append(each)
            astray[first] += 1
    health.skewed_brokers = sorted(
        broker for broker in astray if 100 * astray[broker] > tolerated_percentage * preferred[broker]
    )
    return health


def _tolerated_imbalance(session: Session, description: brokers.Description) -> int:
    live = [broker.id for broker in description.brokers if broker.live]
    for asked in sorted(live, key=lambda broker: broker != description.controller):
        try:
            settings = configs.describe(session, "broker", [str(asked)])[str(asked)]
        except Unreachable:
            continue  # it may have died without the cluster knowing yet
        return int(next((s.value or "10" for s in settings if s.name == _TOLERANCE), "10"))
    return 10
