"""LeaveGroup: members leave, and the rest rebalance at once.

- Each member gets its own error code. An administrator removes a static member by its instance id alone.

- 1: throttle time  - 3: many members, instance ids  - 4: compact  - 5: reason
"""

from __future__ import annotations

from headrace.server.api.context import Context
from headrace.server.api.group_client import client_of
from headrace.server.security.operations import GROUP, Operation
from headrace.wire.errors import ErrorCode, KafkaError
from headrace.wire.messages.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
    MemberResponse,
)

FIRST_VERSION_WITH_MANY_MEMBERS = 3


async def handle(context: Context, request: LeaveGroupRequest) -> LeaveGroupResponse:
    if context.version < FIRST_VERSION_WITH_MANY_MEMBERS:
        request.members = [MemberIdentity(request.member_id)]
    context.require(Operation.READ, GROUP, request.group_id)
    try:
        response = await context.engines.groups.leave(client_of(context), request)
    except KafkaError as error:
        if error.code is not ErrorCode.UNKNOWN_MEMBER_ID:
            raise
        response = LeaveGroupResponse(
            members=[
                MemberResponse(each.member_id, each.group_instance_id, error.code) for each in request.members
            ]
        )
    if context.version < FIRST_VERSION_WITH_MANY_MEMBERS and response.members:
        response.error_code = response.members[0].error_code
    return response
