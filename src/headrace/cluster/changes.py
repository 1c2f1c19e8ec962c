"""The changes that lead from one image to the next, and their compact JSON.

A change says what is now, not how it came about, so applying it needs no decision. On disk a change is a JSON list: its tag,
then its fields. An image is written down as the changes that make it from nothing.
"""

from __future__ import annotations

import json
import uuid
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Protocol, TypeVar, cast

from headrace.cluster.ids import format_id, parse_id
from headrace.cluster.image import (
    AccessRule,
    Broker,
    ConfigResource,
    Endpoint,
    ImageBuilder,
    MetadataImage,
    Partition,
    QuotaEntity,
    ResourceType,
    Topic,
)

V = TypeVar("V")

_COMPRESS_FROM = 4096

_ShortFields = tuple[list[int], list[int], int, int, int]
_LongFields = tuple[list[int], list[int], int, int, int, list[int], list[int], int]


class Change(Protocol):
    TAG: ClassVar[str]

    def fields(self) -> list[object]:
        """What follows the tag in JSON."""
        ...

    def apply(self, image: ImageBuilder) -> None: ...


@dataclass(frozen=True, slots=True)
class ControllerElected:
    """A controller took office; every change of its predecessors comes before this one."""

    TAG: ClassVar[str] = "controller"
    controller_id: int
    epoch: int

    def fields(self) -> list[object]:
        return [self.controller_id, self.epoch]

    @classmethod
    def read(cls, controller_id: int, epoch: int) -> ControllerElected:
        return cls(controller_id, epoch)

    def apply(self, image: ImageBuilder) -> None:
        image.controller_id = self.controller_id
        image.controller_epoch = self.epoch


@dataclass(frozen=True, slots=True)
class ClusterNamed:
    TAG: ClassVar[str] = "cluster"
    cluster_id: str

    def fields(self) -> list[object]:
        return [self.cluster_id]

    @classmethod
    def read(cls, cluster_id: str) -> ClusterNamed:
        return cls(cluster_id)

    def apply(self, image: ImageBuilder) -> None:
        image.cluster_id = self.cluster_id


@dataclass(frozen=True, slots=True)
class BrokerChanged:
    """A broker registered, was fenced, or began to shut down: this is how it now stands."""

    TAG: ClassVar[str] = "broker"
    broker: Broker

    def fields(self) -> list[object]:
        broker = self.broker
        return [
            broker.id,
            broker.epoch,
            [list(endpoint) for endpoint in broker.endpoints],
            broker.rack,
            broker.host,
            int(broker.fenced),
            int(broker.in_controlled_shutdown),
        ]

    @classmethod
    def read(
        cls,
        broker_id: int,
        epoch: int,
        endpoints: list[tuple[str, str, int, str]],
        rack: str | None,
        host: str | None,
        fenced: int,
        in_controlled_shutdown: int,
    ) -> BrokerChanged:
        places = tuple(Endpoint(*endpoint) for endpoint in endpoints)
        return cls(Broker(broker_id, epoch, places, rack, host, bool(fenced), bool(in_controlled_shutdown)))

    def apply(self, image: ImageBuilder) -> None:
        image.brokers[self.broker.id] = self.broker


@dataclass(frozen=True, slots=True)
class BrokerUnregistered:
    TAG: ClassVar[str] = "no-broker"
    broker_id: int

    def fields(self) -> list[object]:
        return [self.broker_id]

    @classmethod
    def read(cls, broker_id: int) -> BrokerUnregistered:
        return cls(broker_id)

    def apply(self, image: ImageBuilder) -> None:
        image.brokers.pop(self.broker_id, None)


@dataclass(frozen=True, slots=True)
class TopicCreated:
    TAG: ClassVar[str] = "topic"
    topic: Topic

    def fields(self) -> list[object]:
        topic = self.topic
        return [
            topic.name,
            format_id(topic.id),
            [_partition_fields(partition) for partition in topic.partitions],
        ]

    @classmethod
    def read(cls, name: str, topic_id: str, partitions: list[list[object]]) -> TopicCreated:
        return cls(Topic(name, parse_id(topic_id), tuple(map(_read_partition, partitions))))

    def apply(self, image: ImageBuilder) -> None:
        image.put_topic(self.topic)


@dataclass(frozen=True, slots=True)
class TopicDeleted:
    """The topic is gone, and its settings with it."""

    TAG: ClassVar[str] = "no-topic"
    topic_id: uuid.UUID

    def fields(self) -> list[object]:
        return [format_id(self.topic_id)]

    @classmethod
    def read(cls, topic_id: str) -> TopicDeleted:
        return cls(parse_id(topic_id))

    def apply(self, image: ImageBuilder) -> None:
        topic = image.topic(self.topic_id)
        if topic is not None:
            image.remove_topic(topic)
            resource = ConfigResource(ResourceType.TOPIC, topic.name)
            if resource in image.configs:
                del image.configs[resource]


@dataclass(frozen=True, slots=True)
class PartitionsChanged:
    """New states of some partitions of a topic; indexes past the end are partitions added, in order."""

    TAG: ClassVar[str] = "partitions"
    topic_id: uuid.UUID
    partitions: Mapping[int, Partition]

    def fields(self) -> list[object]:
        states = [[index, *_partition_fields(partition)] for index, partition in self.partitions.items()]
        return [format_id(self.topic_id), states]

    @classmethod
    def read(cls, topic_id: str, states: list[list[object]]) -> PartitionsChanged:
        return cls(parse_id(topic_id), {cast(int, state[0]): _read_partition(state[1:]) for state in states})

    def apply(self, image: ImageBuilder) -> None:
        topic = image.topic(self.topic_id)
        if topic is None:
            return
        partitions = list(topic.partitions)
        for index in sorted(self.partitions):
            if index < len(partitions):
                partitions[index] = self.partitions[index]
            else:
                partitions.append(self.partitions[index])
        image.put_topic(replace(topic, partitions=tuple(partitions)))


@dataclass(frozen=True, slots=True)
class ConfigsChanged:
    """Settings of one resource; None takes a setting away."""

    TAG: ClassVar[str] = "config"
    resource: ConfigResource
    values: Mapping[str, str | None]

    def fields(self) -> list[object]:
        return [int(self.resource.type), self.resource.name, dict(self.values)]

    @classmethod
    def read(cls, resource_type: int, name: str, values: dict[str, str | None]) -> ConfigsChanged:
        return cls(ConfigResource(ResourceType(resource_type), name), values)

    def apply(self, image: ImageBuilder) -> None:
        settings = dict(image.configs.get(self.resource, {}))
        for name, value in self.values.items():
            if value is None:
                settings.pop(name, None)
            else:
                settings[name] = value
        if settings:
            image.configs[self.resource] = settings
        else:
            image.configs.pop(self.resource, None)


@dataclass(frozen=True, slots=True)
class ProducerIdsAllocated:
    """Producer ids below `next_producer_id` belong to some broker."""

    TAG: ClassVar[str] = "producer-ids"
    next_producer_id: int

    def fields(self) -> list[object]:
        return [self.next_producer_id]

    @classmethod
    def read(cls, next_producer_id: int) -> ProducerIdsAllocated:
        return cls(next_producer_id)

    def apply(self, image: ImageBuilder) -> None:
        image.next_producer_id = self.next_producer_id


@dataclass(frozen=True, slots=True)
class FeatureChanged:
    """The level of a feature, as somebody has set it; None takes the setting away."""

    TAG: ClassVar[str] = "feature"
    name: str
    level: int | None

    def fields(self) -> list[object]:
        return [self.name, self.level]

    @classmethod
    def read(cls, name: str, level: int | None) -> FeatureChanged:
        return cls(name, level)

    def apply(self, image: ImageBuilder) -> None:
        if self.level is None:
            image.features.pop(self.name, None)
        else:
            image.features[self.name] = self.level


@dataclass(frozen=True, slots=True)
class AclChanged:
    """An access rule under its id; None takes it away."""

    TAG: ClassVar[str] = "acl"
    acl_id: str
    rule: AccessRule | None

    def fields(self) -> list[object]:
        return [self.acl_id, None if self.rule is None else list(self.rule)]

    @classmethod
    def read(cls, acl_id: str, rule: list[object] | None) -> AclChanged:
        return cls(acl_id, None if rule is None else cast(AccessRule, tuple(rule)))

    def apply(self, image: ImageBuilder) -> None:
        if self.rule is None:
            image.acls.pop(self.acl_id, None)
        else:
            image.acls[self.acl_id] = self.rule


@dataclass(frozen=True, slots=True)
class QuotaChanged:
    """Quota values of one entity; None takes a value away."""

    TAG: ClassVar[str] = "quota"
    entity: QuotaEntity
    values: Mapping[str, float | None]

    def fields(self) -> list[object]:
        return [[list(part) for part in self.entity], dict(self.values)]

    @classmethod
    def read(cls, entity: list[list[str | None]], values: dict[str, float | None]) -> QuotaChanged:
        return cls(cast(QuotaEntity, tuple((part[0], part[1]) for part in entity)), values)

    def apply(self, image: ImageBuilder) -> None:
        quotas = dict(image.quotas.get(self.entity, {}))
        for name, value in self.values.items():
            if value is None:
                quotas.pop(name, None)
            else:
                quotas[name] = value
        if quotas:
            image.quotas[self.entity] = quotas
        else:
            image.quotas.pop(self.entity, None)


@dataclass(frozen=True, slots=True)
class ScramChanged:
    """A user's SCRAM credential for one mechanism; None takes it away."""

    TAG: ClassVar[str] = "scram"
    user: str
    mechanism: str
    credential: Mapping[str, str] | None

    def fields(self) -> list[object]:
        return [self.user, self.mechanism, None if self.credential is None else dict(self.credential)]

    @classmethod
    def read(cls, user: str, mechanism: str, credential: dict[str, str] | None) -> ScramChanged:
        return cls(user, mechanism, credential)

    def apply(self, image: ImageBuilder) -> None:
        if self.credential is None:
            image.scram.pop((self.user, self.mechanism), None)
        else:
            image.scram[self.user, self.mechanism] = self.credential


_KINDS = {
    kind.TAG: kind.read
    for kind in (
        ControllerElected,
        ClusterNamed,
        BrokerChanged,
        BrokerUnregistered,
        TopicCreated,
        TopicDeleted,
        PartitionsChanged,
        ConfigsChanged,
        ProducerIdsAllocated,
        FeatureChanged,
        AclChanged,
        QuotaChanged,
        ScramChanged,
    )
}


def apply_changes(image: MetadataImage, offset: int, changes: Iterable[Change]) -> MetadataImage:
    """The image after `changes`, which are change number `offset` of the sequence."""
    builder = ImageBuilder(image)
    for change in changes:
        change.apply(builder)
    builder.offset = offset
    return builder.build()


def describe_image(image: MetadataImage) -> list[Change]:
    """The changes that make `image` from nothing."""
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
    return changes


def changes_between(old: MetadataImage, new: MetadataImage) -> list[Change]:
    """The changes that make `new` from `old`, for a broker that skipped the sequence by reading a snapshot."""
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
        # A topic that was deleted and created again starts without the settings it had.
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
    return changes


def _topic_id(image: MetadataImage, name: str) -> uuid.UUID | None:
    topic = image.topics.get(name)
    return topic.id if topic is not None else None


def _difference(old: Mapping[str, V], new: Mapping[str, V]) -> dict[str, V | None]:
    """What changed in a table of values; None for what went."""
    gone: dict[str, V | None] = {name: None for name in old if name not in new}
    return gone | {name: value for name, value in new.items() if old.get(name) != value}


def encode_changes(changes: Sequence[Change]) -> bytes:
    """Compact JSON; longer texts are compressed, which partitions take well to."""
    text = json.dumps([[change.TAG, *change.fields()] for change in changes], separators=(",", ":")).encode()
    return zlib.compress(text, 1) if len(text) >= _COMPRESS_FROM else text


def decode_changes(data: bytes) -> list[Change]:
    text = data if data[:1] == b"[" else zlib.decompress(data)
    changes: list[Change] = []
    for tag, *values in json.loads(text):
        read = _KINDS.get(tag)
        if read is None:
            raise ValueError(
                f"The cluster's metadata has a change of kind {tag!r}, which this version of Headrace does not know; "
                "run the version that wrote it, or a newer one."
            )
        changes.append(cast(Change, read(*values)))
    return changes


def _partition_fields(partition: Partition) -> list[object]:
    replicas, isr, leader, leader_epoch, partition_epoch, adding, removing, recovering = partition
    fields: list[object] = [replicas, isr, leader, leader_epoch, partition_epoch]
    if adding or removing or recovering:
        fields += [adding, removing, int(recovering)]
    return fields


def _read_partition(fields: Sequence[object]) -> Partition:
    if len(fields) == 5:
        replicas, isr, leader, leader_epoch, partition_epoch = cast(_ShortFields, fields)
        return Partition(tuple(replicas), tuple(isr), leader, leader_epoch, partition_epoch)
    replicas, isr, leader, leader_epoch, partition_epoch, adding, removing, recovering = cast(
        _LongFields, fields
    )
    return Partition(
        tuple(replicas),
        tuple(isr),
        leader,
        leader_epoch,
        partition_epoch,
        tuple(adding),
        tuple(removing),
        bool(recovering),
    )
