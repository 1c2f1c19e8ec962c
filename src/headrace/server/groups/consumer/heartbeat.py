"""ConsumerGroupHeartbeat: joining, staying and leaving in one request."""

from __future__ import annotations

import logging
import uuid
from dataclasses import replace

from headrace.server.coordinator.write import Write
from headrace.server.groups.assignors import ASSIGNORS
from headrace.server.groups.classic.group import ClassicGroup
from headrace.server.groups.client import Client
from headrace.server.groups.consumer import migration, regex, sessions
from headrace.server.groups.consumer.group import ConsumerGroup
from headrace.server.groups.consumer.member import (
    LEAVE_EPOCH,
    LEAVE_STATIC_EPOCH,
    NO_PARTITIONS,
    ConsumerMember,
)
from headrace.server.groups.consumer.reconciliation import Owned
from headrace.server.groups.consumer.step import step, when_stored
from headrace.server.groups.records import GroupRecord
from headrace.server.groups.state import GroupState
from headrace.wire.errors import ErrorCode, KafkaError
from headrace.wire.messages.consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    ResponseTopicPartitions,
)

logger = logging.getLogger(__name__)

HeartbeatWrite = Write[GroupRecord, ConsumerGroupHeartbeatResponse]


def heartbeat(state: GroupState, client: Client, request: ConsumerGroupHeartbeatRequest) -> HeartbeatWrite:
    _validate(state, client, request)
    if request.member_epoch in (LEAVE_EPOCH, LEAVE_STATIC_EPOCH):
        return _leave(state, request)
    records: list[GroupRecord] = []
    joins = request.member_epoch == 0
    group, upgraded = _find_group(state, request.group_id, joins, records)
    member_id = request.member_id or str(uuid.uuid4())
    if len(group.members) >= state.config.consumer_max_size and member_id not in group.members:
        raise KafkaError(
            ErrorCode.GROUP_MAX_SIZE_REACHED,
            f"Group {group.group_id} has its maximum of {state.config.consumer_max_size} members.",
        )
    owned = _owned(request)
    if request.instance_id is None:
        before, replaced = _dynamic_member(group, member_id, request.member_epoch, owned, joins), None
    else:
        before, replaced = _static_member(
            group, member_id, request.instance_id, request.member_epoch, owned, joins, records
        )
    updated = _updated(before, client, request)
    member = step(state, group, before, updated, owned, replaced, client.may_describe, records)
    sessions.expect_heartbeat(state, group.group_id, member)
    response = ConsumerGroupHeartbeatResponse(
        member_id=member.member_id,
        member_epoch=member.member_epoch,
        heartbeat_interval_ms=state.heartbeat_interval_ms(group.group_id),
    )
    # A member that sends its full state may have lost our last reply: send it everything.
    says_all = (
        request.rebalance_timeout_ms != -1
        and owned is not None
        and (request.subscribed_topic_names is not None or request.subscribed_topic_regex is not None)
    )
    if joins or says_all or member.assigned != before.assigned:
        response.assignment = Assignment(
            [ResponseTopicPartitions(topic, sorted(each)) for topic, each in member.assigned.items()]
        )

    def move_in() -> None:
        """What an upgrade changes besides the records, and only once they are in the log."""
        assert upgraded is not None
        state.replay_groups(records)
        migration.dissolve(state, upgraded)
        for each in group.members.values():
            sessions.expect_heartbeat(state, group.group_id, each)

    mark_checked = when_stored(state, group)

    def finish(error: KafkaError | None) -> None:
        if error is None:
            mark_checked()

    return Write(records, response, apply=None if upgraded is None else move_in, finish=finish)


# Checks


def _validate(state: GroupState, client: Client, request: ConsumerGroupHeartbeatRequest) -> None:
    if not request.group_id:
        raise _invalid("GroupId can't be empty.")
    if request.instance_id == "" or request.rack_id == "":
        raise _invalid("InstanceId and RackId can't be empty; leave them out instead.")
    epoch = request.member_epoch
    if epoch < LEAVE_STATIC_EPOCH:
        raise _invalid(f"MemberEpoch {epoch} is invalid.")
    if not request.member_id and (epoch != 0 or client.version >= 1):
        raise _invalid("MemberId can't be empty.")
    if epoch == LEAVE_STATIC_EPOCH and request.instance_id is None:
        raise _invalid("InstanceId can't be null.")
    if epoch == 0:
        if request.rebalance_timeout_ms == -1:
            raise _invalid("RebalanceTimeoutMs must be provided in first request.")
        if request.topic_partitions is None or request.topic_partitions:
            raise _invalid("TopicPartitions must be empty when (re-)joining.")
        # Either may be empty: a client that matches its own pattern joins before there is a topic for it.
        if request.subscribed_topic_names is None and request.subscribed_topic_regex is None:
            raise _invalid(
                "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining."
            )
    if request.server_assignor is not None and request.server_assignor not in _assignors(state):
        raise KafkaError(
            ErrorCode.UNSUPPORTED_ASSIGNOR,
            f"ServerAssignor {request.server_assignor} is not supported. "
            f"Supported assignors: {', '.join(_assignors(state))}.",
        )
    if request.subscribed_topic_regex:
        regex.validate(request.subscribed_topic_regex)


def _assignors(state: GroupState) -> list[str]:
    return [name for name in state.config.consumer_assignors if name in ASSIGNORS]


def _invalid(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, message)


def _owned(request: ConsumerGroupHeartbeatRequest) -> Owned:
    if request.topic_partitions is None:
        return None
    return {each.topic_id: frozenset(each.partitions) for each in request.topic_partitions if each.partitions}


# Who it is


def _find_group(
    state: GroupState, group_id: str, create: bool, records: list[GroupRecord]
) -> tuple[ConsumerGroup, ClassicGroup | None]:
    """The group, or a new one that its records will create; with the classic one whose members it takes over."""
    group = state.groups.get(group_id)
    if isinstance(group, ConsumerGroup):
        return group, None
    if not create:
        what = "does not exist" if group is None else "is not a consumer group"
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} {what}.")
    if isinstance(group, ClassicGroup):
        if not group.is_empty:
            return migration.upgrade(state, group, records), group
        records += group.tombstones()
    return ConsumerGroup(group_id), None


def _dynamic_member(
    group: ConsumerGroup, member_id: str, epoch: int, owned: Owned, joins: bool
) -> ConsumerMember:
    member = group.members.get(member_id)
    if member is None:
        if not joins:
            return group.member(member_id)
        logger.info("Group %s: member %s joins.", group.group_id, member_id)
        return ConsumerMember(member_id)
    _validate_epoch(member, epoch, owned)
    return member


def _static_member(
    group: ConsumerGroup,
    member_id: str,
    instance_id: str,
    epoch: int,
    owned: Owned,
    joins: bool,
    records: list[GroupRecord],
) -> tuple[ConsumerMember, str | None]:
    """The member, and the id it had if it has come back under a new one."""
    current = group.static_member(instance_id)
    if current is None:
        if not joins:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"Instance id {instance_id} is unknown.")
        logger.info("Group %s: instance %s joins as %s.", group.group_id, instance_id, member_id)
        return ConsumerMember(member_id), None
    if not joins:
        if current.member_id != member_id:
            raise fenced_instance(group, instance_id, current)
        _validate_epoch(current, epoch, owned)
        return current, None
    if current.classic is None and current.member_epoch != LEAVE_STATIC_EPOCH:
        raise KafkaError(
            ErrorCode.UNRELEASED_INSTANCE_ID,
            f"Instance id {instance_id} of group {group.group_id} is still held by member {current.member_id}.",
        )
    return take_over(group, current, member_id, records)


def take_over(
    group: ConsumerGroup, current: ConsumerMember, member_id: str, records: list[GroupRecord]
) -> tuple[ConsumerMember, str | None]:
    """A static member under a new id: same subscription, same partitions, from epoch 0."""
    if current.member_id == member_id:
        return replace(current, member_epoch=0, previous_member_epoch=0), None
    member = replace(current, member_id=member_id, member_epoch=0, previous_member_epoch=0)
    records += group.member_tombstones(current.member_id)
    records.append(member.subscription_record(group.group_id))
    records.append(group.target_record(member_id, group.target.get(current.member_id, NO_PARTITIONS)))
    records.append(member.assignment_record(group.group_id))
    return member, current.member_id


def fenced_instance(group: ConsumerGroup, instance_id: str, current: ConsumerMember) -> KafkaError:
    return KafkaError(
        ErrorCode.FENCED_INSTANCE_ID,
        f"Instance id {instance_id} of group {group.group_id} is held by member {current.member_id}.",
    )


def _validate_epoch(member: ConsumerMember, epoch: int, owned: Owned) -> None:
    if epoch in (0, member.member_epoch):
        return  # one that was fenced keeps its id, has nothing any more and starts again from 0
    if epoch == member.previous_member_epoch and epoch < member.member_epoch and _is_within(owned, member):
        return  # the answer that raised its epoch was lost
    raise KafkaError(
        ErrorCode.FENCED_MEMBER_EPOCH,
        f"Member {member.member_id} is in epoch {member.member_epoch}, not {epoch}; "
        "it must give up its partitions and rejoin.",
    )


def _is_within(owned: Owned, member: ConsumerMember) -> bool:
    return owned is not None and all(
        partitions <= member.assigned.get(topic_id, frozenset()) for topic_id, partitions in owned.items()
    )


def _updated(
    member: ConsumerMember, client: Client, request: ConsumerGroupHeartbeatRequest
) -> ConsumerMember:
    """Fields that a heartbeat leaves out have not changed."""
    names = request.subscribed_topic_names
    pattern = request.subscribed_topic_regex
    return replace(
        member,
        instance_id=request.instance_id or member.instance_id,
        rack_id=request.rack_id or member.rack_id,
        rebalance_timeout_ms=(
            member.rebalance_timeout_ms
            if request.rebalance_timeout_ms == -1
            else request.rebalance_timeout_ms
        ),
        server_assignor=request.server_assignor or member.server_assignor,
        subscribed_topic_names=member.subscribed_topic_names if names is None else frozenset(names),
        subscribed_topic_regex=member.subscribed_topic_regex if pattern is None else pattern,
        client_id=client.client_id,
        client_host=client.host,
        classic=None,
    )


# Leaving


def _leave(state: GroupState, request: ConsumerGroupHeartbeatRequest) -> HeartbeatWrite:
    group = state.groups.get(request.group_id)
    if not isinstance(group, ConsumerGroup):
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {request.group_id} is not a consumer group.")
    response = ConsumerGroupHeartbeatResponse(member_id=request.member_id, member_epoch=request.member_epoch)
    if request.instance_id is None:
        member = group.member(request.member_id)
    else:
        current = group.static_member(request.instance_id)
        if current is None:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"Instance id {request.instance_id} is unknown.")
        if current.member_id != request.member_id:
            raise fenced_instance(group, request.instance_id, current)
        member = current
        if request.member_epoch == LEAVE_STATIC_EPOCH:
            # Its partitions stay its own until it is back or its session ends.
            away = replace(member, member_epoch=LEAVE_STATIC_EPOCH, pending_revocation=NO_PARTITIONS)
            return Write([away.assignment_record(group.group_id)], response)
    logger.info("Group %s: member %s leaves.", group.group_id, member.member_id)
    result = sessions.remove_members(state, group, [member])
    return Write(result.records, response, apply=result.apply, finish=result.finish)
