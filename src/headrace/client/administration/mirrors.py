"""Mirror links: making, changing and describing them. A cluster of Apache Kafka has none."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from headrace.client.administration import features
from headrace.client.administration.errors import NotPossible, check
from headrace.client.administration.session import Session
from headrace.link.errors import BrokerUnavailable
from headrace.wire.messages.alter_mirrors import AlterMirrorsRequest
from headrace.wire.messages.describe_mirrors import DescribeMirrorsRequest

FEATURE = "mirror.version"
FAILED_OVER = "failed over"
"""The state of a topic that belongs to this cluster."""
_VERSION = 0


@dataclass(frozen=True, slots=True)
class MirrorPosition:
    """Where one mirrored partition stands, as its leader says."""

    partition: int
    phase: str
    trouble: str
    end_offset: int
    source_end_offset: int
    lag_records: int
    """-1 while it is not known, like the others."""
    lag_bytes: int
    lag_seconds: float
    complete_until_ms: int
    missed_records: int
    agreed: bool
    """Whether the source has said that it continues what is here."""


@dataclass(frozen=True, slots=True)
class MirrorEnd:
    """Where a partition ended when it was failed over."""

    partition: int
    end_offset: int
    source_end_offset: int
    complete_until_ms: int
    failed_over_ms: int

    @property
    def last_offset(self) -> int:
        """The last one that was mirrored; -1 if none was."""
        return self.end_offset - 1

    @property
    def lost_records(self) -> int | None:
        """Records that the source was known to have and this cluster has not; None if nothing was known of the source."""
        return None if self.source_end_offset < 0 else max(0, self.source_end_offset - self.end_offset)

    @property
    def lost_seconds(self) -> float | None:
        """What was acknowledged at the source in the last so many seconds may be missing; None if it never caught up."""
        if self.complete_until_ms < 0:
            return None
        return max(0, self.failed_over_ms - self.complete_until_ms) / 1000


@dataclass(slots=True)
class MirrorTopic:
    name: str
    state: str
    reason: str
    partition_count: int
    positions: list[MirrorPosition] = field(default_factory=list)
    ends: list[MirrorEnd] = field(default_factory=list)


@dataclass(slots=True)
class MirrorLink:
    name: str
    source: str
    state: str
    patterns: list[str]
    groups: list[str]
    throttle: int
    adopts: bool
    settings: dict[str, str | None]
    """None for what is not shown, because it may be a secret."""
    trouble: list[str]
    obstacles: dict[str, str]
    group_offsets: dict[str, int]
    topics: list[MirrorTopic] = field(default_factory=list)

    @property
    def positions(self) -> list[tuple[MirrorTopic, MirrorPosition]]:
        return [(topic, position) for topic in self.topics for position in topic.positions]


def create(
    session: Session,
    name: str,
    settings: Mapping[str, str],
    topics: Sequence[str],
    groups: Sequence[str] = (),
    throttle: int = 0,
    adopts: bool = False,
) -> None:
    """`adopts`: topics that exist here are taken over, if the source continues them."""
    _alter(
        session,
        operation="create",
        link=name,
        settings=dict(settings),
        patterns=list(topics),
        groups=list(groups),
        throttle=throttle,
        adopts=adopts,
    )


def pause(session: Session, name: str) -> None:
    _alter(session, operation="pause", link=name)


def resume(
    session: Session, name: str, topics: Sequence[str] | None = None, discard: bool = False
) -> list[str]:
    """Let a link go on, and those of its topics that had failed; returns these. With `discard` they lose what only this cluster has."""
    return _alter(session, operation="resume", link=name, topics=topics, discard=discard)


def fail_over(session: Session, name: str, topics: Sequence[str] | None = None) -> list[str]:
    """Begin to fail over; returns the topics that were not failed over before. `describe` shows when they are."""
    return _alter(session, operation="failover", link=name, topics=topics)


def delete(session: Session, name: str) -> None:
    _alter(session, operation="delete", link=name)


def describe(session: Session) -> list[MirrorLink]:
    """All links, put together from what every live broker says of the partitions it leads."""
    _require(session)
    found: dict[str, MirrorLink] = {}
    topics: dict[tuple[str, str], MirrorTopic] = {}
    for node in session.nodes:
        with session.connect(node.id) as connection:
            answer = connection.call(DescribeMirrorsRequest(), _VERSION)
        check(answer.error_code, answer.error_message)
        for read in json.loads(answer.document):
            link = found.get(read["name"])
            if link is None:
                link = found[read["name"]] = _link(read)
            if read["trouble"]:
                link.trouble.append(f"Broker {node.id}: {read['trouble']}")
            link.obstacles |= read["obstacles"]
            link.group_offsets |= read["group_offsets"]
            for topic in read["topics"]:
                mine = topics.get((link.name, topic["name"]))
                if mine is None:
                    mine = topics[link.name, topic["name"]] = _topic(topic)
                    link.topics.append(mine)
                mine.positions += [MirrorPosition(**each) for each in topic["partitions"]]
                mine.positions.sort(key=lambda each: each.partition)
    return list(found.values())


def _link(read: Mapping[str, Any]) -> MirrorLink:
    kept = ("name", "source", "state", "patterns", "groups", "throttle", "adopts", "settings")
    return MirrorLink(**{name: read[name] for name in kept}, trouble=[], obstacles={}, group_offsets={})


def _topic(read: Mapping[str, Any]) -> MirrorTopic:
    return MirrorTopic(
        read["name"],
        read["state"],
        read["reason"],
        read["partition_count"],
        ends=[MirrorEnd(**each) for each in read["ends"]],
    )


def _alter(session: Session, **wanted: object) -> list[str]:
    _require(session)
    with session.connect() as connection:
        answer = connection.call(AlterMirrorsRequest(json.dumps(wanted)), _VERSION)
    check(answer.error_code, answer.error_message)
    touched: list[str] = json.loads(answer.document)["topics"]
    return touched


def _require(session: Session) -> None:
    try:
        known = {feature.name for feature in features.describe(session)}
    except BrokerUnavailable as error:
        raise NotPossible(str(error)) from None
    if FEATURE not in known:
        raise NotPossible(
            "This cluster keeps no mirror links: they are Headrace's, and its brokers are Apache Kafka's, or older than mirror links are."
        )
