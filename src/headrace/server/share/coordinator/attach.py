"""Puts the share coordinator into a broker: it follows the cluster's topics. `StateLeadership` says what it leads."""

from __future__ import annotations

import uuid
from collections.abc import Sequence

from headrace.clock import Clock
from headrace.server.cluster.changes import Change, TopicDeleted
from headrace.server.cluster.image import MetadataImage
from headrace.server.cluster.internal_topics import SHARE_GROUP_STATE
from headrace.server.cluster.node import ClusterNode
from headrace.server.config.broker import BrokerConfig
from headrace.server.replica.turn import Turn
from headrace.server.share.coordinator.coordinator import ShareCoordinator, ShareCoordinatorConfig


def attach_share_coordinator(
    config: BrokerConfig,
    clock: Clock,
    cluster: ClusterNode,
    turn: Turn,
) -> ShareCoordinator:
    def partition_count() -> int:
        topic = cluster.image.topics.get(SHARE_GROUP_STATE)
        if topic is not None:
            return len(topic.partitions)
        return config.integer("share.coordinator.state.topic.num.partitions")

    coordinator = ShareCoordinator(
        ShareCoordinatorConfig.of(config), clock, _Topics(cluster), turn, partition_count
    )

    def changed(old: MetadataImage, new: MetadataImage, changes: Sequence[Change]) -> None:
        if any(isinstance(change, TopicDeleted) for change in changes):
            coordinator.topics_deleted()

    cluster.subscribe(changed)
    return coordinator


class _Topics:
    def __init__(self, cluster: ClusterNode) -> None:
        self._cluster = cluster

    def has_partition(self, topic_id: uuid.UUID, partition: int) -> bool:
        topic = self._cluster.image.topics_by_id.get(topic_id)
        return topic is not None and topic.partition(partition) is not None
