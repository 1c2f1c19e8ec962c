"""A group coordinator over a log in memory and a clock that the test moves."""

from __future__ import annotations

import asyncio
import heapq
import struct
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from typing import Any, TypeVar

import pytest

from headrace.server.groups.client import Client
from headrace.server.groups.config import GroupConfig
from headrace.server.groups.coordinator import GroupCoordinator
from headrace.server.replica.turn import Turn
from headrace.wire import batch as batches
from headrace.wire.codec import encode
from headrace.wire.errors import ErrorCode, KafkaError
from headrace.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from headrace.wire.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from headrace.wire.messages.heartbeat import HeartbeatRequest
from headrace.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from headrace.wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity
from headrace.wire.messages.offset_fetch import OffsetFetchRequestGroup, OffsetFetchRequestTopics
from headrace.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment, SyncGroupResponse
from headrace.wire.offset_commit import Commit, PartitionCommit, TopicCommit

T = TypeVar("T")


class ManualTimer:
    def __init__(self, callback: Callable[[], object]) -> None:
        self.callback: Callable[[], object] | None = callback

    def cancel(self) -> None:
        self.callback = None


class ManualClock:
    def __init__(self) -> None:
        self.seconds = 1_700_000_000.0
        self._timers: list[tuple[float, int, ManualTimer]] = []
        self._count = 0

    def now_ms(self) -> int:
        return round(self.seconds * 1000)

    def monotonic(self) -> float:
        return self.seconds

    def call_later(self, seconds: float, callback: Callable[[], object]) -> ManualTimer:
        timer = ManualTimer(callback)
        self._count += 1
        heapq.heappush(self._timers, (self.seconds + seconds, self._count, timer))
        return timer

    async def sleep(self, seconds: float) -> None:
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        done = asyncio.get_running_loop().create_future()
        self.call_later(seconds, lambda: done.set_result(None))
        await done

    async def wait_for(self, awaitable: Awaitable[T], seconds: float) -> T:
        return await asyncio.wait_for(awaitable, seconds)

    def advance(self, seconds: float) -> None:
        """Every timer fires at its own moment."""
        end = self.seconds + seconds
        while self._timers and self._timers[0][0] <= end + 1e-9:
            due, _, timer = heapq.heappop(self._timers)
            self.seconds = max(self.seconds, due)
            if timer.callback is not None:
                timer.callback()
        self.seconds = end


class MemoryLog:
    """A partition in memory; the high watermark follows at once unless it is held."""

    def __init__(self) -> None:
        self.batches: list[bytes] = []
        self.start_offset = 0
        self.end_offset = 0
        self.high_watermark = 0
        self.largest_batch = 1_048_588
        self.hold = False
        self.refuse: KafkaError | None = None
        self.reads = 0
        self._waiting: list[tuple[int, Callable[[ErrorCode], None]]] = []

    def append(self, batch: bytearray) -> int:
        if self.refuse is not None:
            raise self.refuse
        batches.assign(batch, self.end_offset, 0)
        header = batches.parse_header(batch)
        self.batches.append(bytes(batch))
        self.end_offset = header.next_offset
        if not self.hold:
            self.commit()
        return header.last_offset

    def commit(self) -> None:
        self.high_watermark = self.end_offset
        waiting, self._waiting = self._waiting, []
        for offset, callback in waiting:
            if offset < self.high_watermark:
                callback(ErrorCode.NONE)
            else:
                self._waiting.append((offset, callback))

    def when_committed(self, offset: int, callback: Callable[[ErrorCode], None]) -> None:
        if offset < self.high_watermark:
            callback(ErrorCode.NONE)
        else:
            self._waiting.append((offset, callback))

    async def read(self, offset: int, max_bytes: int) -> bytes:
        self.reads += 1
        out = b""
        for each in self.batches:
            if batches.parse_header(each).next_offset > offset and (not out or len(out) < max_bytes):
                out += each
        return out


class TopicTable:
    """Topics of the cluster: names with partition counts."""

    def __init__(self, **counts: int) -> None:
        self.version = 1
        self.settings: dict[str, dict[str, str]] = {}
        self._counts = dict(counts)
        self._ids = {name: uuid.uuid5(uuid.NAMESPACE_URL, name) for name in counts}

    def set(self, name: str, count: int) -> None:
        self.version += 1
        self._counts[name] = count
        self._ids.setdefault(name, uuid.uuid5(uuid.NAMESPACE_URL, name))

    def remove(self, name: str) -> None:
        self.version += 1
        del self._counts[name], self._ids[name]

    def names(self) -> list[str]:
        return list(self._counts)

    def topic_id(self, name: str) -> uuid.UUID | None:
        return self._ids.get(name)

    def topic_name(self, topic_id: uuid.UUID) -> str | None:
        return next((name for name, each in self._ids.items() if each == topic_id), None)

    def partition_count(self, name: str) -> int:
        return self._counts.get(name, 0)

    def group_settings(self, group_id: str) -> dict[str, str]:
        return self.settings.get(group_id, {})


def subscription(*topics: str, version: int = 1) -> bytes:
    body = encode(ConsumerProtocolSubscription(topics=list(topics)), version)
    return struct.pack(">h", version) + bytes(body)


class Keeper:
    """Share coordinators that remember what they were asked for, and can refuse."""

    def __init__(self) -> None:
        self.states: dict[tuple[str, uuid.UUID, int], tuple[int, int]] = {}
        self.refuse: KafkaError | None = None

    async def initialize(
        self, group_id: str, topic_id: uuid.UUID, index: int, state_epoch: int, start_offset: int
    ) -> None:
        if self.refuse is not None:
            raise self.refuse
        self.states[group_id, topic_id, index] = (state_epoch, start_offset)

    async def delete(self, group_id: str, topic_id: uuid.UUID, index: int) -> None:
        if self.refuse is not None:
            raise self.refuse
        self.states.pop((group_id, topic_id, index), None)


class Harness:
    """One coordinator that leads every partition its groups need, with requests as short calls."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.keeper = Keeper()
        self.topics = TopicTable(orders=4, payments=2, __consumer_offsets=5)
        self.logs: dict[int, MemoryLog] = {}
        self.config = GroupConfig(initial_rebalance_delay_ms=0, offsets_topic_partitions=5)
        self.coordinator = self._new()

    def _new(self) -> GroupCoordinator:
        return GroupCoordinator(self.config, self.clock, self.topics, Turn(), lambda: self.keeper)

    def configure(self, **settings: Any) -> None:
        self.config = replace(self.config, **settings)

    async def start(self) -> None:
        """Lead all partitions, with the logs as they are."""
        self.coordinator = self._new()
        for partition in range(5):
            self.coordinator.lead(partition, self.logs.setdefault(partition, MemoryLog()))
        await self.settle()

    async def restart(self) -> None:
        self.coordinator.close()
        await self.start()

    async def until_loaded(self) -> None:
        await asyncio.gather(*self.coordinator._runtime._loads.values())

    async def settle(self) -> None:
        for _ in range(10):
            await asyncio.sleep(0)

    async def pass_time(self, seconds: float) -> None:
        self.clock.advance(seconds)
        await self.settle()

    def log(self, group: str) -> MemoryLog:
        return self.logs[self.coordinator.partition_for(group)]

    def client(self, version: int, client_id: str = "client") -> Client:
        return Client(client_id, "/127.0.0.1", version)

    # The classic protocol

    def join(
        self,
        group: str = "group",
        member: str = "",
        *,
        instance: str | None = None,
        version: int = 9,
        protocols: dict[str, bytes] | None = None,
        protocol_type: str = "consumer",
        session_ms: int = 10_000,
        rebalance_ms: int = 30_000,
    ) -> asyncio.Future[JoinGroupResponse]:
        offered = protocols or {"range": subscription("orders")}
        return self.coordinator.join(
            self.client(version),
            JoinGroupRequest(
                group,
                session_ms,
                rebalance_ms,
                member,
                instance,
                protocol_type,
                [JoinGroupRequestProtocol(name, metadata) for name, metadata in offered.items()],
            ),
        )

    async def member_id(self, group: str = "group", **options: Any) -> str:
        """The first half of a join: the id to join with."""
        return (await self.join(group, **options)).member_id

    def sync(
        self,
        joined: JoinGroupResponse,
        assignments: dict[str, bytes] | None = None,
        *,
        group: str = "group",
        instance: str | None = None,
    ) -> asyncio.Future[SyncGroupResponse]:
        return self.coordinator.sync(
            self.client(5),
            SyncGroupRequest(
                group,
                joined.generation_id,
                joined.member_id,
                instance,
                "consumer",
                joined.protocol_name,
                [SyncGroupRequestAssignment(key, value) for key, value in (assignments or {}).items()],
            ),
        )

    def heartbeat(
        self, member: str, generation: int, *, group: str = "group", instance: str | None = None
    ) -> int:
        try:
            return self.coordinator.heartbeat(
                self.client(4), HeartbeatRequest(group, generation, member, instance)
            ).error_code
        except KafkaError as error:
            return error.code

    async def leave(
        self, *members: str, group: str = "group", instances: tuple[str, ...] = ()
    ) -> LeaveGroupResponse:
        identities = [MemberIdentity(member) for member in members]
        identities += [MemberIdentity("", instance) for instance in instances]
        return await self.coordinator.leave(self.client(5), LeaveGroupRequest(group, "", identities))

    async def stable_group(self, count: int, group: str = "group") -> list[JoinGroupResponse]:
        """A stable group of `count` members that each know their assignment; the leader comes first."""
        ids = [await self.member_id(group) for _ in range(count)]
        joins = [self.join(group, member) for member in ids]
        await self.pass_time(0)
        joined = sorted(await asyncio.gather(*joins), key=lambda each: each.member_id != each.leader)
        syncs = [
            self.sync(joined[0], {each.member_id: each.member_id.encode() for each in joined}, group=group)
        ]
        syncs += [self.sync(each, group=group) for each in joined[1:]]
        for each, answer in zip(joined, await asyncio.gather(*syncs), strict=True):
            assert answer.error_code == 0
            assert answer.assignment == each.member_id.encode()
        return joined

    # Offsets

    def commit(
        self,
        offset: int,
        *,
        group: str = "group",
        member: str = "",
        generation: int = -1,
        topic: str = "orders",
        partition: int = 0,
        metadata: str = "",
        version: int = 9,
        retention_ms: int = -1,
    ) -> asyncio.Future[int]:
        """The error of the one partition; an error of the whole commit is raised."""
        future: asyncio.Future[int] = asyncio.get_running_loop().create_future()

        def done(error: KafkaError | None) -> None:
            if error is None:
                future.set_result(ErrorCode(prepared.results[0][1][0][1]))
            else:
                future.set_exception(error)

        topics = [TopicCommit(topic, [PartitionCommit(partition, offset, 3, metadata)])]
        request = Commit(group, generation, member, retention_ms, None, topics)
        prepared = self.coordinator.prepare_commit(version, request)
        self.coordinator.commit(prepared, prepared.offsets, done)
        return future

    async def fetch(
        self, group: str = "group", *, topic: str = "orders", partition: int = 0, stable: bool = False
    ) -> tuple[int, int]:
        """(offset, error)"""
        request = OffsetFetchRequestGroup(group, topics=[OffsetFetchRequestTopics(topic, [partition])])
        answer = (await self.coordinator.fetch_offsets(request, stable)).topics[0].partitions[0]
        return answer.committed_offset, answer.error_code

    # The consumer protocol

    def consumer(
        self,
        member: str,
        epoch: int = 0,
        *,
        group: str = "group",
        topics: list[str] | None = None,
        regex: str | None = None,
        owned: dict[str, list[int]] | None = None,
        instance: str | None = None,
        assignor: str | None = None,
        rebalance_ms: int | None = None,
        version: int = 1,
    ) -> asyncio.Future[ConsumerGroupHeartbeatResponse]:
        """A heartbeat; joining ones bring what a first heartbeat must."""
        joins = epoch == 0
        if joins and topics is None and regex is None:
            topics = ["orders"]
        held = None
        if owned is not None or joins:
            ids = {name: self.topics.topic_id(name) for name in owned or {}}
            held = [
                TopicPartitions(ids[name] or uuid.UUID(int=0), each) for name, each in (owned or {}).items()
            ]
        return self.coordinator.consumer_heartbeat(
            self.client(version),
            ConsumerGroupHeartbeatRequest(
                group,
                member,
                epoch,
                instance,
                None,
                rebalance_ms if rebalance_ms is not None else 30_000 if joins else -1,
                topics,
                regex,
                assignor,
                held,
            ),
        )

    def partitions(self, response: ConsumerGroupHeartbeatResponse) -> dict[str, list[int]] | None:
        """The partitions that a heartbeat's answer assigns; None when it has no assignment."""
        if response.assignment is None:
            return None
        return {
            self.topics.topic_name(each.topic_id) or "?": list(each.partitions)
            for each in response.assignment.topic_partitions
        }


@pytest.fixture
async def groups() -> AsyncIterator[Harness]:
    harness = Harness()
    await harness.start()
    yield harness
    harness.coordinator.close()
