"""The group coordinator of a broker: finds the shard of a group and runs the operation on it.

Every method either returns the answer, raises the KafkaError to answer with, or returns a promise of one
of the two. A request that is still waiting when its partition moves gets NOT_COORDINATOR.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, TypeVar

from headrace.clock import Clock
from headrace.server.cluster.internal_topics import CONSUMER_OFFSETS
from headrace.server.coordinator.log import CoordinatorLog
from headrace.server.coordinator.partitioning import partition_for
from headrace.server.coordinator.promise import Promise, run
from headrace.server.coordinator.runtime import CoordinatorRuntime
from headrace.server.coordinator.shard import Shard
from headrace.server.coordinator.write import Write
from headrace.server.groups import administration
from headrace.server.groups.classic import heartbeat as classic_heartbeat
from headrace.server.groups.classic import join as classic_join
from headrace.server.groups.classic import leave as classic_leave
from headrace.server.groups.classic import sync as classic_sync
from headrace.server.groups.classic.group import ClassicGroup
from headrace.server.groups.client import Client
from headrace.server.groups.config import GroupConfig
from headrace.server.groups.consumer import classic_members
from headrace.server.groups.consumer import describe as consumer_describe
from headrace.server.groups.consumer import heartbeat as consumer_heartbeat
from headrace.server.groups.consumer.group import ConsumerGroup
from headrace.server.groups.offsets import commit as offset_commit
from headrace.server.groups.offsets import delete as offset_delete
from headrace.server.groups.offsets import fetch as offset_fetch
from headrace.server.groups.offsets.commit import PreparedCommit, StoringCommit
from headrace.server.groups.records import GroupRecord
from headrace.server.groups.resume import resume
from headrace.server.groups.state import Group, GroupState
from headrace.server.groups.topics import Topics
from headrace.server.replica.turn import Turn
from headrace.wire.errors import ErrorCode, KafkaError
from headrace.wire.messages.consumer_group_describe import DescribedGroup as DescribedConsumerGroup
from headrace.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from headrace.wire.messages.delete_groups import DeletableGroupResult
from headrace.wire.messages.describe_groups import DescribedGroup
from headrace.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from headrace.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse
from headrace.wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from headrace.wire.messages.list_groups import ListedGroup
from headrace.wire.messages.offset_delete import OffsetDeleteRequest, OffsetDeleteResponse
from headrace.wire.messages.offset_fetch import OffsetFetchRequestGroup, OffsetFetchResponseGroup
from headrace.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from headrace.wire.messages.txn_offset_commit import TxnOffsetCommitRequest, TxnOffsetCommitResponse
from headrace.wire.offset_commit import Commit

if TYPE_CHECKING:
    from headrace.server.groups.share.service import ShareGroupService, StateKeeper

logger = logging.getLogger(__name__)

GroupShard = Shard[GroupState, GroupRecord]
T = TypeVar("T")


class GroupCoordinator:
    def __init__(
        self,
        config: GroupConfig,
        clock: Clock,
        topics: Topics,
        turn: Turn,
        keeper: Callable[[], StateKeeper],
    ) -> None:
        """`keeper` has the state of share groups; it is called when that is first needed."""
        self.config = config
        self._clock = clock
        self._topics = topics
        self._runtime: CoordinatorRuntime[GroupState, GroupRecord] = CoordinatorRuntime(
            CONSUMER_OFFSETS,
            self._new_state,
            clock,
            turn,
            config.offsets_commit_timeout_ms,
            config.offsets_topic_codec,
        )
        self._keeper = keeper

    @cached_property
    def share(self) -> ShareGroupService:
        # Imported here: most brokers have no share groups.
        from headrace.server.groups.share.service import ShareGroupService

        return ShareGroupService(self._named_shard, self._keeper(), self._clock)

    def _new_state(self, shard: GroupShard) -> GroupState:
        state = GroupState(shard.timers, self._clock, self.config, self._topics)
        state.on_loaded = lambda: resume(state)
        return state

    # Life

    def lead(self, partition: int, log: CoordinatorLog) -> None:
        """This broker leads a partition of `__consumer_offsets` from now on: load its groups."""
        self._runtime.lead(partition, log)

    def resign(self, partition: int) -> None:
        self._runtime.resign(partition)

    def close(self) -> None:
        self._runtime.close()

    def topics_deleted(self, names: Collection[str]) -> None:
        """Offsets go with their topic."""
        for shard in self._runtime.loaded():
            for write in offset_delete.delete_topics(shard.state, names):
                shard.perform(partial(_as_it_is, write), _log_failure)

    def partition_for(self, group_id: str) -> int:
        count = self._topics.partition_count(CONSUMER_OFFSETS) or self.config.offsets_topic_partitions
        return partition_for(group_id, count)

    def _shard(self, group_id: str) -> GroupShard:
        """Loaded, and its state as the last operation on the group left it."""
        shard = self._runtime.shard(self.partition_for(group_id))
        shard.settle(group_id)
        return shard

    def _named_shard(self, group_id: str) -> GroupShard:
        """The same for groups that must have a name."""
        if not group_id:
            raise KafkaError(ErrorCode.INVALID_GROUP_ID, "The group id must not be empty.")
        return self._shard(group_id)

    def _member_shard(self, group_id: str) -> GroupShard:
        """The same for members of classic and consumer groups."""
        self._named_shard(group_id)
        return self._offsets_shard(group_id)

    def _offsets_shard(self, group_id: str) -> GroupShard:
        """The same where a share group would be none, and the name may be empty."""
        shard = self._shard(group_id)
        if group_id in shard.state.share_groups:
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is a share group.")
        return shard

    # The classic protocol

    def join(self, client: Client, request: JoinGroupRequest) -> Promise[JoinGroupResponse]:
        shard = self._named_shard(request.group_id)
        if request.group_id in shard.state.share_groups:
            raise KafkaError(
                ErrorCode.INCONSISTENT_GROUP_PROTOCOL, f"Group {request.group_id} is a share group."
            )
        config = self.config
        if not config.min_session_timeout_ms <= request.session_timeout_ms <= config.max_session_timeout_ms:
            raise KafkaError(
                ErrorCode.INVALID_SESSION_TIMEOUT,
                f"session.timeout.ms {request.session_timeout_ms} is not between group.min.session.timeout.ms "
                f"{config.min_session_timeout_ms} and group.max.session.timeout.ms "
                f"{config.max_session_timeout_ms} of the broker.",
            )
        state = shard.state
        promise: Promise[JoinGroupResponse] = Promise()
        respond = promise.set_result

        def operation() -> Write[GroupRecord, None]:
            group = state.groups.get(request.group_id)
            if isinstance(group, ConsumerGroup) and not group.is_empty:
                return classic_members.join(state, client, group, request, respond)
            return classic_join.join(state, client, request, respond)

        def done(error: KafkaError | None) -> None:
            if error is not None:
                respond(JoinGroupResponse(error_code=error.code, member_id=request.member_id))

        shard.perform(operation, done, request.group_id)
        return promise

    def sync(self, client: Client, request: SyncGroupRequest) -> Promise[SyncGroupResponse]:
        shard = self._member_shard(request.group_id)
        state = shard.state
        promise: Promise[SyncGroupResponse] = Promise()
        respond = promise.set_result

        def operation() -> Write[GroupRecord, None]:
            group = _group_of_member(state, request.group_id)
            if isinstance(group, ClassicGroup):
                return classic_sync.sync(state, group, request, respond)
            return classic_members.sync(state, group, request, respond)

        shard.perform(operation, _failing(promise), request.group_id)
        return promise

    def heartbeat(self, client: Client, request: HeartbeatRequest) -> HeartbeatResponse:
        """Nothing of it is stored, so the answer needs no waiting."""
        try:
            state = self._member_shard(request.group_id).state
        except KafkaError as error:
            if error.code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
                return HeartbeatResponse()  # its session starts when the group is loaded
            raise
        group = _group_of_member(state, request.group_id)
        if isinstance(group, ClassicGroup):
            return classic_heartbeat.heartbeat(state, group, request)
        return classic_members.heartbeat(state, group, request)

    def leave(self, client: Client, request: LeaveGroupRequest) -> Promise[LeaveGroupResponse]:
        shard = self._member_shard(request.group_id)
        state = shard.state

        def operation() -> Write[GroupRecord, LeaveGroupResponse]:
            group = _group_of_member(state, request.group_id)
            if isinstance(group, ClassicGroup):
                return classic_leave.leave(state, group, request)
            return classic_members.leave(state, group, request)

        return shard.write(operation, request.group_id)

    # The consumer protocol

    def consumer_heartbeat(
        self, client: Client, request: ConsumerGroupHeartbeatRequest
    ) -> Promise[ConsumerGroupHeartbeatResponse]:
        shard = self._offsets_shard(request.group_id)
        state = shard.state
        return shard.write(lambda: consumer_heartbeat.heartbeat(state, client, request), request.group_id)

    def describe_consumer(self, group_id: str) -> DescribedConsumerGroup:
        return consumer_describe.describe(self._member_shard(group_id).state, group_id)

    # Offsets

    def prepare_commit(self, version: int, request: Commit) -> PreparedCommit:
        return PreparedCommit(version, request, self.config.offset_metadata_max_bytes)

    def commit(
        self, prepared: PreparedCommit, offsets: Sequence[int], done: Callable[[KafkaError | None], None]
    ) -> None:
        """By callback rather than by future: nothing else is asked as often. `done(None)` when the offsets are stored."""
        request = prepared.request
        try:
            shard = self._offsets_shard(request.group_id)
            state = shard.state
            offset_commit.check(state, prepared)
        except KafkaError as error:
            done(error)
            return
        if prepared.forms and request.retention_ms == -1:
            shard.commit_offsets(StoringCommit(state, prepared, offsets, done), request.group_id)
        else:
            operation = partial(offset_commit.commit_with_retention, state, prepared, offsets)
            shard.perform(operation, done, request.group_id)

    def require(self, group_id: str) -> None:
        """Raises the error for a member of the group unless this broker coordinates it and has loaded it."""
        self._member_shard(group_id)

    def commit_transactional(
        self, client: Client, request: TxnOffsetCommitRequest, *, knows_member_epochs: bool = False
    ) -> Promise[TxnOffsetCommitResponse]:
        """Offsets as part of a transaction: they count from the moment its commit marker is written. A client that knows
        of member epochs gets the errors of OffsetCommit 9."""
        shard = self._member_shard(request.group_id)
        state = shard.state
        return shard.write(
            lambda: offset_commit.commit_transactional(state, client, request, knows_member_epochs),
            request.group_id,
            request.producer_id,
            request.producer_epoch,
        )

    def end_transaction(
        self,
        partition: int,
        producer_id: int,
        producer_epoch: int,
        coordinator_epoch: int,
        committed: bool,
    ) -> Promise[ErrorCode]:
        """Write a transaction's marker into a partition of `__consumer_offsets`."""
        shard = self._runtime.shard(partition)
        return shard.end_transaction(producer_id, producer_epoch, coordinator_epoch, committed)

    def fetch_offsets(
        self, request: OffsetFetchRequestGroup, require_stable: bool
    ) -> Promise[OffsetFetchResponseGroup]:
        shard = self._offsets_shard(request.group_id)
        state = shard.state
        return shard.read(lambda: offset_fetch.fetch(state, request, require_stable), request.group_id)

    def delete_offsets(self, request: OffsetDeleteRequest) -> Promise[OffsetDeleteResponse]:
        shard = self._member_shard(request.group_id)
        state = shard.state
        return shard.write(lambda: offset_delete.delete_offsets(state, request), request.group_id)

    # Administration

    def states(self) -> Iterator[GroupState]:
        """Of every partition that is loaded, for looking at."""
        return self._runtime.states()

    @property
    def loading(self) -> int:
        """How many partitions are being loaded."""
        return self._runtime.loading

    def list(self, states: Collection[str], types: Collection[str]) -> list[ListedGroup]:
        """The groups whose partitions this broker leads."""
        return [
            listed
            for shard in self._runtime.shards()
            for listed in administration.list_groups(shard.state, states, types)
        ]

    def describe(self, group_id: str, version: int) -> DescribedGroup:
        return administration.describe_classic(self._shard(group_id).state, group_id, version)

    def delete(self, group_id: str) -> Promise[DeletableGroupResult]:
        shard = self._shard(group_id)
        state = shard.state
        if group_id in state.share_groups:
            return run(self.share.delete(group_id)).then(lambda done: _deleted(group_id, done))
        return shard.write(lambda: administration.delete_group(state, group_id), group_id)


def _deleted(group_id: str, done: Promise[None]) -> DeletableGroupResult:
    done.result()
    return DeletableGroupResult(group_id)


def _group_of_member(state: GroupState, group_id: str) -> Group:
    group = state.groups.get(group_id)
    if group is None:
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"Group {group_id} does not exist; join again.")
    return group


def _failing(promise: Promise[T]) -> Callable[[KafkaError | None], None]:
    """For operations that answer by themselves: only their failure ends the promise."""

    def done(error: KafkaError | None) -> None:
        if error is not None:
            promise.set_exception(error)

    return done


def _as_it_is(write: Write[GroupRecord, None]) -> Write[GroupRecord, None]:
    return write


def _log_failure(error: KafkaError | None) -> None:
    if error is not None:
        logger.warning("Offsets of deleted topics stay until they expire: %s", error)
