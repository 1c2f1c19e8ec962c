"""CreatePartitions: more partitions for a topic, never fewer; keys may move.

- The controller decides; another broker passes the request on.
- 3: THROTTLING_QUOTA_EXCEEDED; otherwise versions differ in nothing but their encoding.
"""

from __future__ import annotations

from headrace.server.api.context import Context
from headrace.server.api.forwarding import to_controller
from headrace.server.api.mutations import QUOTA_EXCEEDED, MutationCount, added
from headrace.server.cluster.decisions import create_partitions
from headrace.server.security.operations import NO_PERMISSION, TOPIC, Operation
from headrace.wire.errors import ErrorCode, KafkaError
from headrace.wire.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopicResult,
)


async def handle(context: Context, request: CreatePartitionsRequest) -> CreatePartitionsResponse:
    request.topics, denied = context.split(Operation.ALTER, TOPIC, request.topics, lambda topic: topic.name)
    response = CreatePartitionsResponse()
    if request.topics or not denied:
        response = await _create(context, request)
    response.results += [
        CreatePartitionsTopicResult(topic.name, ErrorCode.TOPIC_AUTHORIZATION_FAILED, NO_PERMISSION)
        for topic in denied
    ]
    return response


@to_controller
async def _create(context: Context, request: CreatePartitionsRequest) -> CreatePartitionsResponse:
    count = MutationCount(context, strict_since=3)
    topics, beyond = count.split(request.topics, added)
    results: list[CreatePartitionsTopicResult] = []
    if topics or not beyond:
        try:
            results = await context.engines.cluster.decide(create_partitions(topics), request.validate_only)
        except KafkaError as error:
            results = [
                CreatePartitionsTopicResult(topic.name, error.code, error.message or None) for topic in topics
            ]
    results += [
        CreatePartitionsTopicResult(topic.name, ErrorCode.THROTTLING_QUOTA_EXCEEDED, QUOTA_EXCEEDED)
        for topic in beyond
    ]
    return CreatePartitionsResponse(count.throttle_time_ms(), results)
