"""JoinGroup to a classic group: ids, static members, and whether the join moves the group."""

from __future__ import annotations

import logging
import uuid

from headrace.server.coordinator.write import Write, already_applied
from headrace.server.groups.classic.group import ClassicGroup, ClassicState
from headrace.server.groups.classic.member import ClassicMember, Protocols, RespondJoin, offered
from headrace.server.groups.classic.rebalance import (
    NEW_MEMBER_JOIN_TIMEOUT_MS,
    NOTHING,
    complete_join_if_ready,
    expect_heartbeat,
    expect_rejoin,
    prepare,
    rebalance,
    session_timer,
)
from headrace.server.groups.client import Client
from headrace.server.groups.records import GroupRecord
from headrace.server.groups.state import GroupState
from headrace.wire.errors import ErrorCode, KafkaError
from headrace.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse

logger = logging.getLogger(__name__)

FIRST_VERSION_WITH_KNOWN_ID = 4
"""From here on a new member is first given its id and joins with it, so that a lost reply leaves no ghost."""
FIRST_VERSION_WITH_SKIP_ASSIGNMENT = 9


def join(
    state: GroupState, client: Client, request: JoinGroupRequest, respond: RespondJoin
) -> Write[GroupRecord, None]:
    """Join a group that is classic, or new, or an empty group of the other protocol."""
    before = state.groups.get(request.group_id)
    if isinstance(before, ClassicGroup):
        return _join_group(state, client, before, request, respond)
    if request.member_id:
        respond(_failure(request.member_id, ErrorCode.UNKNOWN_MEMBER_ID))
        return NOTHING
    group = state.groups[request.group_id] = ClassicGroup(request.group_id, state.clock.now_ms())
    empty = group.to_record({})
    result = _join_group(state, client, group, request, respond)
    if before is None:
        return result
    # Without a record of the new group a restart would find the old one's offsets without a group.
    records = [*before.tombstones(), *(result.records or [empty])]
    return Write(records, None, apply=already_applied, finish=result.finish)


def _join_group(
    state: GroupState, client: Client, group: ClassicGroup, request: JoinGroupRequest, respond: RespondJoin
) -> Write[GroupRecord, None]:
    protocols = offered(request)
    if not _has_room(state, group, request.member_id):
        group.remove(request.member_id)
        state.timers.cancel(session_timer(group.group_id, request.member_id))
        respond(_failure("", ErrorCode.GROUP_MAX_SIZE_REACHED))
        return NOTHING
    if not group.supports(request.protocol_type, protocols):
        respond(_failure(request.member_id, ErrorCode.INCONSISTENT_GROUP_PROTOCOL))
        return NOTHING
    if request.member_id:
        return _join_known(state, client, group, request, protocols, respond)
    return _join_new(state, client, group, request, protocols, respond)


def _failure(member_id: str, error: ErrorCode) -> JoinGroupResponse:
    return JoinGroupResponse(error_code=error, member_id=member_id)


def _has_room(state: GroupState, group: ClassicGroup, member_id: str) -> bool:
    limit = state.config.max_size
    member = group.members.get(member_id)
    match group.state:
        case ClassicState.EMPTY:
            return True
        case ClassicState.PREPARING_REBALANCE:
            # Members that are here count, so that a lowered limit keeps out those that come last.
            return (member is not None and member.awaiting_join is not None) or group.joins_parked < limit
        case _:
            return member is not None or len(group.members) < limit


def _join_new(
    state: GroupState,
    client: Client,
    group: ClassicGroup,
    request: JoinGroupRequest,
    protocols: Protocols,
    respond: RespondJoin,
) -> Write[GroupRecord, None]:
    instance_id = request.group_instance_id
    new_id = f"{client.client_id if instance_id is None else instance_id}-{uuid.uuid4()}"
    if instance_id is not None:
        old_id = group.static_members.get(instance_id)
        if old_id is not None:
            return _replace_static(state, client, group, request, protocols, old_id, new_id, respond)
    elif client.version >= FIRST_VERSION_WITH_KNOWN_ID:
        group.pending_joins.add(new_id)
        expect_rejoin(state, group, new_id, request.session_timeout_ms)
        respond(_failure(new_id, ErrorCode.MEMBER_ID_REQUIRED))
        return NOTHING
    return _add(state, client, group, request, protocols, new_id, respond)


def _join_known(
    state: GroupState,
    client: Client,
    group: ClassicGroup,
    request: JoinGroupRequest,
    protocols: Protocols,
    respond: RespondJoin,
) -> Write[GroupRecord, None]:
    member_id = request.member_id
    if member_id in group.pending_joins:
        return _add(state, client, group, request, protocols, member_id, respond)
    try:
        member = group.validate_member(member_id, request.group_instance_id)
    except KafkaError as error:
        respond(JoinGroupResponse(error_code=error.code, member_id=member_id, protocol_name=None))
        return NOTHING
    unchanged = member.protocols == protocols
    match group.state:
        case ClassicState.PREPARING_REBALANCE:
            moves = True
        case ClassicState.COMPLETING_REBALANCE:
            moves = not unchanged  # it may have missed its answer: send the same one again
        case ClassicState.STABLE:
            # A leader that joins again has seen something, new partitions for one, that changes its assignment.
            moves = not unchanged or member_id == group.leader
        case _:
            respond(_failure(member_id, ErrorCode.UNKNOWN_MEMBER_ID))
            return NOTHING
    if not moves:
        respond(group.join_response(member_id))
        return NOTHING
    group.update(member, protocols, request.rebalance_timeout_ms, request.session_timeout_ms, respond)
    return rebalance(state, group, f"member {member_id} joined again ({request.reason or 'no reason given'})")


def _add(
    state: GroupState,
    client: Client,
    group: ClassicGroup,
    request: JoinGroupRequest,
    protocols: Protocols,
    member_id: str,
    respond: RespondJoin,
) -> Write[GroupRecord, None]:
    member = ClassicMember(
        member_id,
        request.group_instance_id,
        client.client_id,
        client.host,
        request.rebalance_timeout_ms,
        request.session_timeout_ms,
        request.protocol_type,
        protocols,
        is_new=True,
    )
    if group.state is ClassicState.PREPARING_REBALANCE and group.previous_state is ClassicState.EMPTY:
        group.new_member_added = True
    group.add(member, respond)
    expect_heartbeat(state, group, member, NEW_MEMBER_JOIN_TIMEOUT_MS)
    return rebalance(state, group, f"member {member_id} joined ({request.reason or 'no reason given'})")


def _replace_static(
    state: GroupState,
    client: Client,
    group: ClassicGroup,
    request: JoinGroupRequest,
    protocols: Protocols,
    old_id: str,
    new_id: str,
    respond: RespondJoin,
) -> Write[GroupRecord, None]:
    """A static member is back: in a stable group it gets its old assignment and nobody else notices."""
    assert request.group_instance_id is not None
    instance_id = request.group_instance_id
    leader_before = group.leader
    state.timers.cancel(session_timer(group.group_id, old_id))
    before = group.members[old_id]
    member = group.replace_static(instance_id, old_id, new_id)
    member.client_id, member.client_host = client.client_id, client.host
    expect_heartbeat(state, group, member)
    group.update(member, protocols, request.rebalance_timeout_ms, request.session_timeout_ms, respond)
    logger.info("Group %s: instance %s is back as %s.", group.group_id, instance_id, new_id)
    if group.state is ClassicState.COMPLETING_REBALANCE:
        # The leader is assigning to the old id, so the new one would get nothing.
        return prepare(state, group, f"static member {instance_id} came back as {new_id}")
    if group.state is not ClassicState.STABLE:
        return complete_join_if_ready(state, group)
    if group.select_protocol() != group.protocol:
        return rebalance(state, group, f"static member {instance_id} came back with other protocols")

    def finish(error: KafkaError | None) -> None:
        if error is not None:
            if group.members.get(new_id) is member:
                group.update(
                    member, before.protocols, before.rebalance_timeout_ms, before.session_timeout_ms, None
                )
                restored = group.replace_static(instance_id, new_id, old_id)
                expect_heartbeat(state, group, restored)
            respond(_failure("", error.code))
            return
        response = group.join_response(new_id)
        if client.version >= FIRST_VERSION_WITH_SKIP_ASSIGNMENT:
            response.skip_assignment = new_id == group.leader
        else:
            # Naming the old leader keeps a returning leader from assigning again.
            response.leader, response.members = leader_before or "", []
        group.answer_join(member, response)

    assignments = {each.member_id: each.assignment for each in group.members.values()}
    return Write([group.to_record(assignments)], None, apply=already_applied, finish=finish)
