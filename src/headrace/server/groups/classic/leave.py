"""LeaveGroup to a classic group: one member, several, or static ones removed by an administrator."""

from __future__ import annotations

from headrace.server.coordinator.write import Write
from headrace.server.groups.classic.group import ClassicGroup, ClassicState
from headrace.server.groups.classic.rebalance import (
    NOTHING,
    complete_join_if_ready,
    forget_member,
    rebalance,
    session_timer,
)
from headrace.server.groups.records import GroupRecord
from headrace.server.groups.state import GroupState
from headrace.wire.errors import ErrorCode, KafkaError
from headrace.wire.messages.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
    MemberResponse,
)


def leave(
    state: GroupState, group: ClassicGroup, request: LeaveGroupRequest
) -> Write[GroupRecord, LeaveGroupResponse]:
    members = [
        MemberResponse(leaving.member_id, leaving.group_instance_id, _leave_one(state, group, leaving))
        for leaving in request.members
    ]
    result = NOTHING
    gone = [member.member_id or member.group_instance_id or "" for member in members if not member.error_code]
    if gone:
        if group.state in (ClassicState.STABLE, ClassicState.COMPLETING_REBALANCE):
            result = rebalance(state, group, f"{', '.join(gone)} left")
        else:
            result = complete_join_if_ready(state, group)
    return Write(
        result.records, LeaveGroupResponse(members=members), apply=result.apply, finish=result.finish
    )


def _leave_one(state: GroupState, group: ClassicGroup, leaving: MemberIdentity) -> ErrorCode:
    member_id = leaving.member_id
    if not member_id and leaving.group_instance_id is not None:
        # An administrator names the instance and does not know its id.
        member_id = group.static_members.get(leaving.group_instance_id, "")
    elif member_id in group.pending_joins:
        group.remove(member_id)
        state.timers.cancel(session_timer(group.group_id, member_id))
        return ErrorCode.NONE
    try:
        member = group.validate_member(member_id, leaving.group_instance_id)
    except KafkaError as error:
        return error.code
    forget_member(state, group, member)
    return ErrorCode.NONE
