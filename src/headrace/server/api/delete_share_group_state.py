"""DeleteShareGroupState: a group coordinator deletes the state of a share group."""

from __future__ import annotations

from headrace.server.api.context import Context
from headrace.server.api.share_state import for_each
from headrace.server.coordinator.promise import Promise
from headrace.server.share.coordinator.records import ShareKey
from headrace.wire.messages.delete_share_group_state import (
    DeleteShareGroupStateRequest,
    DeleteShareGroupStateResponse,
    DeleteStateResult,
    PartitionData,
    PartitionResult,
)


async def handle(context: Context, request: DeleteShareGroupStateRequest) -> DeleteShareGroupStateResponse:
    coordinator = context.engines.sharing.coordinator

    def work(key: ShareKey, asked: PartitionData) -> Promise[None]:
        return coordinator.delete(key)

    results = await for_each(
        context,
        request.group_id,
        [(topic.topic_id, topic.partitions) for topic in request.topics],
        work,
        lambda index, _: PartitionResult(index),
        PartitionResult,
    )
    return DeleteShareGroupStateResponse([DeleteStateResult(topic_id, done) for topic_id, done in results])
