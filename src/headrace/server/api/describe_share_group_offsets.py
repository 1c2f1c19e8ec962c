"""DescribeShareGroupOffsets: where share groups begin in each partition, and how many records they have not finished.

- Without topics: all that the group has state for. A partition in which it has not begun has the start -1.
- 1: the lag, -1 where it is not known
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping

from headrace.server.api.context import Context
from headrace.server.security.operations import GROUP, TOPIC, Operation
from headrace.server.share.coordinator.records import NOT_COUNTED, ShareKey
from headrace.server.share.coordinator.state import NOT_SET, NOTHING_STORED, Summary
from headrace.server.share.persister import for_each
from headrace.wire.errors import ErrorCode, KafkaError
from headrace.wire.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsResponse,
    DescribeShareGroupOffsetsResponseGroup,
    DescribeShareGroupOffsetsResponsePartition,
    DescribeShareGroupOffsetsResponseTopic,
)
from headrace.wire.schema import ZERO_UUID

UNKNOWN = -1


async def handle(
    context: Context, request: DescribeShareGroupOffsetsRequest
) -> DescribeShareGroupOffsetsResponse:
    return DescribeShareGroupOffsetsResponse(
        groups=[await _describe(context, each) for each in request.groups]
    )


async def _describe(
    context: Context, asked: DescribeShareGroupOffsetsRequestGroup
) -> DescribeShareGroupOffsetsResponseGroup:
    try:
        context.engines.sharing.settings.require()
        context.require(Operation.DESCRIBE, GROUP, asked.group_id)
        known = context.engines.groups.share.group(asked.group_id).states.initialized
        return DescribeShareGroupOffsetsResponseGroup(asked.group_id, await _topics(context, asked, known))
    except KafkaError as error:
        return DescribeShareGroupOffsetsResponseGroup(
            asked.group_id, error_code=error.code, error_message=error.message or None
        )


async def _topics(
    context: Context,
    asked: DescribeShareGroupOffsetsRequestGroup,
    known: Mapping[uuid.UUID, frozenset[int]],
) -> list[DescribeShareGroupOffsetsResponseTopic]:
    image = context.engines.cluster.image
    wanted: dict[str, list[int]] = {}
    denied: list[DescribeShareGroupOffsetsResponseTopic] = []
    if asked.topics is None:
        for topic_id, indexes in known.items():
            topic = image.topics_by_id.get(topic_id)
            if topic is not None and context.may(Operation.DESCRIBE, TOPIC, topic.name, asked_for=False):
                wanted[topic.name] = sorted(indexes)
    else:
        for each in asked.topics:
            if each.topic_name not in image.topics:
                code, message = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "This topic does not exist."
            elif not context.may(Operation.DESCRIBE, TOPIC, each.topic_name):
                code, message = ErrorCode.TOPIC_AUTHORIZATION_FAILED, "The client may not describe the topic."
            else:
                wanted[each.topic_name] = list(each.partitions)
                continue
            denied.append(
                DescribeShareGroupOffsetsResponseTopic(
                    each.topic_name,
                    ZERO_UUID,
                    [_failed(index, KafkaError(code, message)) for index in each.partitions],
                )
            )
    ids = {name: image.topics[name].id for name in wanted}
    keys = [
        ShareKey(asked.group_id, ids[name], index) for name, indexes in wanted.items() for index in indexes
    ]
    begun = [key for key in keys if key.partition in known.get(key.topic_id, ())]
    summaries = await for_each(context.engines.sharing.persister.summary, begun)
    ends = await context.engines.sharing.ends.of(
        [(name, index) for name, indexes in wanted.items() for index in indexes]
    )
    return [
        DescribeShareGroupOffsetsResponseTopic(
            name,
            ids[name],
            [
                _partition(
                    index,
                    summaries.get(ShareKey(asked.group_id, ids[name], index), NOTHING_STORED),
                    ends[name, index],
                )
                for index in indexes
            ],
        )
        for name, indexes in wanted.items()
    ] + denied


def _partition(
    index: int, summary: Summary | KafkaError, end: int | KafkaError
) -> DescribeShareGroupOffsetsResponsePartition:
    if isinstance(summary, KafkaError):
        return _failed(index, summary)
    lag = UNKNOWN
    if summary.start_offset != NOT_SET and summary.complete_count != NOT_COUNTED and isinstance(end, int):
        lag = max(end - summary.start_offset - summary.complete_count, 0)
    return DescribeShareGroupOffsetsResponsePartition(index, summary.start_offset, summary.leader_epoch, lag)


def _failed(index: int, error: KafkaError) -> DescribeShareGroupOffsetsResponsePartition:
    return DescribeShareGroupOffsetsResponsePartition(
        index, UNKNOWN, 0, UNKNOWN, error.code, error.message or None
    )
