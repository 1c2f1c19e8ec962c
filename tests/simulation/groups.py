"""Members of consumer groups, by the classic protocol and by KIP-848: they take their partitions, read, commit, leave, come back.

A commit that was acknowledged is a floor for every later read of the offset; a partition has one owner in each generation.
"""

from __future__ import annotations

import asyncio
import itertools
import uuid

from headrace.wire.codec import decode, encode
from headrace.wire.errors import ErrorCode
from headrace.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, TopicPartitions
from headrace.wire.messages.consumer_protocol_assignment import ConsumerProtocolAssignment, TopicPartition
from headrace.wire.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from headrace.wire.messages.heartbeat import HeartbeatRequest
from headrace.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from headrace.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from headrace.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from headrace.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from headrace.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from headrace.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from tests.simulation.client import GROUP, Away, Client, Refused, check
from tests.simulation.history import History, Place
from tests.simulation.readers import Reader

SESSION_MS = 4000
REBALANCE_MS = 5000
_ELSEWHERE = {
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
}


async def fetch_offsets(client: Client, group: str, places: list[Place]) -> dict[Place, int]:
    """What is committed, -1 where nothing is; waits for open transactions."""
    topics: dict[str, list[int]] = {}
    for topic, index in places:
        topics.setdefault(topic, []).append(index)
    asked = [OffsetFetchRequestTopics(topic, indexes) for topic, indexes in topics.items()]
    request = OffsetFetchRequest(
        groups=[OffsetFetchRequestGroup(group_id=group, topics=asked)], require_stable=True
    )
    try:
        reply = (await client.ask_coordinator(GROUP, group, request, 8)).groups[0]
        check(reply.error_code)
        found = {}
        for topic in reply.topics:
            for partition in topic.partitions:
                check(partition.error_code)
                found[topic.name, partition.partition_index] = partition.committed_offset
    except Refused as error:
        if error.code in _ELSEWHERE:
            client.forget_coordinator(GROUP, group)
        raise
    return found


class Member:
    """What both protocols share: positions from committed offsets, reading, committing."""

    def __init__(
        self, client: Client, history: History, group: str, places: list[Place], instance: str | None = None
    ) -> None:
        self.client = client
        self.history = history
        self.group = group
        self.places = places
        self.instance = instance
        self.member_id = ""
        self.generation = -1
        self.reader = Reader(client, history, [], committed_only=False)

    async def position(self, added: list[Place]) -> None:
        """Begin to read where the group stands."""
        floors = {place: self.history.committed.get((self.group, place), -1) for place in added}
        while added:
            try:
                found = await fetch_offsets(self.client, self.group, added)
            except (Away, Refused):
                await self.client.sleep(0.2)
                continue
            for place, offset in found.items():
                if offset < floors[place]:
                    self.client.world.trouble(
                        f"{self.group}: the committed offset of {place} is {offset}, {floors[place]} was acknowledged"
                    )
                self.reader.positions[place] = max(offset, 0)
            return

    async def commit(self) -> None:
        """Refused when this member has no say any more."""
        positions = {place: each for place, each in self.reader.positions.items() if each > 0}
        if not positions:
            return
        topics: dict[str, list[OffsetCommitRequestPartition]] = {}
        for (topic, index), offset in positions.items():
            topics.setdefault(topic, []).append(OffsetCommitRequestPartition(index, offset))
        request = OffsetCommitRequest(
            self.group,
            self.generation,
            self.member_id,
            group_instance_id=self.instance,
            topics=[OffsetCommitRequestTopic(topic, each) for topic, each in topics.items()],
        )
        reply = await self.client.ask_coordinator(GROUP, self.group, request, 9)
        refused = 0
        for topic in reply.topics:
            for partition in topic.partitions:
                place = topic.name, partition.partition_index
                if partition.error_code:
                    refused = partition.error_code
                else:
                    key = self.group, place
                    self.history.committed[key] = max(self.history.committed.get(key, -1), positions[place])
        check(refused)
        self.history.last_success[self.group] = self.client.world.now

    def elsewhere(self, error: Refused) -> bool:
        if error.code in _ELSEWHERE:
            self.client.forget_coordinator(GROUP, self.group)
            return True
        return False


class ClassicMember(Member):
    async def run(self) -> None:
        while True:
            try:
                if not await self._join():
                    await self.client.sleep(0.2)
                    continue
                if not await self._work(self.client.random.uniform(3, 25)):
                    continue
                await self._leave()
            except Away:
                await self.client.sleep(0.2)
            except Refused as error:
                if not self.elsewhere(error):
                    self._forget_identity(error)
                await self.client.sleep(0.2)
            await self.client.sleep(0.1)

    def _forget_identity(self, error: Refused) -> None:
        if error.code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID):
            self.member_id = ""

    async def _join(self) -> bool:
        topics = sorted({place[0] for place in self.places})
        subscription = b"\0\0" + bytes(encode(ConsumerProtocolSubscription(topics=topics), 0))
        request = JoinGroupRequest(
            self.group,
            SESSION_MS,
            REBALANCE_MS,
            self.member_id,
            self.instance,
            "consumer",
            [JoinGroupRequestProtocol("range", subscription)],
        )
        reply = await self.client.ask_coordinator(GROUP, self.group, request, 7, timeout=12.0)
        if reply.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = reply.member_id
            return await self._join()
        check(reply.error_code)
        self.member_id, self.generation = reply.member_id, reply.generation_id
        assignments = self._assign(reply) if reply.leader == reply.member_id else []
        synced = await self.client.ask_coordinator(
            GROUP,
            self.group,
            SyncGroupRequest(
                self.group, self.generation, self.member_id, self.instance, "consumer", "range", assignments
            ),
            5,
            timeout=12.0,
        )
        if synced.error_code == ErrorCode.REBALANCE_IN_PROGRESS:
            return False
        check(synced.error_code)
        mine = self._read(synced.assignment)
        me = self.instance or self.member_id  # A static member may come back in the same generation.
        for place in mine:
            owner = self.history.owners.setdefault((self.group, place, self.generation), me)
            if owner != me:
                self.client.world.trouble(
                    f"{self.group}: {place} belongs to {owner} and {me} in generation {self.generation}"
                )
        self.reader.positions = {}
        await self.position(mine)
        return True

    def _assign(self, reply: JoinGroupResponse) -> list[SyncGroupRequestAssignment]:
        members = sorted(each.member_id for each in reply.members)
        shares: dict[str, dict[str, list[int]]] = {member: {} for member in members}
        for number, (topic, index) in enumerate(self.places):
            shares[members[number % len(members)]].setdefault(topic, []).append(index)
        return [
            SyncGroupRequestAssignment(
                member,
                b"\0\0"
                + bytes(
                    encode(ConsumerProtocolAssignment([TopicPartition(*each) for each in topics.items()]), 0)
                ),
            )
            for member, topics in shares.items()
        ]

    def _read(self, assignment: bytes) -> list[Place]:
        if not assignment:
            return []
        decoded, _ = decode(ConsumerProtocolAssignment, 0, memoryview(assignment)[2:])
        return [(each.topic, index) for each in decoded.assigned_partitions for index in each.partitions]

    async def _work(self, seconds: float) -> bool:
        """Until it is time to leave: True; False when the group rebalances."""
        until = self.client.world.now + seconds
        beat = HeartbeatRequest(self.group, self.generation, self.member_id, self.instance)
        while self.client.world.now < until:
            await self.reader.turn()
            try:
                check((await self.client.ask_coordinator(GROUP, self.group, beat, 4)).error_code)
                await self.commit()
            except Away:
                continue
            except Refused as error:
                if error.code is ErrorCode.REBALANCE_IN_PROGRESS:
                    return False
                if not self.elsewhere(error):
                    self._forget_identity(error)
                    return False
            await self.client.sleep(0.5)
        return True

    async def _leave(self) -> None:
        """A static member just goes away, and comes back under its name."""
        if self.instance is None:
            request = LeaveGroupRequest(self.group, members=[MemberIdentity(self.member_id)])
            await self.client.ask_coordinator(GROUP, self.group, request, 4)
        self.member_id = ""
        await self.client.sleep(1.0)


class ConsumerMember(Member):
    """KIP-848: the broker assigns, the member reports what it owns with its heartbeats."""

    _count = itertools.count()

    async def run(self) -> None:
        while True:
            self.member_id = str(uuid.UUID(int=self.client.random.getrandbits(128)))
            try:
                await self._life(self.client.random.uniform(4, 30))
            except Refused as error:
                if not self.elsewhere(error):
                    self.client.world.trace(f"{self.client.name}: {error}")
            await self.client.sleep(0.5)

    async def _life(self, seconds: float) -> None:
        self.generation = 0
        self._held: dict[Place, float] = {}
        """What it owns, and the latest heartbeat known to have left it with it."""
        self.reader.positions = {}
        names: dict[uuid.UUID, str] = {}
        until = self.client.world.now + seconds
        owned: list[Place] = []
        changed = True
        while self.client.world.now < until:
            sent = self.client.world.now
            joining = self.generation == 0
            request = ConsumerGroupHeartbeatRequest(
                self.group,
                self.member_id,
                self.generation,
                rebalance_timeout_ms=REBALANCE_MS if joining else -1,
                subscribed_topic_names=sorted({place[0] for place in self.places}) if joining else None,
                topic_partitions=self._as_ids(owned, names) if joining or changed else None,
            )
            try:
                reply = await self.client.ask_coordinator(GROUP, self.group, request, 0)
                check(reply.error_code)
            except Away:
                changed = True
                await self.client.sleep(0.2)
                continue
            except Refused as error:
                if self.elsewhere(error):
                    await self.client.sleep(0.2)
                    continue
                raise
            self.generation = reply.member_epoch
            changed = False
            if reply.assignment is not None:
                names |= await self._names()
                assigned = [
                    (names[each.topic_id], index)
                    for each in reply.assignment.topic_partitions
                    if each.topic_id in names
                    for index in each.partitions
                ]
                changed = sorted(assigned) != sorted(owned)
                if changed:
                    await self._give_up([place for place in owned if place not in assigned])
                    await self.position([place for place in assigned if place not in owned])
                owned = assigned
            self._claim(owned, sent)
            await self.reader.turn()
            try:
                await self.commit()
            except Away:
                pass
            except Refused as error:
                if not self.elsewhere(error) and error.code is not ErrorCode.STALE_MEMBER_EPOCH:
                    raise
            await self.client.sleep(0.3 if changed else 0.8)
        bye = ConsumerGroupHeartbeatRequest(self.group, self.member_id, -1)
        try:
            await self.client.ask_coordinator(GROUP, self.group, bye, 0)
        except Away:
            return

    def _as_ids(self, owned: list[Place], names: dict[uuid.UUID, str]) -> list[TopicPartitions]:
        ids = {name: topic_id for topic_id, name in names.items()}
        found: dict[uuid.UUID, list[int]] = {}
        for topic, index in owned:
            found.setdefault(ids[topic], []).append(index)
        return [TopicPartitions(topic_id, indexes) for topic_id, indexes in found.items()]

    async def _names(self) -> dict[uuid.UUID, str]:
        while True:
            try:
                topics = sorted({place[0] for place in self.places})
                request = MetadataRequest(
                    topics=[MetadataRequestTopic(name=topic) for topic in topics],
                    allow_auto_topic_creation=False,
                )
                address = self.client.random.choice(self.client._addresses)
                reply = await self.client.call(address, request, 12)
                return {each.topic_id: each.name for each in reply.topics if each.name}
            except Away:
                await self.client.sleep(0.2)

    async def _give_up(self, revoked: list[Place]) -> None:
        if revoked:
            try:
                await self.commit()
            except (Away, Refused):
                await asyncio.sleep(0)
            for place in revoked:
                self.reader.positions.pop(place, None)

    def _claim(self, owned: list[Place], sent: float) -> None:
        """Between two heartbeats that left a partition with this member, no heartbeat of another can have been given it."""
        now, claims = self.client.world.now, self.history.claims
        for place in owned:
            member, since, until = claims.get((self.group, place), ("", 0.0, 0.0))
            if member not in ("", self.member_id) and self._held.get(place, now) < since and until < sent:
                self.client.world.trouble(
                    f"{self.group}: {place} is with {self.member_id} and was, at {until:.3f}, with {member}"
                )
            if since < sent:
                claims[self.group, place] = self.member_id, sent, now
        self._held = {place: max(sent, self._held.get(place, 0.0)) for place in owned}
