"""OffsetFetch: what groups have committed.

- A partition without a commit answers offset -1. Without topics, everything the group has.
- The answer contains only commits that the in-sync replicas have; `require_stable` also refuses partitions
  with commits of an open transaction (UNSTABLE_OFFSET_COMMIT), so that the client asks again.

- 2: all topics of the group; an error for the whole  - 3: throttle time  - 5: leader epoch  - 6: compact
- 7: require_stable  - 8: many groups  - 9: member id and epoch, checked for the consumer protocol  - 10: topics by id
"""

from __future__ import annotations

from headrace.server.api.context import Context
from headrace.server.api.topic_ids import UNKNOWN, name_of
from headrace.server.security.operations import GROUP, TOPIC, Operation
from headrace.wire.errors import ErrorCode, KafkaError
from headrace.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)

FIRST_VERSION_WITH_ERROR = 2
FIRST_VERSION_WITH_MANY_GROUPS = 8
FIRST_VERSION_WITH_TOPIC_IDS = 10


async def handle(context: Context, request: OffsetFetchRequest) -> OffsetFetchResponse:
    if context.version >= FIRST_VERSION_WITH_MANY_GROUPS:
        by_id = context.version >= FIRST_VERSION_WITH_TOPIC_IDS
        fetch = _fetch_by_id if by_id else _fetch
        groups = [await fetch(context, group, request.require_stable) for group in request.groups]
        return OffsetFetchResponse(groups=groups)
    topics = None
    if request.topics is not None:
        topics = [OffsetFetchRequestTopics(each.name, each.partition_indexes) for each in request.topics]
    asked = OffsetFetchRequestGroup(request.group_id, topics=topics)
    found = await _fetch(context, asked, request.require_stable)
    if found.error_code and context.version < FIRST_VERSION_WITH_ERROR:
        found.topics = [_failed(topic, found.error_code) for topic in topics or ()]
    return OffsetFetchResponse(
        error_code=found.error_code,
        topics=[
            OffsetFetchResponseTopic(
                topic.name,
                [
                    OffsetFetchResponsePartition(
                        each.partition_index,
                        each.committed_offset,
                        each.committed_leader_epoch,
                        each.metadata,
                        each.error_code,
                    )
                    for each in topic.partitions
                ],
            )
            for topic in found.topics
        ],
    )


async def _fetch(
    context: Context, group: OffsetFetchRequestGroup, require_stable: bool
) -> OffsetFetchResponseGroup:
    try:
        context.require(Operation.DESCRIBE, GROUP, group.group_id)
        return await _visible(context, group, require_stable)
    except KafkaError as error:
        code = error.code
        if code is ErrorCode.COORDINATOR_NOT_AVAILABLE:
            code = ErrorCode.NOT_COORDINATOR  # the one that older consumers retry
        return OffsetFetchResponseGroup(group.group_id, error_code=code)


async def _fetch_by_id(
    context: Context, group: OffsetFetchRequestGroup, require_stable: bool
) -> OffsetFetchResponseGroup:
    """The same with ids for names; topics that are gone are left out when the client asks for all."""
    unknown: list[OffsetFetchRequestTopics] = []
    if group.topics is not None:
        for topic in group.topics:
            topic.name = name_of(context.engines.cluster.image, topic.topic_id)
        unknown = [topic for topic in group.topics if topic.name.startswith(UNKNOWN)]
        group.topics = [topic for topic in group.topics if not topic.name.startswith(UNKNOWN)]
    found = await _fetch(context, group, require_stable)
    topics = context.engines.cluster.image.topics
    found.topics = [each for each in found.topics if each.name in topics]
    for each in found.topics:
        each.topic_id = topics[each.name].id
    if not found.error_code:
        for topic in unknown:
            failed = _failed(topic, ErrorCode.UNKNOWN_TOPIC_ID)
            failed.topic_id = topic.topic_id
            found.topics.append(failed)
    return found


async def _visible(
    context: Context, group: OffsetFetchRequestGroup, require_stable: bool
) -> OffsetFetchResponseGroup:
    """Offsets of topics the client may see: others are refused when it names them, and left out when it asks for all."""
    if group.topics is None:
        found = await context.engines.groups.fetch_offsets(group, require_stable)
        found.topics, _ = context.split(Operation.DESCRIBE, TOPIC, found.topics, lambda topic: topic.name)
        return found
    group.topics, denied = context.split(Operation.DESCRIBE, TOPIC, group.topics, lambda topic: topic.name)
    found = await context.engines.groups.fetch_offsets(group, require_stable)
    if not found.error_code:
        found.topics += [_failed(topic, ErrorCode.TOPIC_AUTHORIZATION_FAILED) for topic in denied]
    return found


def _failed(topic: OffsetFetchRequestTopics, error: int) -> OffsetFetchResponseTopics:
    partitions = [
        OffsetFetchResponsePartitions(each, -1, error_code=error) for each in topic.partition_indexes
    ]
    return OffsetFetchResponseTopics(topic.name, partitions)
