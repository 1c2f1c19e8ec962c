"""From changes to images and back: apply changes to an image, describe an image as changes, find the changes between two."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from typing import TypeVar

from headrace.server.cluster.changes import (
    BrokerChanged,
    BrokerUnregistered,
    Change,
    ClusterNamed,
    ControllerElected,
    PartitionsChanged,
    ProducerIdsAllocated,
    TopicCreated,
    TopicDeleted,
)
from headrace.server.cluster.image import ImageBuilder, MetadataImage, ResourceType
from headrace.server.cluster.mirror_changes import LinkChanged, MirroredTopicChanged
from headrace.server.cluster.policy_changes import (
    AclChanged,
    ConfigsChanged,
    FeatureChanged,
    QuotaChanged,
    ScramChanged,
    TokenChanged,
)

V = TypeVar("V")


def apply_changes(image: MetadataImage, offset: int, changes: Iterable[Change]) -> MetadataImage:
    """`image` with `changes`, which are number `offset` in the sequence."""
    builder = ImageBuilder(image)
    for change in changes:
        change.apply(builder)
    builder.offset = offset
    return builder.build()


def describe_image(image: MetadataImage) -> list[Change]:
    """The changes that build `image` from an empty one."""
    changes: list[Change] = [
        ClusterNamed(image.cluster_id),
        ControllerElected(image.controller_id, image.controller_epoch),
        ProducerIdsAllocated(image.next_producer_id),
    ]
    changes.extend(FeatureChanged(name, level) for name, level in image.features.items())
    changes.extend(BrokerChanged(broker) for broker in image.brokers.values())
    changes.extend(TopicCreated(topic) for topic in image.topics.values())
    changes.extend(ConfigsChanged(resource, values) for resource, values in image.configs.items())
    changes.extend(AclChanged(acl_id, rule) for acl_id, rule in image.acls.items())
    changes.extend(QuotaChanged(entity, values) for entity, values in image.quotas.items())
    changes.extend(ScramChanged(user, mechanism, kept) for (user, mechanism), kept in image.scram.items())
    changes.extend(TokenChanged(*item) for item in image.tokens.items())
    changes.extend(LinkChanged(*item) for item in image.links.items())
    changes.extend(MirroredTopicChanged(*item) for item in image.mirrored.items())
    return changes


def changes_between(old: MetadataImage, new: MetadataImage) -> list[Change]:
    """The changes from `old` to `new`, for a broker that read a snapshot instead of the changes themselves."""
    changes: list[Change] = []
    if old.cluster_id != new.cluster_id:
        changes.append(ClusterNamed(new.cluster_id))
    if (old.controller_id, old.controller_epoch) != (new.controller_id, new.controller_epoch):
        changes.append(ControllerElected(new.controller_id, new.controller_epoch))
    if old.next_producer_id != new.next_producer_id:
        changes.append(ProducerIdsAllocated(new.next_producer_id))
    changes.extend(FeatureChanged(name, None) for name in old.features if name not in new.features)
    changes.extend(FeatureChanged(*item) for item in new.features.items() if item not in old.features.items())
    changes.extend(BrokerUnregistered(broker_id) for broker_id in old.brokers if broker_id not in new.brokers)
    changes.extend(
        BrokerChanged(broker)
        for broker_id, broker in new.brokers.items()
        if old.brokers.get(broker_id) != broker
    )
    changes.extend(
        TopicDeleted(topic_id) for topic_id in old.topics_by_id if topic_id not in new.topics_by_id
    )
    for topic_id, topic in new.topics_by_id.items():
        before = old.topics_by_id.get(topic_id)
        if before is None:
            changes.append(TopicCreated(topic))
        elif before.partitions != topic.partitions:
            states = {
                index: partition
                for index, partition in enumerate(topic.partitions)
                if before.partition(index) != partition
            }
            changes.append(PartitionsChanged(topic_id, states))
    for resource in {*old.configs, *new.configs}:
        # A topic that was deleted and created again starts without its old settings.
        renewed = resource.type is ResourceType.TOPIC and _topic_id(old, resource.name) != _topic_id(
            new, resource.name
        )
        before_values = {} if renewed else old.configs.get(resource, {})
        values = _difference(before_values, new.configs.get(resource, {}))
        if values:
            changes.append(ConfigsChanged(resource, values))
    changes.extend(AclChanged(acl_id, None) for acl_id in old.acls if acl_id not in new.acls)
    changes.extend(AclChanged(*item) for item in new.acls.items() if item not in old.acls.items())
    for entity in {*old.quotas, *new.quotas}:
        quotas = _difference(old.quotas.get(entity, {}), new.quotas.get(entity, {}))
        if quotas:
            changes.append(QuotaChanged(entity, quotas))
    changes.extend(ScramChanged(*key, None) for key in old.scram if key not in new.scram)
    changes.extend(ScramChanged(*key, kept) for key, kept in new.scram.items() if old.scram.get(key) != kept)
    changes.extend(TokenChanged(token_id, None) for token_id in old.tokens if token_id not in new.tokens)
    changes.extend(TokenChanged(*item) for item in new.tokens.items() if item not in old.tokens.items())
    changes.extend(LinkChanged(name, None) for name in old.links if name not in new.links)
    changes.extend(LinkChanged(name, link) for name, link in new.links.items() if old.links.get(name) != link)
    changes.extend(
        MirroredTopicChanged(topic_id, None)
        for topic_id in old.mirrored
        if topic_id not in new.mirrored and topic_id in new.topics_by_id
    )
    changes.extend(
        MirroredTopicChanged(topic_id, topic)
        for topic_id, topic in new.mirrored.items()
        if old.mirrored.get(topic_id) != topic
    )
    return changes


def _topic_id(image: MetadataImage, name: str) -> uuid.UUID | None:
    topic = image.topics.get(name)
    return topic.id if topic is not None else None


def _difference(old: Mapping[str, V], new: Mapping[str, V]) -> dict[str, V | None]:
    """The values that changed; None for those removed."""
    gone: dict[str, V | None] = {name: None for name in old if name not in new}
    return gone | {name: value for name, value in new.items() if old.get(name) != value}
