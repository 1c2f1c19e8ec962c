"""SyncGroup to a classic group: the leader sends the assignment, and every member gets its part."""

from __future__ import annotations

from headrace.server.coordinator.write import Write
from headrace.server.groups.classic.group import ClassicGroup, ClassicState
from headrace.server.groups.classic.member import RespondSync
from headrace.server.groups.classic.rebalance import NOTHING, store_assignments, sync_response, synced
from headrace.server.groups.records import GroupRecord
from headrace.server.groups.state import GroupState
from headrace.wire.errors import ErrorCode, KafkaError
from headrace.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse


def sync(
    state: GroupState, group: ClassicGroup, request: SyncGroupRequest, respond: RespondSync
) -> Write[GroupRecord, None]:
    try:
        member = group.validate_member(request.member_id, request.group_instance_id)
    except KafkaError as error:
        respond(SyncGroupResponse(error_code=error.code))
        return NOTHING
    refusal = _refusal(group, request)
    if refusal is not None:
        respond(SyncGroupResponse(error_code=refusal))
        return NOTHING
    synced(state, group, request.member_id)
    if group.state is ClassicState.STABLE:
        respond(sync_response(group, member))
        return NOTHING
    member.awaiting_sync = respond
    if request.member_id != group.leader:
        return NOTHING
    assigned = {each.member_id: each.assignment for each in request.assignments}
    return store_assignments(
        state, group, {member_id: assigned.get(member_id, b"") for member_id in group.members}
    )


def _refusal(group: ClassicGroup, request: SyncGroupRequest) -> ErrorCode | None:
    if request.generation_id != group.generation:
        return ErrorCode.ILLEGAL_GENERATION
    if request.protocol_type not in (None, group.protocol_type):
        return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    if request.protocol_name not in (None, group.protocol):
        return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    if group.state is ClassicState.PREPARING_REBALANCE:
        return ErrorCode.REBALANCE_IN_PROGRESS
    return ErrorCode.UNKNOWN_MEMBER_ID if group.is_empty else None
