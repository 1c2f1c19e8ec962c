"""InitializeShareGroupState: a group coordinator starts a share group in partitions, again after a reset."""

from __future__ import annotations

from headrace.server.api.context import Context
from headrace.server.api.share_state import for_each
from headrace.server.coordinator.promise import Promise
from headrace.server.share.coordinator.records import ShareKey
from headrace.wire.messages.initialize_share_group_state import (
    InitializeShareGroupStateRequest,
    InitializeShareGroupStateResponse,
    InitializeStateResult,
    PartitionData,
    PartitionResult,
)


async def handle(
    context: Context, request: InitializeShareGroupStateRequest
) -> InitializeShareGroupStateResponse:
    coordinator = context.engines.sharing.coordinator

    def work(key: ShareKey, asked: PartitionData) -> Promise[None]:
        return coordinator.initialize(key, asked.state_epoch, asked.start_offset)

    results = await for_each(
        context,
        request.group_id,
        [(topic.topic_id, topic.partitions) for topic in request.topics],
        work,
        lambda index, _: PartitionResult(index),
        PartitionResult,
    )
    return InitializeShareGroupStateResponse(
        [InitializeStateResult(topic_id, done) for topic_id, done in results]
    )
