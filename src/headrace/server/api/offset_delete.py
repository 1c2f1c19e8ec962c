"""OffsetDelete: delete committed offsets of partitions that no member of the group subscribes to.

- GROUP_SUBSCRIBED_TO_TOPIC for topics in use; NON_EMPTY_GROUP for a live group whose members are not consumers.
- A partition that does not exist gets its own error; one without a commit succeeds.
"""

from __future__ import annotations

from headrace.server.api.context import Context
from headrace.server.api.offset_partitions import refused_partitions
from headrace.server.security.operations import GROUP, Operation
from headrace.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)


async def handle(context: Context, request: OffsetDeleteRequest) -> OffsetDeleteResponse:
    context.require(Operation.DELETE, GROUP, request.group_id)
    asked = request.topics
    codes = refused_partitions(context, asked)
    request.topics = [
        OffsetDeleteRequestTopic(
            topic.name,
            [each for each in topic.partitions if (topic.name, each.partition_index) not in codes],
        )
        for topic in asked
    ]
    response = await context.engines.groups.delete_offsets(request)
    for done in response.topics:
        codes |= {(done.name, each.partition_index): each.error_code for each in done.partitions}
    response.topics = [
        OffsetDeleteResponseTopic(
            topic.name,
            [
                OffsetDeleteResponsePartition(each.partition_index, codes[topic.name, each.partition_index])
                for each in topic.partitions
            ],
        )
        for topic in asked
    ]
    return response
