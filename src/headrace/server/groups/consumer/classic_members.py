"""Members that speak the classic protocol in a consumer group, while it is upgraded or downgraded.

Each of their rebalances is theirs alone: a join is one step towards the target assignment, the sync after it
fetches what the step assigned, and a heartbeat tells them when there is another step to take.
"""

from __future__ import annotations

import logging
import uuid
from dataclasses import replace

from headrace.server.coordinator.write import Write
from headrace.server.groups.classic import join as classic_join
from headrace.server.groups.classic.join import FIRST_VERSION_WITH_KNOWN_ID
from headrace.server.groups.classic.member import RespondJoin, RespondSync, offered
from headrace.server.groups.client import Client
from headrace.server.groups.consumer import migration, sessions
from headrace.server.groups.consumer.group import ConsumerGroup
from headrace.server.groups.consumer.heartbeat import fenced_instance, take_over
from headrace.server.groups.consumer.member import ClassicFacet, ConsumerMember, MemberState
from headrace.server.groups.consumer.step import step, when_stored
from headrace.server.groups.consumer_protocol import (
    CONSUMER_PROTOCOL,
    decode_subscription,
    encode_assignment,
    version_of,
)
from headrace.server.groups.records import GroupRecord
from headrace.server.groups.state import GroupState
from headrace.wire.codec import WireError
from headrace.wire.errors import ErrorCode, KafkaError
from headrace.wire.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from headrace.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from headrace.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse
from headrace.wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberResponse
from headrace.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse

logger = logging.getLogger(__name__)

NOTHING: Write[GroupRecord, None] = Write((), None)


def join(
    state: GroupState, client: Client, group: ConsumerGroup, request: JoinGroupRequest, respond: RespondJoin
) -> Write[GroupRecord, None]:
    protocols = offered(request)
    if not group.supports_classic(request.protocol_type, [name for name, _ in protocols]):
        raise KafkaError(
            ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
            f"Group {group.group_id} shares no protocol with the joining member.",
        )
    member_id = request.member_id or str(uuid.uuid4())
    instance_id = request.group_instance_id
    full = len(group.members) >= state.config.consumer_max_size
    if full and member_id not in group.members and group.static_member(instance_id) is None:
        raise KafkaError(ErrorCode.GROUP_MAX_SIZE_REACHED, f"Group {group.group_id} is full.")
    if not request.member_id and instance_id is None and client.version >= FIRST_VERSION_WITH_KNOWN_ID:
        respond(JoinGroupResponse(error_code=ErrorCode.MEMBER_ID_REQUIRED, member_id=member_id))
        return NOTHING
    subscription = _subscription(protocols[0][1])
    records: list[GroupRecord] = []
    replaced: str | None = None
    current = group.static_member(instance_id)
    if instance_id is None or current is None:
        if instance_id is not None and request.member_id:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"Instance id {instance_id} is unknown.")
        before = group.members.get(member_id) or ConsumerMember(member_id)
    elif request.member_id:
        if current.member_id != request.member_id:
            raise fenced_instance(group, instance_id, current)
        before = current
    else:
        if group.all_classic_except(current.member_id) and state.config.downgrade:
            return _downgrade_and_join(state, client, group, current, request, respond)
        before, replaced = take_over(group, current, member_id, records)
    updated = replace(
        before,
        instance_id=instance_id or before.instance_id,
        rack_id=subscription.rack_id or before.rack_id,
        rebalance_timeout_ms=request.rebalance_timeout_ms,
        subscribed_topic_names=frozenset(subscription.topics),
        subscribed_topic_regex="",
        client_id=client.client_id,
        client_host=client.host,
        classic=ClassicFacet(request.session_timeout_ms, protocols),
    )
    topics = state.topics
    owned = {
        topic_id: frozenset(each.partitions)
        for each in subscription.owned_partitions
        if (topic_id := topics.topic_id(each.topic)) is not None and each.partitions
    }
    member = step(state, group, before, updated, owned, replaced, client.may_describe, records)
    response = JoinGroupResponse(
        generation_id=member.member_epoch,
        protocol_type=CONSUMER_PROTOCOL,
        protocol_name=protocols[0][0],
        member_id=member.member_id,
    )

    mark_checked = when_stored(state, group)

    def finish(error: KafkaError | None) -> None:
        if error is not None:
            return
        mark_checked()
        sessions.joined(state, group.group_id, member.member_id)
        sessions.expect_heartbeat(state, group.group_id, member)
        sessions.expect_sync(state, group.group_id, member)
        respond(response)

    return Write(records, None, finish=finish)


def _downgrade_and_join(
    state: GroupState,
    client: Client,
    group: ConsumerGroup,
    leaving: ConsumerMember,
    request: JoinGroupRequest,
    respond: RespondJoin,
) -> Write[GroupRecord, None]:
    """The last member of the consumer protocol is back as a classic one: so is the group."""
    classic = migration.to_classic(state, group, {leaving.member_id})

    def apply() -> None:
        migration.swap_in(state, group, classic)
        classic_join.join(state, client, request, respond)

    return Write([*group.tombstones(), migration.stored(classic)], None, apply=apply)


def _subscription(metadata: bytes) -> ConsumerProtocolSubscription:
    try:
        return decode_subscription(metadata)
    except WireError as error:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, f"The member's subscription cannot be read: {error}."
        ) from None


def sync(
    state: GroupState, group: ConsumerGroup, request: SyncGroupRequest, respond: RespondSync
) -> Write[GroupRecord, None]:
    member, facet = _classic_member(group, request.member_id, request.group_instance_id)
    _check_generation(member, request.generation_id)
    protocol, metadata = facet.protocols[0]
    if request.protocol_type not in (None, CONSUMER_PROTOCOL) or request.protocol_name not in (
        None,
        protocol,
    ):
        raise KafkaError(
            ErrorCode.INCONSISTENT_GROUP_PROTOCOL, f"Member {member.member_id} joined with {protocol}."
        )
    if group.epoch > member.member_epoch and member.state is not MemberState.UNREVOKED_PARTITIONS:
        sessions.expect_join(state, group.group_id, member)
        raise KafkaError(
            ErrorCode.REBALANCE_IN_PROGRESS, f"Group {group.group_id} is rebalancing; join again."
        )
    assignment = migration.to_consumer_protocol(member.assigned, state.topics)
    response = SyncGroupResponse(
        protocol_type=CONSUMER_PROTOCOL,
        protocol_name=protocol,
        assignment=encode_assignment(assignment, version_of(metadata)),
    )

    def finish(error: KafkaError | None) -> None:
        if error is None:
            sessions.synced(state, group.group_id, member.member_id)
            sessions.expect_heartbeat(state, group.group_id, member)
            respond(response)

    return Write((), None, finish=finish)


def heartbeat(state: GroupState, group: ConsumerGroup, request: HeartbeatRequest) -> HeartbeatResponse:
    member, _ = _classic_member(group, request.member_id, request.group_instance_id)
    _check_generation(member, request.generation_id)
    sessions.expect_heartbeat(state, group.group_id, member)
    another_step = (
        member.member_epoch < group.epoch
        or member.state is MemberState.UNREVOKED_PARTITIONS
        or (member.state is MemberState.UNRELEASED_PARTITIONS and not group.waits_for_partitions(member))
    )
    if not another_step:
        return HeartbeatResponse()
    sessions.expect_join(state, group.group_id, member)
    return HeartbeatResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS)


def leave(
    state: GroupState, group: ConsumerGroup, request: LeaveGroupRequest
) -> Write[GroupRecord, LeaveGroupResponse]:
    """Members of either protocol: an administrator removes both with the same request."""
    responses = []
    leaving: list[ConsumerMember] = []
    for each in request.members:
        error = ErrorCode.NONE
        try:
            if each.group_instance_id is not None and not each.member_id:
                current = group.static_member(each.group_instance_id)
                member_id = "" if current is None else current.member_id
            else:
                member_id = each.member_id
            leaving.append(_member(group, member_id, each.group_instance_id))
        except KafkaError as refused:
            error = refused.code
        responses.append(MemberResponse(each.member_id, each.group_instance_id, error))
    result = sessions.remove_members(state, group, leaving) if leaving else NOTHING
    response = LeaveGroupResponse(members=responses)
    return Write(result.records, response, apply=result.apply, finish=result.finish)


def _member(group: ConsumerGroup, member_id: str, instance_id: str | None) -> ConsumerMember:
    if instance_id is None:
        return group.member(member_id)
    current = group.static_member(instance_id)
    if current is None:
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"Instance id {instance_id} is unknown.")
    if current.member_id != member_id:
        raise fenced_instance(group, instance_id, current)
    return current


def _classic_member(
    group: ConsumerGroup, member_id: str, instance_id: str | None
) -> tuple[ConsumerMember, ClassicFacet]:
    member = _member(group, member_id, instance_id)
    if member.classic is None:
        raise KafkaError(
            ErrorCode.UNKNOWN_MEMBER_ID, f"Member {member_id} does not speak the classic protocol."
        )
    return member, member.classic


def _check_generation(member: ConsumerMember, generation: int) -> None:
    if member.member_epoch != generation:
        raise KafkaError(
            ErrorCode.ILLEGAL_GENERATION,
            f"Member {member.member_id} is in epoch {member.member_epoch}, not {generation}; join again.",
        )
