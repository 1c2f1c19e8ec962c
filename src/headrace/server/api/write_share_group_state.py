"""WriteShareGroupState: a partition's leader stores the state of its records in a share group.

- 1: how many records behind the start are finished
"""

from __future__ import annotations

from headrace.server.api.context import Context
from headrace.server.api.share_state import for_each
from headrace.server.coordinator.promise import Promise
from headrace.server.share.coordinator.records import ShareKey
from headrace.server.share.states import StateBatch
from headrace.wire.messages.write_share_group_state import (
    PartitionData,
    PartitionResult,
    WriteShareGroupStateRequest,
    WriteShareGroupStateResponse,
    WriteStateResult,
)


async def handle(context: Context, request: WriteShareGroupStateRequest) -> WriteShareGroupStateResponse:
    coordinator = context.engines.sharing.coordinator

    def work(key: ShareKey, asked: PartitionData) -> Promise[None]:
        return coordinator.write(
            key,
            asked.state_epoch,
            asked.leader_epoch,
            asked.start_offset,
            asked.delivery_complete_count,
            [
                StateBatch(each.first_offset, each.last_offset, each.delivery_state, each.delivery_count)
                for each in asked.state_batches
            ],
        )

    results = await for_each(
        context,
        request.group_id,
        [(topic.topic_id, topic.partitions) for topic in request.topics],
        work,
        lambda index, _: PartitionResult(index),
        PartitionResult,
    )
    return WriteShareGroupStateResponse([WriteStateResult(topic_id, done) for topic_id, done in results])
