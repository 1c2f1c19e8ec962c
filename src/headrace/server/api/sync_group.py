"""SyncGroup: the leader hands in the assignment of a generation, every member gets its own.

- Members wait until the leader's assignment is stored. In a stable group the answer is immediate.
- REBALANCE_IN_PROGRESS when the next rebalance has begun meanwhile: join again.

- 1: throttle time  - 3: instance ids  - 4: compact  - 5: protocol type and name: required, checked and answered
"""

from __future__ import annotations

from headrace.server.api.context import Context
from headrace.server.api.group_client import client_of
from headrace.server.coordinator.promise import Promise
from headrace.server.security.operations import GROUP, Operation
from headrace.wire.errors import ErrorCode
from headrace.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse

FIRST_VERSION_WITH_PROTOCOL = 5


def handle(context: Context, request: SyncGroupRequest) -> SyncGroupResponse | Promise[SyncGroupResponse]:
    context.require(Operation.READ, GROUP, request.group_id)
    named = request.protocol_type is not None and request.protocol_name is not None
    if context.version >= FIRST_VERSION_WITH_PROTOCOL and not named:
        return SyncGroupResponse(error_code=ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    return context.engines.groups.sync(client_of(context), request)
