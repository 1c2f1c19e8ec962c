"""Heartbeat to a classic group: extends the session, and tells the member to rejoin during a rebalance."""

from __future__ import annotations

from headrace.server.groups.classic.group import ClassicGroup, ClassicState
from headrace.server.groups.classic.rebalance import expect_heartbeat
from headrace.server.groups.state import GroupState
from headrace.wire.errors import ErrorCode, KafkaError
from headrace.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse


def heartbeat(state: GroupState, group: ClassicGroup, request: HeartbeatRequest) -> HeartbeatResponse:
    member = group.validate_member(request.member_id, request.group_instance_id)
    if request.generation_id != group.generation:
        raise KafkaError(
            ErrorCode.ILLEGAL_GENERATION,
            f"Group {group.group_id} is in generation {group.generation}, not {request.generation_id}.",
        )
    expect_heartbeat(state, group, member)
    if group.state is ClassicState.PREPARING_REBALANCE:
        return HeartbeatResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS)
    return HeartbeatResponse()
