"""Replicas and leaders: what the cluster's health lacks, and whether brokers share the work."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from headrace.client.administration.health import Replica
from headrace.watch.doctor.findings import Check, Finding, Needs, Severity, counted, error, listed, warning
from headrace.watch.doctor.scene import Scene

_EVEN_OUT = (
    "'headrace reassign plan' makes a plan that evens this out, and 'headrace reassign execute' follows it."
)


def _brokers(scene: Scene) -> Iterator[Finding]:
    health = scene.health
    if health.controller is None:
        yield error(
            "The cluster has no controller: no topic, setting or leader can change.",
            "Start the brokers that may be controller, and look at their logs; with ZooKeeper, check that it is up.",
        )
    for broker in health.dead:
        yield error(
            f"Broker {broker} is down.",
            f"Start it; if it will not come back, 'headrace reassign plan --remove {broker}' moves its replicas elsewhere.",
            [broker],
        )


def _partitions(scene: Scene) -> Iterator[Finding]:
    health = scene.health
    if health.offline:
        yield error(
            f"{counted(len(health.offline), 'partition')} without a leader can be neither written nor read: {_named(health.offline)}.",
            f"Start broker {listed(sorted({broker for each in health.offline for broker in each.replicas}))}; as a last resort "
            "'headrace elect-leaders --unclean' gives up records that only they have.",
            [_name(each) for each in health.offline],
        )
    if health.under_min_isr:
        yield error(
            f"{counted(len(health.under_min_isr), 'partition')} with fewer replicas in sync than min.insync.replicas: "
            f"{_named(health.under_min_isr)} refuse writes with acks=all.",
            "Start the brokers that are down; lower min.insync.replicas only to get writes going before that.",
            [_name(each) for each in health.under_min_isr],
        )
    behind = [each for each in health.under_replicated if each not in health.under_min_isr]
    if behind:
        missing = sorted({broker for each in behind for broker in each.replicas if broker not in each.isr})
        yield warning(
            f"{counted(len(behind), 'under-replicated partition')}, with replicas on broker {listed(missing)} out of sync: "
            f"{_named(behind)}.",
            f"See whether broker {listed(missing)} is up and keeps pace: 'headrace cluster health' shows what is missing.",
            [_name(each) for each in behind],
        )


def _leaders(scene: Scene) -> Iterator[Finding]:
    health = scene.health
    if health.skewed_brokers:
        yield warning(
            f"{counted(len(health.leader_skewed), 'partition')} led by another broker than the preferred one: broker "
            f"{listed(health.skewed_brokers)} leads less than it should.",
            "'headrace elect-leaders' gives leadership back at once; auto.leader.rebalance.enable=true does so by itself.",
            [_name(each) for each in health.leader_skewed],
        )
    live = [each.id for each in scene.description.brokers if each.live]
    preferred = Counter(each.replicas[0] for each in scene.partitions if each.replicas)
    uneven = _uneven(scene, Counter({broker: preferred[broker] for broker in live}))
    if uneven is not None:
        most, least = uneven
        yield warning(
            f"Broker {most} is the preferred leader of {counted(preferred[most], 'partition')}, broker {least} of {preferred[least]}.",
            _EVEN_OUT,
            [most, least],
        )


def _replicas(scene: Scene) -> Iterator[Finding]:
    live = [each.id for each in scene.description.brokers if each.live]
    held = Counter(broker for each in scene.partitions for broker in each.replicas)
    uneven = _uneven(scene, Counter({broker: held[broker] for broker in live}))
    if uneven is not None:
        most, least = uneven
        yield warning(
            f"Broker {most} holds {counted(held[most], 'replica')}, broker {least} {held[least]}.",
            _EVEN_OUT,
            [most, least],
        )


def _uneven(scene: Scene, counts: Counter[int]) -> tuple[int, int] | None:
    """The brokers with most and least, if the first has more than its fair share by two or more."""
    if len(counts) < 2:
        return None
    fair = counts.total() / len(counts)
    most, least = max(counts, key=lambda each: counts[each]), min(counts, key=lambda each: counts[each])
    if counts[most] > scene.bounds.uneven * fair and counts[most] - fair >= 2:
        return most, least
    return None


def _name(each: Replica) -> str:
    return f"{each.topic}-{each.partition}"


def _named(replicas: Sequence[Replica]) -> str:
    return listed([_name(each) for each in replicas])


BROKERS = Check(
    "brokers",
    Severity.ERROR,
    "brokers that are down, and whether there is a controller",
    Needs.CLUSTER,
    _brokers,
)
PARTITIONS = Check(
    "replication",
    Severity.ERROR,
    "partitions that are offline, below min.insync.replicas or under-replicated",
    Needs.CLUSTER,
    _partitions,
)
LEADERS = Check(
    "leader-balance",
    Severity.WARNING,
    "partitions not led by their preferred leader, and brokers preferred too often",
    Needs.CLUSTER,
    _leaders,
)
REPLICAS = Check(
    "replica-balance",
    Severity.WARNING,
    "whether brokers hold about as many replicas as each other",
    Needs.CLUSTER,
    _replicas,
)
