"""Changes to brokers, topics and partitions.

A change records the new state, not the reason for it, so applying one needs no decision. On disk a change is a JSON list: its tag,
then its fields (`change_codec.py`).
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Protocol, cast

from headrace.server.cluster.ids import format_id, parse_id
from headrace.server.cluster.image import (
    Broker,
    ConfigResource,
    Endpoint,
    ImageBuilder,
    Partition,
    ResourceType,
    Topic,
)

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
    """A new controller; every change of its predecessors comes before this one."""

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
    """The id of a new cluster."""

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
    """The new state of a broker that registered, was fenced, or began to shut down."""

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
    """A broker that is gone for good."""

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
    """A new topic."""

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
    """New states of some partitions of a topic; indexes past the end are new partitions, in order."""

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
class ProducerIdsAllocated:
    """Producer ids below `next_producer_id` are allocated."""

    TAG: ClassVar[str] = "producer-ids"
    next_producer_id: int

    def fields(self) -> list[object]:
        return [self.next_producer_id]

    @classmethod
    def read(cls, next_producer_id: int) -> ProducerIdsAllocated:
        return cls(next_producer_id)

    def apply(self, image: ImageBuilder) -> None:
        image.next_producer_id = self.next_producer_id


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
