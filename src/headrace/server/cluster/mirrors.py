"""Mirror links and mirrored topics: what is allowed, and what changes.

The states of a mirrored topic, and what moves it from one to the next:

    MIRRORING ── the source no longer continues what is here ──► FAILED
    MIRRORING, FAILED, DISCARDING ── an operator fails it over ──► FAILING_OVER
    FAILING_OVER ── the leaders of all partitions have said where they end ──► FAILED_OVER
    FAILED ── an operator resumes it ──► MIRRORING
    FAILED ── an operator gives up what only this cluster has ──► DISCARDING
    DISCARDING ── every partition agrees with the source ──► MIRRORING
    FAILED_OVER, or no mirror at all ── a link that adopts topics finds it at its source ──► MIRRORING

Two rules hold while a topic is read-only. The leader epoch of a partition is never below an epoch of its records, so that
clients take no metadata for stale, and the first epoch after a failover is above all of them. And this cluster hands out producer
ids only from FIRST_ID_SHIFT's range on, which the source does not reach: ids of two clusters never meet in one partition.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from headrace.server.cluster import features, topics
from headrace.server.cluster.changes import Change, PartitionsChanged, ProducerIdsAllocated
from headrace.server.cluster.image import (
    ConfigResource,
    LinkState,
    MetadataImage,
    MirroredTopic,
    MirrorEnd,
    MirrorLink,
    MirrorState,
    Partition,
    ResourceType,
    Topic,
)
from headrace.server.cluster.internal_topics import INTERNAL_TOPICS
from headrace.server.cluster.mirror_changes import LinkChanged, MirroredTopicChanged
from headrace.server.cluster.outcome import Outcome, PartitionEdits
from headrace.server.cluster.policy_changes import ConfigsChanged
from headrace.server.cluster.situation import Decision, Situation
from headrace.server.config.definition import ConfigError
from headrace.server.config.topic import check_topic_config
from headrace.wire.errors import ErrorCode, KafkaError
from headrace.wire.messages.create_partitions import CreatePartitionsTopic
from headrace.wire.messages.create_topics import CreatableTopic, CreatableTopicConfig

FIRST_ID_SHIFT = 16
"""A link made at some millisecond moves this cluster's producer ids to that number, shifted by so many bits: a cluster would have to
hand out 65,536 ids a millisecond, from 1970 on, to reach it. So of two clusters the one with the younger link is ahead."""

NOT_MIRRORED = frozenset(
    {
        "follower.replication.throttled.replicas",
        "leader.replication.throttled.replicas",
        "min.insync.replicas",
        "remote.storage.enable",
        "unclean.leader.election.enable",
    }
)
"""Settings that belong to a cluster rather than to a topic's data: each has its own. (MirrorMaker 2 leaves out the same.)"""

FAILOVER_EPOCHS = 1000
"""By how much leader epochs jump at a failover. A source that goes on alone after it must not get to the same epochs: where two logs
part is told by their epochs."""

_NAME = re.compile(r"[a-zA-Z0-9._-]{1,100}")


@dataclass(frozen=True, slots=True)
class SourceTopic:
    """A topic as the source describes it."""

    name: str
    id: uuid.UUID
    epochs: tuple[int, ...]
    """The leader epoch of each partition."""
    configs: Mapping[str, str] | None
    """Its own settings; None when they were not asked for."""


@dataclass(frozen=True, slots=True)
class EndReport:
    """What the leader of a partition says when it is failed over."""

    topic_id: uuid.UUID
    index: int
    leader_epoch: int
    end: MirrorEnd
    highest_producer_id: int


def create_link(link: MirrorLink, now_ms: int) -> Decision[None]:
    def decide(now: Situation) -> Outcome[None]:
        if features.level(now.image, features.MIRROR_VERSION) < 1:
            raise KafkaError(
                ErrorCode.UNSUPPORTED_VERSION,
                "The cluster keeps no mirror links yet: when all its brokers run this version, set the level of "
                f"{features.MIRROR_VERSION} to 1 (`headrace features set {features.MIRROR_VERSION}=1`).",
            )
        if link.name in now.image.links:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"There is a mirror link '{link.name}' already.")
        _check(link)
        changes: list[Change] = [LinkChanged(link.name, link)]
        if now.image.next_producer_id < now_ms << FIRST_ID_SHIFT:
            changes.append(ProducerIdsAllocated(now_ms << FIRST_ID_SHIFT))
        return Outcome(None, changes)

    return decide


def _check(link: MirrorLink) -> None:
    if _NAME.fullmatch(link.name) is None:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            f"'{link.name}' cannot name a mirror link; use up to 100 letters, digits, '.', '_' and '-'.",
        )
    if not link.topics:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"The mirror link '{link.name}' names no topics.")
    if link.throttle < 0:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "A throttle is a number of bytes per second, or 0.")
    for pattern in (*link.topics, *link.groups):
        try:
            re.compile(pattern)
        except re.error as error:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST, f"'{pattern}' is no regular expression: {error}."
            ) from None


def the_link(image: MetadataImage, name: str) -> MirrorLink:
    link = image.links.get(name)
    if link is None:
        known = ", ".join(sorted(image.links)) or "none"
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"There is no mirror link '{name}'; there are: {known}.")
    return link


def topics_of(image: MetadataImage, link: str) -> list[tuple[Topic, MirroredTopic]]:
    """The topics that a link mirrors or has mirrored, by name."""
    found = [
        (image.topics_by_id[topic_id], mirrored)
        for topic_id, mirrored in image.mirrored.items()
        if mirrored.link == link
    ]
    return sorted(found, key=lambda each: each[0].name)


def set_state(name: str, state: LinkState) -> Decision[None]:
    """Pause or resume a link."""

    def decide(now: Situation) -> Outcome[None]:
        link = the_link(now.image, name)
        return Outcome(None, [LinkChanged(name, replace(link, state=state))] if link.state != state else [])

    return decide


def delete_link(name: str) -> Decision[None]:
    def decide(now: Situation) -> Outcome[None]:
        the_link(now.image, name)
        mine = topics_of(now.image, name)
        waiting = [topic.name for topic, mirrored in mine if mirrored.read_only]
        if waiting:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST,
                f"The mirror link '{name}' still owns {_some(waiting)}; fail over ('headrace mirror failover {name}') "
                "or delete those topics first.",
            )
        changes: list[Change] = [MirroredTopicChanged(topic.id, None) for topic, _ in mine]
        return Outcome(None, [*changes, LinkChanged(name, None)])

    return decide


def _some(names: Sequence[str]) -> str:
    shown = ", ".join(names[:3])
    return f"{shown} and {len(names) - 3} more" if len(names) > 3 else shown


def matches(patterns: Sequence[str], name: str) -> bool:
    return any(re.fullmatch(pattern, name) for pattern in patterns)


def is_internal(topic: str) -> bool:
    """Topics that belong to one cluster and are never mirrored, whatever the pattern."""
    return topic in INTERNAL_TOPICS or topic.startswith("__")


# Following the source's topics.


def follow_topics(link_name: str, found: Sequence[SourceTopic]) -> Decision[dict[str, str]]:
    """Create what the source has and this cluster has not, add partitions, take over settings. The result says by topic what is in the
    way."""

    def decide(now: Situation) -> Outcome[dict[str, str]]:
        link = now.image.links.get(link_name)
        if link is None or link.state is not LinkState.ACTIVE:
            return Outcome({})
        obstacles: dict[str, str] = {}
        changes: list[Change] = []
        for source in found:
            situation = now.after(changes) if changes else now
            try:
                changes += _follow(situation, link_name, source)
            except KafkaError as error:
                obstacles[source.name] = error.message
        return Outcome(obstacles, changes)

    return decide


def _follow(now: Situation, link: str, source: SourceTopic) -> list[Change]:
    topic = now.image.topics.get(source.name)
    if topic is None:
        return _create(now, link, source)
    mirrored = now.image.mirrored.get(topic.id)
    is_own = mirrored is None or not mirrored.read_only
    if is_own and now.image.links[link].adopts and (mirrored is None or mirrored.link != link):
        return _adopt(topic, link, source)
    if mirrored is None or mirrored.link != link:
        raise KafkaError(
            ErrorCode.TOPIC_ALREADY_EXISTS,
            f"The topic '{source.name}' exists here and is not a mirror of this link; delete it here, or leave it out of the "
            "link's topics.",
        )
    if mirrored.state is not MirrorState.MIRRORING:
        return []
    if mirrored.source_id != source.id:
        return [_failed(topic, mirrored, "The topic was deleted and made again at the source.")]
    changes: list[Change] = []
    if len(source.epochs) > len(topic.partitions):
        changes.append(_more_partitions(now.image, topic, source))
    if source.configs is not None:
        changes += _configure(now, source)
    return changes


def _adopt(topic: Topic, link: str, source: SourceTopic) -> list[Change]:
    """Its log may be the beginning of the source's; each leader finds out before anything is copied."""
    if len(topic.partitions) > len(source.epochs):
        raise KafkaError(
            ErrorCode.INVALID_PARTITIONS,
            f"The topic '{topic.name}' has {len(topic.partitions)} partitions here and {len(source.epochs)} at the source.",
        )
    # A new epoch ends what producers have under way.
    states = {
        index: _with_epoch(state, max(state.leader_epoch + 1, source.epochs[index]))
        for index, state in enumerate(topic.partitions)
    }
    mirrored = MirroredTopic(link, source.id, MirrorState.MIRRORING)
    return [PartitionsChanged(topic.id, states), MirroredTopicChanged(topic.id, mirrored)]


def _create(now: Situation, link: str, source: SourceTopic) -> list[Change]:
    configs = [CreatableTopicConfig(*item) for item in _accepted(now, source.configs or {}).items()]
    spec = CreatableTopic(source.name, len(source.epochs), -1, configs=configs)
    outcome = topics.create_topics(now.image, now.config, [spec])
    (made,) = outcome.result
    if made.error is not None or made.topic is None:
        assert made.error is not None
        raise made.error
    states = {
        index: state._replace(leader_epoch=max(epoch, 0))
        for index, (state, epoch) in enumerate(zip(made.topic.partitions, source.epochs, strict=True))
    }
    return [
        *outcome.changes,
        PartitionsChanged(made.topic.id, states),
        MirroredTopicChanged(made.topic.id, MirroredTopic(link, source.id, MirrorState.MIRRORING)),
    ]


def _more_partitions(image: MetadataImage, topic: Topic, source: SourceTopic) -> PartitionsChanged:
    change = topics.add_partitions(image, CreatePartitionsTopic(topic.name, len(source.epochs), None))
    states = {
        index: state._replace(leader_epoch=max(source.epochs[index], 0))
        for index, state in change.partitions.items()
    }
    return PartitionsChanged(topic.id, states)


def _configure(now: Situation, source: SourceTopic) -> list[Change]:
    present = now.image.topic_configs(source.name)
    wanted = _accepted(now, source.configs or {})
    values: dict[str, str | None] = {
        name: None for name in present if name not in wanted and name not in NOT_MIRRORED
    }
    values |= {name: value for name, value in wanted.items() if present.get(name) != value}
    if not values:
        return []
    return [ConfigsChanged(ConfigResource(ResourceType.TOPIC, source.name), values)]


def _accepted(now: Situation, configs: Mapping[str, str]) -> dict[str, str]:
    """The settings that this cluster takes over; one that it does not know or refuses is left out."""
    taken: dict[str, str] = {}
    for name, value in configs.items():
        if name in NOT_MIRRORED:
            continue
        try:
            check_topic_config(now.config.topic_config({**taken, name: value}))
        except ConfigError:
            continue
        taken[name] = value
    return taken


def _failed(topic: Topic, mirrored: MirroredTopic, reason: str) -> MirroredTopicChanged:
    return MirroredTopicChanged(topic.id, replace(mirrored, state=MirrorState.FAILED, reason=reason))


def fail_topics(reasons: Mapping[uuid.UUID, str]) -> Decision[None]:
    """The source no longer continues these topics."""

    def decide(now: Situation) -> Outcome[None]:
        changes: list[Change] = []
        for topic_id, reason in reasons.items():
            mirrored = now.image.mirrored.get(topic_id)
            if mirrored is not None and mirrored.state in (MirrorState.MIRRORING, MirrorState.DISCARDING):
                changes.append(_failed(now.image.topics_by_id[topic_id], mirrored, reason))
        return Outcome(None, changes)

    return decide


def retry_topics(link: str, names: Sequence[str] | None, discard: bool = False) -> Decision[list[str]]:
    """Let failed topics of a link go on; returns their names. They fail again if nothing has changed, unless what only this cluster
    has may be discarded."""

    def decide(now: Situation) -> Outcome[list[str]]:
        chosen = _chosen(now.image, link, names)
        failed = [(topic, each) for topic, each in chosen if each.state is MirrorState.FAILED]
        state = MirrorState.DISCARDING if discard else MirrorState.MIRRORING
        changes: list[Change] = [
            MirroredTopicChanged(topic.id, replace(each, state=state, reason="", agreed=()))
            for topic, each in failed
        ]
        return Outcome([topic.name for topic, _ in failed], changes)

    return decide


def note_agreement(agreed: Mapping[uuid.UUID, Sequence[int]]) -> Decision[None]:
    """Leaders say that partitions of topics that are DISCARDING agree with the source."""

    def decide(now: Situation) -> Outcome[None]:
        changes: list[Change] = []
        for topic_id, indexes in agreed.items():
            topic, mirrored = now.image.topics_by_id.get(topic_id), now.image.mirrored.get(topic_id)
            if topic is None or mirrored is None or mirrored.state is not MirrorState.DISCARDING:
                continue
            known = tuple(sorted({*mirrored.agreed, *indexes}))
            after = replace(mirrored, agreed=known)
            if len(known) == len(topic.partitions):
                after = replace(mirrored, state=MirrorState.MIRRORING, agreed=())
            if after != mirrored:
                changes.append(MirroredTopicChanged(topic_id, after))
        return Outcome(None, changes)

    return decide


def _chosen(
    image: MetadataImage, link: str, names: Sequence[str] | None
) -> list[tuple[Topic, MirroredTopic]]:
    the_link(image, link)
    mine = topics_of(image, link)
    if names is None:
        return mine
    missing = sorted(set(names) - {topic.name for topic, _ in mine})
    if missing:
        raise KafkaError(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            f"The mirror link '{link}' does not mirror {_some(missing)}.",
        )
    return [(topic, each) for topic, each in mine if topic.name in names]


def raise_epochs(wanted: Mapping[tuple[uuid.UUID, int], int]) -> Decision[None]:
    """Let leader epochs of mirrored partitions reach the source's before records of those epochs come."""

    def decide(now: Situation) -> Outcome[None]:
        edits = PartitionEdits()
        by_topic: dict[uuid.UUID, dict[int, int]] = {}
        for (topic_id, index), epoch in wanted.items():
            by_topic.setdefault(topic_id, {})[index] = epoch
        for topic_id, epochs in by_topic.items():
            topic, mirrored = now.image.topics_by_id.get(topic_id), now.image.mirrored.get(topic_id)
            if topic is None or mirrored is None or not mirrored.read_only:
                continue
            for index, epoch in epochs.items():
                state = topic.partition(index)
                if state is not None and state.leader_epoch < epoch:
                    edits.put(topic, index, _with_epoch(state, epoch))
        return Outcome(None, edits.changes())

    return decide


def _with_epoch(state: Partition, epoch: int) -> Partition:
    return state._replace(leader_epoch=epoch, partition_epoch=state.partition_epoch + 1)


# Failing over.


def fail_over(link: str, names: Sequence[str] | None) -> Decision[list[str]]:
    """Begin to fail topics over, all of a link unless some are named; returns the names of those that were not failed over before.

    A link that has nothing left to mirror is paused: it would otherwise make new topics.
    """

    def decide(now: Situation) -> Outcome[list[str]]:
        chosen = _chosen(now.image, link, names)
        begun = [
            (topic, replace(each, state=MirrorState.FAILING_OVER, reason="", ends={}, agreed=()))
            for topic, each in chosen
            if each.state not in (MirrorState.FAILING_OVER, MirrorState.FAILED_OVER)
        ]
        changes: list[Change] = [MirroredTopicChanged(topic.id, each) for topic, each in begun]
        if names is None:
            changes.append(LinkChanged(link, replace(the_link(now.image, link), state=LinkState.PAUSED)))
        return Outcome([topic.name for topic, _ in begun], changes)

    return decide


def report_ends(reports: Sequence[EndReport]) -> Decision[None]:
    """Leaders say where their partitions end. With the last of a topic, it becomes writable in new leader epochs."""

    def decide(now: Situation) -> Outcome[None]:
        changes: list[Change] = []
        by_topic: dict[uuid.UUID, list[EndReport]] = {}
        for report in reports:
            by_topic.setdefault(report.topic_id, []).append(report)
        for topic_id, mine in by_topic.items():
            topic, mirrored = now.image.topics_by_id.get(topic_id), now.image.mirrored.get(topic_id)
            if topic is not None and mirrored is not None and mirrored.state is MirrorState.FAILING_OVER:
                changes += _noted(topic, mirrored, mine)
        highest = max((report.highest_producer_id for report in reports), default=-1)
        if highest >= now.image.next_producer_id:
            changes.append(ProducerIdsAllocated(highest + 1))
        return Outcome(None, changes)

    return decide


def _noted(topic: Topic, mirrored: MirroredTopic, reports: Sequence[EndReport]) -> list[Change]:
    ends = dict(mirrored.ends)
    for report in reports:
        state = topic.partition(report.index)
        # A leader of an earlier epoch may have had more, or less, than the one that leads now.
        if state is not None and state.leader_epoch == report.leader_epoch:
            ends[report.index] = report.end
    if ends == mirrored.ends:
        return []
    if len(ends) < len(topic.partitions):
        return [MirroredTopicChanged(topic.id, replace(mirrored, ends=ends))]
    states = {
        index: _with_epoch(each, each.leader_epoch + FAILOVER_EPOCHS)
        for index, each in enumerate(topic.partitions)
    }
    done = replace(mirrored, state=MirrorState.FAILED_OVER, ends=ends)
    return [MirroredTopicChanged(topic.id, done), PartitionsChanged(topic.id, states)]
