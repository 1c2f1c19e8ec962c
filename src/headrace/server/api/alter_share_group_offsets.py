"""AlterShareGroupOffsets: move the start offsets of a share group without members; its state behind them is discarded."""

from __future__ import annotations

import uuid

from headrace.server.api.context import Context
from headrace.server.security.operations import GROUP, TOPIC, Operation
from headrace.wire.errors import ErrorCode, KafkaError
from headrace.wire.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestTopic,
    AlterShareGroupOffsetsResponse,
    AlterShareGroupOffsetsResponsePartition,
    AlterShareGroupOffsetsResponseTopic,
)
from headrace.wire.schema import ZERO_UUID

Place = tuple[uuid.UUID, int]


async def handle(context: Context, request: AlterShareGroupOffsetsRequest) -> AlterShareGroupOffsetsResponse:
    try:
        context.engines.sharing.settings.require()
        context.require(Operation.READ, GROUP, request.group_id)
        context.engines.groups.share.group(request.group_id).require_empty()
        refused = {topic.topic_name: _refusal(context, topic) for topic in request.topics}
        image = context.engines.cluster.image
        offsets: dict[Place, int] = {}
        for topic in request.topics:
            known = image.topics.get(topic.topic_name)
            if known is not None and refused[topic.topic_name] is None:
                offsets |= {
                    (known.id, each.partition_index): each.start_offset
                    for each in topic.partitions
                    if known.partition(each.partition_index) is not None
                }
        failed = await context.engines.groups.share.reset(request.group_id, offsets) if offsets else {}
    except KafkaError as error:
        return AlterShareGroupOffsetsResponse(error_code=error.code, error_message=error.message or None)
    responses = []
    for topic in request.topics:
        known = image.topics.get(topic.topic_name)
        topic_id = known.id if known is not None else ZERO_UUID
        results = []
        for each in topic.partitions:
            place = (topic_id, each.partition_index)
            failure = refused[topic.topic_name] or failed.get(place)
            if failure is None and place not in offsets:
                failure = KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "The topic has no such partition.")
            results.append(_result(each.partition_index, failure))
        responses.append(AlterShareGroupOffsetsResponseTopic(topic.topic_name, topic_id, results))
    return AlterShareGroupOffsetsResponse(responses=responses)


def _refusal(context: Context, topic: AlterShareGroupOffsetsRequestTopic) -> KafkaError | None:
    if not context.may(Operation.READ, TOPIC, topic.topic_name):
        return KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "The client may not read the topic.")
    if topic.topic_name not in context.engines.cluster.image.topics:
        return KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "This topic does not exist.")
    return None


def _result(index: int, error: KafkaError | None) -> AlterShareGroupOffsetsResponsePartition:
    if error is None:
        return AlterShareGroupOffsetsResponsePartition(index)
    return AlterShareGroupOffsetsResponsePartition(index, error.code, error.message or None)
