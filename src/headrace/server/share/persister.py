"""Calls the share coordinator of a key, on this broker or another one, and retries while it moves or loads."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from headrace.clock import Clock
from headrace.server.cluster.auto_topic_creation import AutoTopicCreation
from headrace.server.cluster.internal_topics import SHARE_GROUP_STATE
from headrace.server.cluster.node import ClusterNode
from headrace.server.cluster.peers import Peers
from headrace.server.share.coordinator.coordinator import ShareCoordinator
from headrace.server.share.coordinator.records import ShareKey
from headrace.server.share.coordinator.state import StoredState, Summary
from headrace.server.share.retrying import Retries
from headrace.server.share.states import StateBatch
from headrace.wire.errors import ErrorCode, KafkaError
from headrace.wire.messages import (
    delete_share_group_state,
    initialize_share_group_state,
    read_share_group_state,
    read_share_group_state_summary,
    write_share_group_state,
)

T = TypeVar("T")

_RETRIES = Retries(
    frozenset(
        {
            ErrorCode.NOT_COORDINATOR,
            ErrorCode.COORDINATOR_NOT_AVAILABLE,
            ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        }
    ),
    unreachable=ErrorCode.COORDINATOR_NOT_AVAILABLE,
    first_pause=0.02,
    longest_pause=1.0,
    patience=15.0,
)
WRITE_VERSION = SUMMARY_VERSION = 1


class Persister:
    def __init__(
        self,
        coordinator: ShareCoordinator,
        cluster: ClusterNode,
        broker_id: int,
        peers: Peers,
        topics: AutoTopicCreation,
        clock: Clock,
    ) -> None:
        self._coordinator = coordinator
        self._cluster = cluster
        self._broker_id = broker_id
        self._peers = peers
        self._topics = topics
        self._clock = clock

    async def initialize(self, key: ShareKey, state_epoch: int, start_offset: int) -> None:
        async def remote(broker: int) -> None:
            m = initialize_share_group_state
            data = m.PartitionData(key.partition, state_epoch, start_offset)
            request = m.InitializeShareGroupStateRequest(
                key.group_id, [m.InitializeStateData(key.topic_id, [data])]
            )
            reply = await self._peers.call(broker, request, 0)
            result = reply.results[0].partitions[0]
            _check(result.error_code, result.error_message)

        await self._try(key, lambda: self._coordinator.initialize(key, state_epoch, start_offset), remote)

    async def read(self, key: ShareKey, leader_epoch: int) -> StoredState:
        async def remote(broker: int) -> StoredState:
            m = read_share_group_state
            data = m.PartitionData(key.partition, leader_epoch)
            request = m.ReadShareGroupStateRequest(key.group_id, [m.ReadStateData(key.topic_id, [data])])
            result = (await self._peers.call(broker, request, 0)).results[0].partitions[0]
            _check(result.error_code, result.error_message)
            batches = tuple(
                StateBatch(each.first_offset, each.last_offset, each.delivery_state, each.delivery_count)
                for each in result.state_batches
            )
            return StoredState(result.state_epoch, result.start_offset, batches)

        return await self._try(key, lambda: self._coordinator.read(key, leader_epoch), remote)

    async def write(
        self,
        key: ShareKey,
        state_epoch: int,
        leader_epoch: int,
        start_offset: int,
        complete_count: int,
        batches: Sequence[StateBatch],
    ) -> None:
        async def remote(broker: int) -> None:
            m = write_share_group_state
            data = m.PartitionData(
                key.partition,
                state_epoch,
                leader_epoch,
                start_offset,
                complete_count,
                [m.StateBatch(*batch) for batch in batches],
            )
            request = m.WriteShareGroupStateRequest(key.group_id, [m.WriteStateData(key.topic_id, [data])])
            result = (await self._peers.call(broker, request, WRITE_VERSION)).results[0].partitions[0]
            _check(result.error_code, result.error_message)

        await self._try(
            key,
            lambda: self._coordinator.write(
                key, state_epoch, leader_epoch, start_offset, complete_count, batches
            ),
            remote,
        )

    async def delete(self, key: ShareKey) -> None:
        async def remote(broker: int) -> None:
            m = delete_share_group_state
            request = m.DeleteShareGroupStateRequest(
                key.group_id, [m.DeleteStateData(key.topic_id, [m.PartitionData(key.partition)])]
            )
            result = (await self._peers.call(broker, request, 0)).results[0].partitions[0]
            _check(result.error_code, result.error_message)

        await self._try(key, lambda: self._coordinator.delete(key), remote)

    async def summary(self, key: ShareKey) -> Summary:
        async def remote(broker: int) -> Summary:
            m = read_share_group_state_summary
            request = m.ReadShareGroupStateSummaryRequest(
                key.group_id, [m.ReadStateSummaryData(key.topic_id, [m.PartitionData(key.partition, -1)])]
            )
            result = (await self._peers.call(broker, request, SUMMARY_VERSION)).results[0].partitions[0]
            _check(result.error_code, result.error_message)
            return Summary(
                result.state_epoch, result.leader_epoch, result.start_offset, result.delivery_complete_count
            )

        return await self._try(key, lambda: self._coordinator.summary(key, -1), remote)

    async def _try(
        self,
        key: ShareKey,
        local: Callable[[], Awaitable[T]],
        remote: Callable[[int], Awaitable[T]],
    ) -> T:
        async def attempt() -> T:
            broker = await self._locate(key)
            return await (local() if broker == self._broker_id else remote(broker))

        return await _RETRIES.run(self._clock, attempt)

    async def _locate(self, key: ShareKey) -> int:
        image = self._cluster.image
        if SHARE_GROUP_STATE not in image.topics:
            error = (await self._topics.create([SHARE_GROUP_STATE])).get(SHARE_GROUP_STATE)
            if error is not None:
                raise KafkaError(
                    ErrorCode.COORDINATOR_NOT_AVAILABLE,
                    f"{SHARE_GROUP_STATE} cannot be created yet: {error.name}.",
                )
            await self._cluster.until(lambda image: SHARE_GROUP_STATE in image.topics)
            image = self._cluster.image
        index = self._coordinator.partition_for(key)
        leader = image.topics[SHARE_GROUP_STATE].partitions[index].leader
        if leader < 0:
            raise KafkaError(
                ErrorCode.COORDINATOR_NOT_AVAILABLE, f"{SHARE_GROUP_STATE}-{index} has no leader now."
            )
        return leader


def _check(code: int, message: str | None) -> None:
    if code:
        raise KafkaError(ErrorCode(code), message or "")


async def for_each(
    work: Callable[[ShareKey], Awaitable[T]], keys: Sequence[ShareKey]
) -> dict[ShareKey, T | KafkaError]:
    """The same of many keys at once, with the error of each that failed."""

    async def one(key: ShareKey) -> T | KafkaError:
        try:
            return await work(key)
        except KafkaError as error:
            return error

    results = await asyncio.gather(*(one(key) for key in keys))
    return dict(zip(keys, results, strict=True))
