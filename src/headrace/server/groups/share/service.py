"""What requests ask of share groups: heartbeats, and what administrators do. State is made, moved and removed on the way."""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Awaitable, Callable, Collection, Mapping
from functools import partial
from typing import Protocol

from headrace.clock import Clock
from headrace.server.coordinator.promise import run
from headrace.server.coordinator.shard import Shard
from headrace.server.coordinator.write import Write
from headrace.server.groups.client import Client
from headrace.server.groups.records import GroupRecord
from headrace.server.groups.share import states
from headrace.server.groups.share.describe import describe
from headrace.server.groups.share.group import LEAVE_EPOCH, ShareGroup
from headrace.server.groups.share.heartbeat import heartbeat, missing_state
from headrace.server.groups.state import GroupState
from headrace.wire.errors import ErrorCode, KafkaError
from headrace.wire.messages.share_group_describe import DescribedGroup
from headrace.wire.messages.share_group_heartbeat import (
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)

logger = logging.getLogger(__name__)

GroupShard = Shard[GroupState, GroupRecord]
Place = tuple[uuid.UUID, int]

PATIENCE = 2.0
"""Seconds for which a heartbeat waits for state, so that a new member has its partitions at once."""
WHERE_SETTINGS_SAY = -1


class StateKeeper(Protocol):
    """The share coordinators."""

    async def initialize(
        self, group_id: str, topic_id: uuid.UUID, index: int, state_epoch: int, start_offset: int
    ) -> None: ...

    async def delete(self, group_id: str, topic_id: uuid.UUID, index: int) -> None: ...


class ShareGroupService:
    def __init__(self, shard: Callable[[str], GroupShard], keeper: StateKeeper, clock: Clock) -> None:
        self._shard = shard
        self._keeper = keeper
        self._clock = clock

    async def heartbeat(
        self, client: Client, request: ShareGroupHeartbeatRequest
    ) -> ShareGroupHeartbeatResponse:
        shard = self._shard(request.group_id)
        group_id = request.group_id
        response = await shard.write(partial(heartbeat, shard.state, client, request), group_id)
        if response.member_epoch == LEAVE_EPOCH or not await self._make_missing(shard, group_id):
            return response
        again = ShareGroupHeartbeatRequest(group_id, request.member_id, response.member_epoch)
        second = await shard.write(partial(heartbeat, shard.state, client, again), group_id)
        if second.assignment is None:
            second.assignment = response.assignment
        return second

    async def _make_missing(self, shard: GroupShard, group_id: str) -> bool:
        """Whether state was made for partitions that had none."""
        state = shard.state
        group = state.share_groups.get(group_id)
        missing = missing_state(state, group) if group is not None else {}
        if group is None or not missing or self._clock.now_ms() < group.initialize_after_ms:
            return False
        group.initialize_after_ms = self._clock.now_ms() + state.config.share_initialize_retry_ms
        places = {
            (topic, index): WHERE_SETTINGS_SAY for topic, indexes in missing.items() for index in indexes
        }
        making = run(self._make(shard, group_id, partial(states.begin, state, group_id, missing), places))
        try:
            failed = await self._clock.wait_for(making, PATIENCE)
        except (TimeoutError, KafkaError):
            return False
        if not failed:
            group.initialize_after_ms = 0
        return len(failed) < len(places)

    async def _make(
        self,
        shard: GroupShard,
        group_id: str,
        begin: Callable[[], Write[GroupRecord, int]],
        places: Mapping[Place, int],
    ) -> dict[Place, KafkaError]:
        """State that begins at these offsets; returns what failed."""
        epoch = await shard.write(begin, group_id)
        failed = await _each(
            places,
            lambda place: self._keeper.initialize(group_id, *place, epoch, places[place]),
        )
        for (topic, index), error in failed.items():
            logger.warning("Share group %s has no state for %s-%d: %s", group_id, topic, index, error)
        made: dict[uuid.UUID, frozenset[int]] = {}
        for topic, index in places.keys() - failed.keys():
            made[topic] = made.get(topic, frozenset()) | {index}
        await shard.write(partial(states.end, shard.state, group_id, made), group_id)
        return failed

    # Administration

    def group(self, group_id: str) -> ShareGroup:
        return self._shard(group_id).state.share_group(group_id)

    def describe(self, group_id: str) -> DescribedGroup:
        state = self._shard(group_id).state
        return describe(state.share_group(group_id), state.topics)

    async def reset(self, group_id: str, offsets: Mapping[Place, int]) -> dict[Place, KafkaError]:
        """Have an empty group begin at these offsets; returns what failed."""
        shard = self._shard(group_id)
        partitions: dict[uuid.UUID, frozenset[int]] = {}
        for topic, index in offsets:
            partitions[topic] = partitions.get(topic, frozenset()) | {index}
        begin = partial(states.begin_reset, shard.state, group_id, partitions)
        return await self._make(shard, group_id, begin, offsets)

    async def remove_topics(
        self, group_id: str, topics: Collection[uuid.UUID]
    ) -> dict[uuid.UUID, KafkaError | None]:
        """Have an empty group forget topics; only those it knows are in the result."""
        shard = self._shard(group_id)
        begin = partial(states.begin_removal, shard.state, group_id, topics)
        doomed = await shard.write(begin, group_id)
        places = [(topic, index) for topic, indexes in doomed.items() for index in indexes]
        failed = await _each(places, lambda place: self._keeper.delete(group_id, *place))
        errors: dict[uuid.UUID, KafkaError | None] = dict.fromkeys(doomed)
        for (topic, _), error in failed.items():
            errors[topic] = error
        gone = [topic for topic, error in errors.items() if error is None]
        if gone:
            await shard.write(partial(states.end_removal, shard.state, group_id, gone), group_id)
        return errors

    async def delete(self, group_id: str) -> None:
        """Delete an empty group and its state."""
        shard = self._shard(group_id)
        group = shard.state.share_group(group_id)
        topics = {*group.states.known, *group.states.deleting}
        for error in (await self.remove_topics(group_id, topics)).values():
            if error is not None:
                raise error

        def remove() -> Write[GroupRecord, None]:
            group = shard.state.share_group(group_id)
            group.require_empty()
            return Write(group.tombstones(), None)

        await shard.write(remove, group_id)


async def _each(
    places: Collection[Place], work: Callable[[Place], Awaitable[None]]
) -> dict[Place, KafkaError]:
    async def one(place: Place) -> KafkaError | None:
        try:
            await work(place)
        except KafkaError as error:
            # A state of a newer epoch is there, so there is one.
            return None if error.code is ErrorCode.FENCED_STATE_EPOCH else error
        return None

    order = list(places)
    results = await asyncio.gather(*(one(place) for place in order))
    return {place: error for place, error in zip(order, results, strict=True) if error is not None}
