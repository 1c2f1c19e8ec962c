"""What the source's topics mean for this cluster: topics to create or adopt, partitions to add, settings to take over."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from headrace.server.cluster import topics
from headrace.server.cluster.changes import Change, PartitionsChanged
from headrace.server.cluster.image import (
    ConfigResource,
    LinkState,
    MetadataImage,
    MirroredTopic,
    MirrorState,
    ResourceType,
    Topic,
)
from headrace.server.cluster.mirror_changes import MirroredTopicChanged
from headrace.server.cluster.mirror_states import failure, with_epoch
from headrace.server.cluster.outcome import Outcome
from headrace.server.cluster.policy_changes import ConfigsChanged
from headrace.server.cluster.situation import Decision, Situation
from headrace.server.config.definition import ConfigError
from headrace.server.config.topic import check_topic_config
from headrace.wire.errors import ErrorCode, KafkaError
from headrace.wire.messages.create_partitions import CreatePartitionsTopic
from headrace.wire.messages.create_topics import CreatableTopic, CreatableTopicConfig

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


@dataclass(frozen=True, slots=True)
class FollowedTopic:
    """A topic as the source describes it."""

    name: str
    id: uuid.UUID
    epochs: tuple[int, ...]
    """The leader epoch of each partition."""
    configs: Mapping[str, str] | None
    """Its own settings; None when they were not asked for."""


def follow_topics(link_name: str, found: Sequence[FollowedTopic]) -> Decision[dict[str, str]]:
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


def _follow(now: Situation, link: str, source: FollowedTopic) -> list[Change]:
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
        return [failure(topic, mirrored, "The topic was deleted and made again at the source.")]
    changes: list[Change] = []
    if len(source.epochs) > len(topic.partitions):
        changes.append(_more_partitions(now.image, topic, source))
    if source.configs is not None:
        changes += _configure(now, source)
    return changes


def _adopt(topic: Topic, link: str, source: FollowedTopic) -> list[Change]:
    """Its log may be the beginning of the source's; each leader finds out before anything is copied."""
    if len(topic.partitions) > len(source.epochs):
        raise KafkaError(
            ErrorCode.INVALID_PARTITIONS,
            f"The topic '{topic.name}' has {len(topic.partitions)} partitions here and {len(source.epochs)} at the source.",
        )
    # A new epoch ends what producers have under way.
    states = {
        index: with_epoch(state, max(state.leader_epoch + 1, source.epochs[index]))
        for index, state in enumerate(topic.partitions)
    }
    mirrored = MirroredTopic(link, source.id, MirrorState.MIRRORING)
    return [PartitionsChanged(topic.id, states), MirroredTopicChanged(topic.id, mirrored)]


def _create(now: Situation, link: str, source: FollowedTopic) -> list[Change]:
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


def _more_partitions(image: MetadataImage, topic: Topic, source: FollowedTopic) -> PartitionsChanged:
    change = topics.add_partitions(image, CreatePartitionsTopic(topic.name, len(source.epochs), None))
    states = {
        index: state._replace(leader_epoch=max(source.epochs[index], 0))
        for index, state in change.partitions.items()
    }
    return PartitionsChanged(topic.id, states)


def _configure(now: Situation, source: FollowedTopic) -> list[Change]:
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
