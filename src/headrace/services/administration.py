"""Headrace's own administration as a service: topics, groups, lag and the cluster's health.

Speaks to the cluster over the wire only, so it also administers Apache Kafka. Export it like any service and a Java
or Python application can manage the cluster: `headrace services export headrace.services.administration:Administration`.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, ParamSpec, TypeVar

from confluent_kafka import KafkaException

from headrace.client import Admin, BrokerError, ClientError, TopicPartition
from headrace.client.admin import session_of
from headrace.client.administration import lag
from headrace.link import DEFAULT_BOOTSTRAP
from headrace.services.bootstrap import service
from headrace.services.hessian2 import Int, Long, java_class
from headrace.services.interface import interface

_TIMEOUT_MS = 10_000
P = ParamSpec("P")
T = TypeVar("T")


@java_class("headrace.admin.PartitionState")
@dataclass(slots=True)
class PartitionState:
    """One partition: its leader, its replicas, its in-sync replicas."""

    partition: Int
    leader: Int
    replicas: list[Int]
    in_sync_replicas: list[Int]


@java_class("headrace.admin.TopicState")
@dataclass(slots=True)
class TopicState:
    """One topic with its partitions and the settings it was given."""

    name: str
    partitions: list[PartitionState]
    settings: dict[str, str | None]


@java_class("headrace.admin.GroupState")
@dataclass(slots=True)
class GroupState:
    """One consumer group."""

    group: str
    state: str
    coordinator: Int
    members: list[str]


@java_class("headrace.admin.PartitionLag")
@dataclass(slots=True)
class PartitionLag:
    """How far a group is behind in one partition, in records."""

    topic: str
    partition: Int
    committed: Long
    end: Long
    lag: Long


@java_class("headrace.admin.BrokerState")
@dataclass(slots=True)
class BrokerState:
    """One live broker."""

    id: Int
    host: str
    port: Int
    is_controller: bool


@java_class("headrace.admin.ClusterHealth")
@dataclass(slots=True)
class ClusterHealth:
    """The cluster's health: `healthy` when every partition has a leader and all its replicas are in sync."""

    healthy: bool
    cluster_id: str | None
    brokers: list[BrokerState]
    topics: Int
    partitions: Int
    under_replicated: list[str]
    offline: list[str]


@java_class("headrace.admin.AdministrationException")
class AdministrationError(Exception):
    """The cluster refused, or could not be reached."""


@interface("headrace.admin.Administration")
class AdministrationApi:
    """What can be asked of a cluster."""

    def topics(self) -> list[str]: ...  # type: ignore[empty-body]
    def describe_topic(self, name: str) -> TopicState: ...  # type: ignore[empty-body]
    def create_topic(
        self,
        name: str,
        partitions: Int = -1,
        replication_factor: Int = -1,
        settings: dict[str, str] | None = None,
    ) -> None: ...
    def add_partitions(self, name: str, total: Int) -> None: ...
    def delete_topic(self, name: str) -> None: ...
    def set_topic(self, name: str, settings: dict[str, str | None]) -> None: ...
    def groups(self) -> list[str]: ...  # type: ignore[empty-body]
    def describe_group(self, group: str) -> GroupState: ...  # type: ignore[empty-body]
    def lag(self, group: str) -> list[PartitionLag]: ...  # type: ignore[empty-body]
    def reset_group(self, group: str, topic: str, where: str) -> list[PartitionLag]: ...  # type: ignore[empty-body]
    def delete_group(self, group: str) -> None: ...
    def health(self) -> ClusterHealth: ...  # type: ignore[empty-body]


@service(AdministrationApi)
class Administration(AdministrationApi):
    """The cluster at `bootstrap_servers` (or `HEADRACE_BOOTSTRAP`)."""

    def __init__(self, bootstrap_servers: str | None = None) -> None:
        servers = bootstrap_servers or os.environ.get("HEADRACE_BOOTSTRAP") or DEFAULT_BOOTSTRAP
        self._admin = Admin(servers, default_api_timeout_ms=_TIMEOUT_MS)

    # -- topics ------------------------------------------------------------------------------------------

    def topics(self) -> list[str]:
        return _told(self._admin.topics)

    def describe_topic(self, name: str) -> TopicState:
        if name not in self.topics():  # asking for its metadata could create it
            raise AdministrationError(f"there is no topic {name!r}")
        found = _told(self._admin.topic, name)
        partitions = [
            PartitionState(p.number, p.leader, list(p.replicas), list(p.in_sync_replicas))
            for p in found.partitions
        ]
        return TopicState(name, partitions, _told(self._admin.topic_config, name))

    def create_topic(
        self,
        name: str,
        partitions: Int = -1,
        replication_factor: Int = -1,
        settings: dict[str, str] | None = None,
    ) -> None:
        _told(
            self._admin.create_topic,
            name,
            partitions=partitions,
            replication_factor=replication_factor,
            config=settings,
        )

    def add_partitions(self, name: str, total: Int) -> None:
        _told(self._admin.add_partitions, name, total)

    def delete_topic(self, name: str) -> None:
        _told(self._admin.delete_topic, name)

    def set_topic(self, name: str, settings: dict[str, str | None]) -> None:
        _told(self._admin.set_topic_config, name, settings)

    # -- groups ------------------------------------------------------------------------------------------

    def groups(self) -> list[str]:
        return _told(self._admin.groups)

    def describe_group(self, group: str) -> GroupState:
        found = _told(self._admin.group, group)
        return GroupState(
            group, found.state, found.coordinator, [member.member_id for member in found.members]
        )

    def lag(self, group: str) -> list[PartitionLag]:
        return self._lag(group)

    def reset_group(self, group: str, topic: str, where: str) -> list[PartitionLag]:
        """Move a stopped group to `earliest` or `latest`; returns where it is then."""
        places: dict[str, Literal["earliest", "latest"]] = {"earliest": "earliest", "latest": "latest"}
        if where not in places:
            raise AdministrationError(f"where={where} is no place in the log: earliest or latest")
        moved = _told(self._admin.reset_group, group, places[where], topic)
        return [each for each in self._lag(group) if TopicPartition(each.topic, each.partition) in moved]

    def delete_group(self, group: str) -> None:
        _told(self._admin.delete_group, group)

    def _lag(self, group: str) -> list[PartitionLag]:
        found = _told(lag.positions, session_of(self._admin), group)
        rows = []
        for (topic, partition), position in found.items():
            if isinstance(position.end, BrokerError):
                raise AdministrationError(str(position.end))
            rows.append(
                PartitionLag(topic, partition, position.committed or 0, position.end, position.lag or 0)
            )
        return rows

    # -- the cluster -------------------------------------------------------------------------------------

    def health(self) -> ClusterHealth:
        client = self._admin.librdkafka
        metadata = _told(client.list_topics, timeout=_TIMEOUT_MS / 1000)
        brokers = [
            BrokerState(broker.id, str(broker.host), broker.port, broker.id == metadata.controller_id)
            for broker in sorted(metadata.brokers.values(), key=lambda broker: broker.id)
        ]
        behind, offline, count = [], [], 0
        for name, topic in sorted(metadata.topics.items()):
            for number, partition in sorted(topic.partitions.items()):
                count += 1
                if partition.leader < 0:
                    offline.append(f"{name}-{number}")
                if len(partition.isrs) < len(partition.replicas):
                    behind.append(f"{name}-{number}")
        return ClusterHealth(
            not behind and not offline,
            metadata.cluster_id,
            brokers,
            len(metadata.topics),
            count,
            behind,
            offline,
        )


def _told(action: Callable[P, T], *arguments: P.args, **settings: P.kwargs) -> T:
    """Ask the cluster; what it refuses becomes the service's own exception, one sentence long."""
    try:
        return action(*arguments, **settings)
    except (ClientError, KafkaException) as error:
        raise AdministrationError(str(error)) from None
