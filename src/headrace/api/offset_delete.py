"""OffsetDelete: forget committed offsets of partitions that nobody in the group subscribes to.

- GROUP_SUBSCRIBED_TO_TOPIC for topics in use; NON_EMPTY_GROUP for a live group whose members are not consumers.
- A partition without a commit is answered with success.
"""

from __future__ import annotations

from headrace.api.context import Context
from headrace.api.operations import GROUP, TOPIC, Operation
from headrace.wire.errors import ErrorCode
from headrace.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)


async def handle(context: Context, request: OffsetDeleteRequest) -> OffsetDeleteResponse:
    context.require(Operation.DELETE, GROUP, request.group_id)
    request.topics, denied = context.split(Operation.READ, TOPIC, request.topics, lambda topic: topic.name)
    response = await context.services.groups.delete_offsets(request)
    response.topics += [_denied(topic) for topic in denied]
    return response


def _denied(topic: OffsetDeleteRequestTopic) -> OffsetDeleteResponseTopic:
    code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    return OffsetDeleteResponseTopic(
        topic.name, [OffsetDeleteResponsePartition(each.partition_index, code) for each in topic.partitions]
    )
