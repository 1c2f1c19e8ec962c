"""ShareGroupHeartbeat (KIP-932): joining, staying in and leaving a share group, in one request."""

from __future__ import annotations

from headrace.server.api.context import Context
from headrace.server.api.group_client import client_of
from headrace.server.security.operations import GROUP, TOPIC, Operation
from headrace.wire.errors import KafkaError
from headrace.wire.messages.share_group_heartbeat import (
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)


async def handle(context: Context, request: ShareGroupHeartbeatRequest) -> ShareGroupHeartbeatResponse:
    try:
        context.engines.sharing.settings.require()
        context.require(Operation.READ, GROUP, request.group_id)
        for topic in request.subscribed_topic_names or ():
            context.require(Operation.DESCRIBE, TOPIC, topic)
        return await context.engines.groups.share.heartbeat(client_of(context), request)
    except KafkaError as error:
        return ShareGroupHeartbeatResponse(error_code=error.code, error_message=error.message or None)
