"""DeleteShareGroupOffsets: delete the offsets of topics from a share group without members."""

from __future__ import annotations

from headrace.server.api.context import Context
from headrace.server.security.operations import GROUP, TOPIC, Operation
from headrace.wire.errors import ErrorCode, KafkaError
from headrace.wire.messages.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsResponse,
    DeleteShareGroupOffsetsResponseTopic,
)
from headrace.wire.schema import ZERO_UUID


async def handle(
    context: Context, request: DeleteShareGroupOffsetsRequest
) -> DeleteShareGroupOffsetsResponse:
    names = [topic.topic_name for topic in request.topics]
    try:
        context.engines.sharing.settings.require()
        context.require(Operation.DELETE, GROUP, request.group_id)
        context.engines.groups.share.group(request.group_id).require_empty()
        allowed, denied = context.split(Operation.READ, TOPIC, names, lambda name: name)
        image = context.engines.cluster.image
        ids = {name: image.topics[name].id for name in allowed if name in image.topics}
        removed = await context.engines.groups.share.remove_topics(request.group_id, list(ids.values()))
    except KafkaError as error:
        return DeleteShareGroupOffsetsResponse(error_code=error.code, error_message=error.message or None)
    responses = []
    for name in names:
        topic_id = ids.get(name, ZERO_UUID)
        failure = removed.get(topic_id)
        if name in denied:
            failure = KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "The client may not read the topic.")
        elif topic_id not in removed:
            failure = KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "The group has nothing of this topic.")
        response = DeleteShareGroupOffsetsResponseTopic(name, topic_id)
        if failure is not None:
            response.error_code, response.error_message = failure.code, failure.message or None
        responses.append(response)
    return DeleteShareGroupOffsetsResponse(responses=responses)
