"""JoinGroup: enter a group, or enter its next generation.

- A dynamic member without an id is given one (MEMBER_ID_REQUIRED) and joins with it.
- The answer waits until the group's members have joined or their time is up; the leader's holds all members.
- A static member that comes back to a stable group gets its place back at once.

- 1: rebalance timeout of its own  - 2: throttle time  - 4: MEMBER_ID_REQUIRED  - 5: instance ids  - 6: compact
- 7: protocol type in the answer  - 8: reason  - 9: skip_assignment for a static leader that came back
"""

from __future__ import annotations

from headrace.server.api.context import Context
from headrace.server.api.group_client import client_of
from headrace.server.coordinator.promise import Promise
from headrace.server.security.operations import GROUP, Operation
from headrace.wire.errors import KafkaError
from headrace.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse


def handle(context: Context, request: JoinGroupRequest) -> JoinGroupResponse | Promise[JoinGroupResponse]:
    if context.version == 0:
        request.rebalance_timeout_ms = request.session_timeout_ms
    try:
        context.require(Operation.READ, GROUP, request.group_id)
        return context.engines.groups.join(client_of(context), request)
    except KafkaError as error:
        return JoinGroupResponse(error_code=error.code, member_id=request.member_id)
