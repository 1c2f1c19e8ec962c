"""Rules about replicas, brokers and the controller."""

from __future__ import annotations

from collections.abc import Sequence

from headrace.client.administration import quorum
from headrace.client.administration.health import Replica
from headrace.watch.alerts.conditions import (
    BrokerMissing,
    NoController,
    OfflinePartitions,
    OfTopics,
    UnderMinIsr,
    UnderReplicated,
)
from headrace.watch.alerts.sight import Sight
from headrace.watch.alerts.states import Finding, Seen

_NAMED = 5


def under_replicated(condition: UnderReplicated, sight: Sight) -> list[Finding]:
    return _partitions(
        condition, sight.health.under_replicated, "fewer replicas in sync than they should have"
    )


def under_min_isr(condition: UnderMinIsr, sight: Sight) -> list[Finding]:
    what = "fewer replicas in sync than min.insync.replicas, so that producers with acks=all are refused"
    return _partitions(condition, sight.health.under_min_isr, what)


def offline(condition: OfflinePartitions, sight: Sight) -> list[Finding]:
    return _partitions(condition, sight.health.offline, "no leader: they can be neither written nor read")


def _partitions(condition: OfTopics, found: Sequence[Replica], what: str) -> list[Finding]:
    """One for all of them: a broker that dies takes thousands of partitions with it."""
    concerned = [each for each in found if condition.topics.matches(each.topic)]
    if not concerned:
        return [Finding((), Seen.CLEAR, "every partition has what it needs", 0.0)]
    names = ", ".join(f"{each.topic}-{each.partition}" for each in concerned[:_NAMED])
    more = f" and {len(concerned) - _NAMED:,} more" if len(concerned) > _NAMED else ""
    count = f"{len(concerned):,} {'partition has' if len(concerned) == 1 else 'partitions have'}"
    return [Finding((), Seen.ACTIVE, f"{count} {what}: {names}{more}", float(len(concerned)))]


def brokers(condition: BrokerMissing, sight: Sight) -> list[Finding]:
    live = {each.id for each in sight.brokers.brokers if each.live}
    dead = set(sight.health.dead) | (set(condition.expected) - live)
    return [
        Finding(
            (("broker", str(broker)),),
            Seen.ACTIVE if broker in dead else Seen.CLEAR,
            f"broker {broker} is {'missing' if broker in dead else 'there'}; {len(live)} live",
            float(len(live)),
        )
        for broker in sorted(live | dead)
    ]


def no_controller(_: NoController, sight: Sight) -> list[Finding]:
    controller = quorum.controller(sight.session, sight.brokers)
    if controller is None:
        return [
            Finding(
                (), Seen.ACTIVE, "the cluster has no controller: topics, leaders and settings cannot change"
            )
        ]
    return [Finding((), Seen.CLEAR, f"node {controller} is the controller")]
