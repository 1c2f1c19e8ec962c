"""The offsets of a link's groups: each broker copies those of the groups that it coordinates, as they are.

An offset is copied only as far as its partition has come here: at a failover no group is ahead of its records. A group that has
members here commits for itself, and is left alone.
"""

from __future__ import annotations

import asyncio
import logging

from headrace.server.cluster.image import MirrorLink, MirrorState
from headrace.server.cluster.mirror_links import matches
from headrace.server.cluster.node import ClusterNode
from headrace.server.cluster.peers import Peers
from headrace.server.groups.coordinator import GroupCoordinator
from headrace.server.mirror.source import LATEST, VERSIONS, SourceCluster
from headrace.server.replica.replicas import Replicas
from headrace.wire.errors import KafkaError
from headrace.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from headrace.wire.messages.offset_fetch import OffsetFetchRequestGroup
from headrace.wire.offset_commit import Commit, PartitionCommit, TopicCommit

log = logging.getLogger(__name__)

COMMIT_VERSION = 9
AT_ONCE = 200

Place = tuple[str, int]
Committed = tuple[int, int, str]
"""Offset, leader epoch, metadata."""


class GroupFollower:
    def __init__(
        self,
        link: MirrorLink,
        source: SourceCluster,
        cluster: ClusterNode,
        replicas: Replicas,
        groups: GroupCoordinator,
        peers: Peers,
    ) -> None:
        self._link = link
        self._source = source
        self._cluster = cluster
        self._replicas = replicas
        self._groups = groups
        self._peers = peers
        self.mirrored: dict[str, int] = {}
        """How many offsets of each group are the source's, as of the last look."""

    async def look(self) -> None:
        """One look at the source's groups; OSError or KafkaError when it cannot be asked."""
        mine = sorted(
            group
            for group in await self._source.groups()
            if matches(self._link.groups, group) and self._coordinates(group)
        )
        mirrored: dict[str, int] = {}
        for start in range(0, len(mine), AT_ONCE):
            for group, offsets in (await self._source.committed(mine[start : start + AT_ONCE])).items():
                followed = {place: each for place, each in offsets.items() if self._follows(place[0])}
                mirrored[group] = await self._bring_up(group, followed)
        self.mirrored = mirrored

    def _coordinates(self, group: str) -> bool:
        try:
            self._groups.require(group)
        except KafkaError:
            return False
        return True

    def _follows(self, topic: str) -> bool:
        image = self._cluster.image
        known = image.topics.get(topic)
        mirrored = image.mirrored.get(known.id) if known is not None else None
        return (
            mirrored is not None
            and mirrored.link == self._link.name
            and mirrored.state is MirrorState.MIRRORING
        )

    async def _bring_up(self, group: str, wanted: dict[Place, Committed]) -> int:
        """Commit what differs; returns how many offsets are the source's now."""
        present = await self._present(group)
        differing = {place: each for place, each in wanted.items() if present.get(place) != each}
        if not differing:
            return len(wanted)
        ends = await self._ends(list(differing))
        topics: dict[str, list[PartitionCommit]] = {}
        behind = 0
        for (topic, index), (offset, epoch, metadata) in differing.items():
            end = ends.get((topic, index))
            if end is None or not self._follows(topic):
                behind += 1
                continue
            if offset > end:
                behind += 1
                offset, epoch = end, -1
            if present.get((topic, index)) != (offset, epoch, metadata):
                topics.setdefault(topic, []).append(PartitionCommit(index, offset, epoch, metadata))
        if topics and not await self._commit(group, topics):
            return 0
        return len(wanted) - behind

    async def _present(self, group: str) -> dict[Place, Committed]:
        answer = await self._groups.fetch_offsets(OffsetFetchRequestGroup(group, topics=None), False)
        return {
            (topic.name, each.partition_index): (
                each.committed_offset,
                each.committed_leader_epoch,
                each.metadata or "",
            )
            for topic in answer.topics
            for each in topic.partitions
            if each.committed_offset >= 0
        }

    async def _commit(self, group: str, topics: dict[str, list[PartitionCommit]]) -> bool:
        """False when the group does not take it, because it has members here."""
        commit = Commit(group, -1, "", -1, None, [TopicCommit(*item) for item in topics.items()])
        stored: asyncio.Future[KafkaError | None] = asyncio.get_running_loop().create_future()

        def done(error: KafkaError | None) -> None:
            if not stored.done():
                stored.set_result(error)

        prepared = self._groups.prepare_commit(COMMIT_VERSION, commit)
        self._groups.commit(prepared, prepared.offsets, done)
        error = await stored
        if error is not None:
            log.info("the offsets of group %s are not mirrored now: %s", group, error)
        return error is None

    async def _ends(self, places: list[Place]) -> dict[Place, int]:
        """Where partitions end in this cluster; those whose leader does not answer are left out."""
        image = self._cluster.image
        found: dict[Place, int] = {}
        elsewhere: dict[int, dict[str, list[int]]] = {}
        for topic, index in places:
            state = image.partition(topic, index)
            if state is None:
                continue
            if state.leader == self._cluster.broker_id:
                try:
                    partition = self._replicas.find(topic.encode(), index, by_id=False)
                    found[topic, index] = partition.log.high_watermark
                except KafkaError:
                    continue
            elif state.leader >= 0:
                elsewhere.setdefault(state.leader, {}).setdefault(topic, []).append(index)
        for leader, topics in elsewhere.items():
            asked = [
                ListOffsetsTopic(topic, [ListOffsetsPartition(index, -1, LATEST) for index in indexes])
                for topic, indexes in topics.items()
            ]
            try:
                reply = await self._peers.call(
                    leader, ListOffsetsRequest(-1, 0, asked), VERSIONS[ListOffsetsRequest]
                )
            except OSError:
                continue
            for answer in reply.topics:
                for each in answer.partitions:
                    if not each.error_code:
                        found[answer.name, each.partition_index] = each.offset
        return found
