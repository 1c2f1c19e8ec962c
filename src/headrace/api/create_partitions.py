"""CreatePartitions: more partitions for a topic, never fewer; keys may move.

- The controller decides; another broker passes the request on.
- Versions differ in nothing but their encoding.
"""

from __future__ import annotations

from headrace.api.context import Context
from headrace.api.forwarding import to_controller
from headrace.wire.errors import KafkaError
from headrace.wire.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopicResult,
)


@to_controller
async def handle(context: Context, request: CreatePartitionsRequest) -> CreatePartitionsResponse:
    try:
        results = await context.services.cluster.admin.create_partitions(
            request.topics, request.validate_only
        )
    except KafkaError as error:
        results = [
            CreatePartitionsTopicResult(topic.name, error.code, error.message or None)
            for topic in request.topics
        ]
    return CreatePartitionsResponse(results=results)
