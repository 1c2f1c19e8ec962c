"""ReadShareGroupStateSummary: a group coordinator reads how far a share group is, for an administrator.

- 1: how many records behind the start are finished
"""

from __future__ import annotations

from headrace.server.api.context import Context
from headrace.server.api.share_state import for_each
from headrace.server.coordinator.promise import Promise
from headrace.server.share.coordinator.records import ShareKey
from headrace.server.share.coordinator.state import Summary
from headrace.wire.messages.read_share_group_state_summary import (
    PartitionData,
    PartitionResult,
    ReadShareGroupStateSummaryRequest,
    ReadShareGroupStateSummaryResponse,
    ReadStateSummaryResult,
)


async def handle(
    context: Context, request: ReadShareGroupStateSummaryRequest
) -> ReadShareGroupStateSummaryResponse:
    coordinator = context.engines.sharing.coordinator

    def work(key: ShareKey, asked: PartitionData) -> Promise[Summary]:
        return coordinator.summary(key, asked.leader_epoch)

    results = await for_each(
        context,
        request.group_id,
        [(topic.topic_id, topic.partitions) for topic in request.topics],
        work,
        _answer,
        PartitionResult,
    )
    return ReadShareGroupStateSummaryResponse(
        [ReadStateSummaryResult(topic_id, done) for topic_id, done in results]
    )


def _answer(index: int, summary: Summary) -> PartitionResult:
    return PartitionResult(
        index,
        state_epoch=summary.state_epoch,
        leader_epoch=summary.leader_epoch,
        start_offset=summary.start_offset,
        delivery_complete_count=summary.complete_count,
    )
