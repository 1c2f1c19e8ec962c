"""Heartbeat: a member of the classic protocol is alive.

- Keeps the session; REBALANCE_IN_PROGRESS tells the member to join again.
- While the group is being loaded the answer is success: the session starts when loading ends.

- 1: throttle time  - 3: instance ids  - 4: compact
"""

from __future__ import annotations

from headrace.server.api.context import Context
from headrace.server.api.group_client import client_of
from headrace.server.security.operations import GROUP, Operation
from headrace.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse


def handle(context: Context, request: HeartbeatRequest) -> HeartbeatResponse:
    context.require(Operation.READ, GROUP, request.group_id)
    return context.engines.groups.heartbeat(client_of(context), request)
