"""ReadShareGroupState: a new leader reads the state of a share group; writes of older leaders are refused from then on."""

from __future__ import annotations

from headrace.server.api.context import Context
from headrace.server.api.share_state import for_each
from headrace.server.coordinator.promise import Promise
from headrace.server.share.coordinator.records import ShareKey
from headrace.server.share.coordinator.state import StoredState
from headrace.wire.messages.read_share_group_state import (
    PartitionData,
    PartitionResult,
    ReadShareGroupStateRequest,
    ReadShareGroupStateResponse,
    ReadStateResult,
    StateBatch,
)


async def handle(context: Context, request: ReadShareGroupStateRequest) -> ReadShareGroupStateResponse:
    coordinator = context.engines.sharing.coordinator

    def work(key: ShareKey, asked: PartitionData) -> Promise[StoredState]:
        return coordinator.read(key, asked.leader_epoch)

    results = await for_each(
        context,
        request.group_id,
        [(topic.topic_id, topic.partitions) for topic in request.topics],
        work,
        _answer,
        PartitionResult,
    )
    return ReadShareGroupStateResponse([ReadStateResult(topic_id, done) for topic_id, done in results])


def _answer(index: int, stored: StoredState) -> PartitionResult:
    return PartitionResult(
        index,
        state_epoch=stored.state_epoch,
        start_offset=stored.start_offset,
        state_batches=[StateBatch(*batch) for batch in stored.batches],
    )
