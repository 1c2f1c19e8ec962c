"""ShareGroupHeartbeat: joining, staying and leaving in one request, and the sessions of members."""

from __future__ import annotations

import logging
import uuid
from dataclasses import replace

from headrace.server.coordinator.write import Write
from headrace.server.groups.assignors.simple import Subscriber, assign_simple
from headrace.server.groups.client import Client
from headrace.server.groups.records import GroupRecord
from headrace.server.groups.share.group import LEAVE_EPOCH, NONE, Partitions, ShareGroup, ShareMember, without
from headrace.server.groups.state import GroupState
from headrace.server.groups.topics import metadata_hash
from headrace.wire.errors import ErrorCode, KafkaError
from headrace.wire.messages.share_group_heartbeat import (
    Assignment,
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
    TopicPartitions,
)

logger = logging.getLogger(__name__)

HeartbeatWrite = Write[GroupRecord, ShareGroupHeartbeatResponse]

RETRY_MS = 500
"""When putting a member out cannot be stored, it is tried again: nobody else would notice that the member is dead."""


def heartbeat(state: GroupState, client: Client, request: ShareGroupHeartbeatRequest) -> HeartbeatWrite:
    _validate(request)
    if request.member_epoch == LEAVE_EPOCH:
        return _leave(state, request)
    records: list[GroupRecord] = []
    joins = request.member_epoch == 0
    group = _find_group(state, request.group_id, joins)
    before = _member(state, group, request.member_id, request.member_epoch)
    member = replace(
        before,
        rack_id=request.rack_id or before.rack_id,
        topics=(
            before.topics
            if request.subscribed_topic_names is None
            else frozenset(request.subscribed_topic_names)
        ),
        client_id=client.client_id,
        client_host=client.host,
    )
    if member != before or before.member_id not in group.members:
        records.append(member.subscription_record(group.group_id))
    epoch = group.epoch
    if epoch == 0 or member.topics != before.topics or group.checked_version != state.topics.version:
        subscribed = group.subscribed | member.topics
        new_hash = metadata_hash(state.topics, subscribed)
        if epoch == 0 or member.topics != before.topics or new_hash != group.metadata_hash:
            epoch += 1
            records.append(group.epoch_record(epoch, new_hash))
    target = group.target.get(member.member_id, NONE)
    if epoch > group.assignment_epoch:
        target = _new_target(state, group, member, epoch, records)
    updated = member.at_epoch(epoch, target)
    if updated != member or before.member_id not in group.members:
        records.append(updated.assignment_record(group.group_id))
    expect_heartbeat(state, group.group_id, member.member_id)
    response = ShareGroupHeartbeatResponse(
        member_id=member.member_id,
        member_epoch=updated.member_epoch,
        heartbeat_interval_ms=state.share_heartbeat_interval_ms(group.group_id),
    )
    if joins or updated.assigned != before.assigned or request.subscribed_topic_names is not None:
        response.assignment = Assignment(
            [TopicPartitions(topic, sorted(indexes)) for topic, indexes in updated.assigned.items()]
        )
    seen = state.topics.version

    def finish(error: KafkaError | None) -> None:
        stored = state.share_groups.get(group.group_id)
        if error is None and stored is not None:
            stored.checked_version = seen

    return Write(records, response, finish=finish)


def missing_state(state: GroupState, group: ShareGroup) -> Partitions:
    """Partitions of subscribed topics for which the share coordinator has no state yet."""
    wanted: dict[uuid.UUID, frozenset[int]] = {}
    for name in group.subscribed:
        topic_id = state.topics.topic_id(name)
        if topic_id is not None:
            wanted[topic_id] = frozenset(range(state.topics.partition_count(name)))
    return without(wanted, group.states.initialized)


def _validate(request: ShareGroupHeartbeatRequest) -> None:
    def invalid(message: str) -> KafkaError:
        return KafkaError(ErrorCode.INVALID_REQUEST, message)

    if not request.group_id:
        raise invalid("GroupId can't be empty.")
    if not request.member_id:
        raise invalid("MemberId can't be empty.")
    if request.member_epoch < LEAVE_EPOCH:
        raise invalid(f"MemberEpoch {request.member_epoch} is invalid.")
    if request.rack_id == "":
        raise invalid("RackId can't be empty; leave it out instead.")
    if request.member_epoch == 0 and not request.subscribed_topic_names:
        raise invalid("SubscribedTopicNames must be set in first request.")


def _find_group(state: GroupState, group_id: str, create: bool) -> ShareGroup:
    group = state.share_groups.get(group_id)
    if group is not None:
        return group
    if group_id in state.groups:
        # As in Kafka, not even an empty one gives way: it may have offsets that its consumers come back for.
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a share group.")
    if not create:
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} does not exist.")
    return ShareGroup(group_id)


def _member(state: GroupState, group: ShareGroup, member_id: str, epoch: int) -> ShareMember:
    member = group.members.get(member_id)
    if member is None:
        if epoch != 0:
            return group.member(member_id)
        if len(group.members) >= state.config.share_max_size:
            raise KafkaError(
                ErrorCode.GROUP_MAX_SIZE_REACHED,
                f"Group {group.group_id} has its maximum of {state.config.share_max_size} members.",
            )
        logger.info("Share group %s: member %s joins.", group.group_id, member_id)
        return ShareMember(member_id)
    lost_answer = epoch == member.previous_member_epoch and epoch < member.member_epoch
    if epoch not in (0, member.member_epoch) and not lost_answer:
        raise KafkaError(
            ErrorCode.FENCED_MEMBER_EPOCH,
            f"Member {member_id} is in epoch {member.member_epoch}, not {epoch}; it must rejoin.",
        )
    return member


def _new_target(
    state: GroupState, group: ShareGroup, member: ShareMember, epoch: int, records: list[GroupRecord]
) -> Partitions:
    """Only partitions whose state is there are given out: a leader could not serve others."""
    topics, ready = state.topics, group.states.initialized
    members = {**group.members, member.member_id: member}
    subscribers = {
        name: Subscriber(
            frozenset(topic_id for topic in each.topics if (topic_id := topics.topic_id(topic)) is not None),
            group.target.get(name, NONE),
        )
        for name, each in members.items()
    }
    existing = {topic_id: indexes for topic_id, indexes in ready.items() if topics.topic_name(topic_id)}
    target = assign_simple(subscribers, existing)
    records += [
        group.target_record(name, partitions)
        for name, partitions in target.items()
        if group.target.get(name) != partitions
    ]
    records.append(group.target_epoch_record(epoch))
    return target[member.member_id]


# Leaving


def _leave(state: GroupState, request: ShareGroupHeartbeatRequest) -> HeartbeatWrite:
    group = state.share_group(request.group_id)
    member = group.member(request.member_id)
    logger.info("Share group %s: member %s leaves.", group.group_id, member.member_id)
    result = _remove(state, group, member.member_id)
    response = ShareGroupHeartbeatResponse(member_id=member.member_id, member_epoch=LEAVE_EPOCH)
    return Write(result.records, response, apply=result.apply)


def _remove(state: GroupState, group: ShareGroup, member_id: str) -> Write[GroupRecord, None]:
    subscribed = frozenset().union(
        *(member.topics for name, member in group.members.items() if name != member_id)
    )
    records = [
        *group.member_tombstones(member_id),
        group.epoch_record(group.epoch + 1, metadata_hash(state.topics, subscribed)),
    ]

    def apply() -> None:
        state.replay_groups(records)
        state.timers.cancel(_session(group.group_id, member_id))

    return Write(records, None, apply=apply)


def expect_heartbeat(state: GroupState, group_id: str, member_id: str) -> None:
    """Start the member's session again."""
    name = _session(group_id, member_id)

    def fence() -> Write[GroupRecord, None]:
        group = state.share_groups.get(group_id)
        if group is None or member_id not in group.members:
            return Write((), None)
        logger.info("Share group %s: member %s is out because its session expired.", group_id, member_id)
        state.timers.set(name, RETRY_MS, fence)  # cancelled when it is stored
        return _remove(state, group, member_id)

    state.timers.set(name, state.share_session_timeout_ms(group_id), fence)


def _session(group_id: str, member_id: str) -> tuple[str, str, str]:
    return ("share-session", group_id, member_id)
