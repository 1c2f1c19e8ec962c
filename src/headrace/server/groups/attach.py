"""Puts the group coordinator into a broker: it follows the leaders of `__consumer_offsets` and the cluster."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from typing import TYPE_CHECKING

from headrace.clock import Clock
from headrace.server.cluster.changes import Change, TopicDeleted
from headrace.server.cluster.image import MetadataImage
from headrace.server.cluster.internal_topics import CONSUMER_OFFSETS
from headrace.server.cluster.node import ClusterNode
from headrace.server.config.broker import BrokerConfig
from headrace.server.coordinator.leader_log import LeaderLog
from headrace.server.groups.cluster_view import ClusterView
from headrace.server.groups.config import GroupConfig
from headrace.server.groups.coordinator import GroupCoordinator
from headrace.server.replica.partition import Partition
from headrace.server.replica.replicas import Replicas
from headrace.server.replica.turn import Turn

if TYPE_CHECKING:
    from headrace.server.groups.share.service import StateKeeper


def attach_groups(
    config: BrokerConfig,
    clock: Clock,
    cluster: ClusterNode,
    replicas: Replicas,
    disk: Executor,
    turn: Turn,
    keeper: Callable[[], StateKeeper],
) -> GroupCoordinator:
    view = ClusterView(cluster.image)
    groups = GroupCoordinator(GroupConfig.of(config), clock, view, turn, keeper)

    def changed(old: MetadataImage, new: MetadataImage, changes: Sequence[Change]) -> None:
        view.changed(old, new, changes)
        gone = [old.topics_by_id[each.topic_id].name for each in changes if isinstance(each, TopicDeleted)]
        if gone:
            groups.topics_deleted(gone)

    cluster.subscribe(changed)
    replicas.listen(CONSUMER_OFFSETS, _Leadership(groups, disk))
    return groups


class _Leadership:
    def __init__(self, groups: GroupCoordinator, disk: Executor) -> None:
        self._groups = groups
        self._disk = disk

    def elected(self, partition: Partition) -> None:
        self._groups.lead(partition.index, LeaderLog(partition, self._disk))

    def resigned(self, partition: Partition) -> None:
        self._groups.resign(partition.index)
