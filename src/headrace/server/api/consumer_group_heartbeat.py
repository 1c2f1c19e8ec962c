"""ConsumerGroupHeartbeat (KIP-848): join, stay in and leave a group whose partitions the broker assigns.

- Epoch 0 joins, -1 leaves, -2 is a static member that means to be back; fields left out have not changed.
- The answer carries the member's epoch and, when it changed or the member sent everything, its partitions.
- A partition is given to a member only after the one that had it has stopped reporting it.

- 1: subscribed_topic_regex (RE2); the member makes its own id
"""

from __future__ import annotations

from headrace.server.api.context import Context
from headrace.server.api.group_client import client_of, require_protocol
from headrace.server.security.operations import GROUP, TOPIC, Operation
from headrace.wire.errors import KafkaError
from headrace.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)


async def handle(context: Context, request: ConsumerGroupHeartbeatRequest) -> ConsumerGroupHeartbeatResponse:
    try:
        require_protocol(context)
        context.require(Operation.READ, GROUP, request.group_id)
        for topic in request.subscribed_topic_names or ():
            context.require(Operation.DESCRIBE, TOPIC, topic)
        return await context.engines.groups.consumer_heartbeat(client_of(context), request)
    except KafkaError as error:
        return ConsumerGroupHeartbeatResponse(error_code=error.code, error_message=error.message or None)
