"""The throttle of a move: which replicas it slows down (settings of topics), and to what rate (settings of brokers)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from headrace.client.administration import configs
from headrace.client.administration import topics as admin
from headrace.client.administration.names import Partition
from headrace.client.administration.reassignments import Move
from headrace.client.administration.session import Session

RATES = ("leader.replication.throttled.rate", "follower.replication.throttled.rate")
DIRECTORIES = "replica.alter.log.dirs.io.max.bytes.per.second"
LEADERS, FOLLOWERS = "leader.replication.throttled.replicas", "follower.replication.throttled.replicas"


@dataclass(frozen=True, slots=True)
class Traffic:
    """The brokers that send and those that receive in a move."""

    sources: frozenset[int]
    destinations: frozenset[int]


def traffic(
    moving: Mapping[Partition, Move],
    targets: Mapping[Partition, Sequence[int]],
    current: Mapping[Partition, Sequence[int]],
) -> dict[Partition, Traffic]:
    """Of what is on the move already, and of what is about to be."""
    found = {
        key: Traffic(frozenset(move.replicas) - frozenset(move.adding), frozenset(move.adding))
        for key, move in moving.items()
    }
    for key, replicas in targets.items():
        sources = found[key].sources if key in found else frozenset(current[key])
        found[key] = Traffic(sources, frozenset(replicas) - sources)
    return found


def throttle(session: Session, between: Mapping[Partition, Traffic], rate: int) -> None:
    """Limit what catching up takes to `rate` bytes a second on each broker; replicas in sync are never slowed."""
    leaders: dict[str, list[str]] = {}
    followers: dict[str, list[str]] = {}
    for (topic, number), parties in sorted(between.items()):
        leaders.setdefault(topic, []).extend(f"{number}:{broker}" for broker in sorted(parties.sources))
        followers.setdefault(topic, []).extend(
            f"{number}:{broker}" for broker in sorted(parties.destinations)
        )
    for topic in leaders:
        settings = {LEADERS: ",".join(leaders[topic]), FOLLOWERS: ",".join(followers[topic])}
        configs.alter(session, "topic", topic, settings)
    involved = {broker for parties in between.values() for broker in parties.sources | parties.destinations}
    for broker in _live(session, involved):
        configs.alter(session, "broker", str(broker), dict.fromkeys(RATES, str(rate)))


def throttle_directories(session: Session, brokers: Iterable[int], rate: int) -> None:
    """Limit what moving replicas between directories takes on each of these brokers."""
    for broker in _live(session, brokers):
        configs.alter(session, "broker", str(broker), {DIRECTORIES: str(rate)})


def clear_brokers(session: Session, brokers: Iterable[int]) -> None:
    for broker in _live(session, brokers):
        configs.alter(session, "broker", str(broker), {}, (*RATES, DIRECTORIES))


def clear_topics(session: Session, topics: Iterable[str]) -> None:
    for topic in topics:
        configs.alter(session, "topic", topic, {}, (LEADERS, FOLLOWERS))


def throttled(session: Session) -> tuple[list[int], list[str]]:
    """The brokers that have a rate of their own, and the topics that name throttled replicas."""
    nodes = [str(node.id) for node in session.nodes]
    brokers = [
        int(name)
        for name, settings in configs.describe(session, "broker", nodes).items()
        if any(
            each.name in (*RATES, DIRECTORIES) and each.source == "DYNAMIC_BROKER_CONFIG" for each in settings
        )
    ]
    names = admin.names(session, internal=True)
    topics = [
        name
        for name, settings in configs.describe(session, "topic", names).items()
        if any(each.name in (LEADERS, FOLLOWERS) and each.value for each in settings)
    ]
    return sorted(brokers), sorted(topics)


def clear(session: Session) -> tuple[list[int], list[str]]:
    """Take every throttle of moves off; says which brokers and topics had one."""
    brokers, topics = throttled(session)
    clear_brokers(session, brokers)
    clear_topics(session, topics)
    return brokers, topics


def _live(session: Session, brokers: Iterable[int]) -> list[int]:
    live: Collection[int] = {node.id for node in session.nodes}
    return sorted(set(brokers) & set(live))
