"""Puts share groups into a broker: the share coordinator, and what leaders of partitions need to hand out records."""

from __future__ import annotations

import uuid
from concurrent.futures import Executor
from dataclasses import dataclass

from headrace.clock import Clock
from headrace.server.cluster.auto_topic_creation import AutoTopicCreation
from headrace.server.cluster.node import ClusterNode
from headrace.server.cluster.peers import Peers
from headrace.server.config.broker import BrokerConfig
from headrace.server.groups.share.service import StateKeeper
from headrace.server.replica.replicas import Replicas
from headrace.server.replica.turn import Turn
from headrace.server.share.coordinator.attach import attach_share_coordinator
from headrace.server.share.coordinator.coordinator import ShareCoordinator
from headrace.server.share.coordinator.records import ShareKey
from headrace.server.share.dead_letters import DeadLetterWriter
from headrace.server.share.ends import Ends
from headrace.server.share.partition import Means
from headrace.server.share.partitions import SharePartitions
from headrace.server.share.persister import Persister
from headrace.server.share.sessions import ShareSessions
from headrace.server.share.settings import ShareSettings


class _Keeper:
    """The persister as the group coordinator sees it."""

    def __init__(self, persister: Persister) -> None:
        self._persister = persister

    async def initialize(
        self, group_id: str, topic_id: uuid.UUID, index: int, state_epoch: int, start_offset: int
    ) -> None:
        await self._persister.initialize(ShareKey(group_id, topic_id, index), state_epoch, start_offset)

    async def delete(self, group_id: str, topic_id: uuid.UUID, index: int) -> None:
        await self._persister.delete(ShareKey(group_id, topic_id, index))


@dataclass(frozen=True, slots=True)
class Sharing:
    """What handlers need for share groups."""

    settings: ShareSettings
    coordinator: ShareCoordinator
    persister: Persister
    partitions: SharePartitions
    sessions: ShareSessions
    keeper: StateKeeper
    ends: Ends

    def close(self) -> None:
        self.partitions.close()
        self.coordinator.close()


def attach_sharing(
    config: BrokerConfig,
    clock: Clock,
    cluster: ClusterNode,
    replicas: Replicas,
    peers: Peers,
    topics: AutoTopicCreation,
    disk: Executor,
    turn: Turn,
) -> Sharing:
    coordinator = attach_share_coordinator(config, clock, cluster, turn)
    persister = Persister(coordinator, cluster, replicas.broker_id, peers, topics, clock)
    settings = ShareSettings(lambda: cluster.image, lambda: cluster.config)
    letters = DeadLetterWriter(cluster, replicas, peers, topics, settings.of, disk, clock)
    partitions = SharePartitions(replicas, Means(clock, turn, disk, persister, letters, settings.of))
    sessions = ShareSessions(partitions, config.integer("group.share.max.share.sessions"))
    return Sharing(
        settings, coordinator, persister, partitions, sessions, _Keeper(persister), Ends(replicas, peers)
    )
