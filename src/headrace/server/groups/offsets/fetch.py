"""OffsetFetch: what a group has committed. A partition without a commit answers offset -1, not an error."""

from __future__ import annotations

from headrace.server.groups.consumer.group import ConsumerGroup
from headrace.server.groups.offsets.store import CommittedOffset
from headrace.server.groups.state import GroupState
from headrace.wire.errors import ErrorCode
from headrace.wire.messages.offset_fetch import (
    OffsetFetchRequestGroup,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)


def fetch(
    state: GroupState, request: OffsetFetchRequestGroup, require_stable: bool
) -> OffsetFetchResponseGroup:
    """All the group's offsets when the request names no topics."""
    group = state.groups.get(request.group_id)
    if isinstance(group, ConsumerGroup):
        group.validate_offset_fetch(request.member_id, request.member_epoch)
    committed = state.offsets.of_group(request.group_id)
    if request.topics is None:
        wanted = [(topic, list(partitions)) for topic, partitions in committed.items()]
    else:
        wanted = [(topic.name, topic.partition_indexes) for topic in request.topics]
    topics = []
    for topic, partitions in wanted:
        known = committed.get(topic, {})
        topics.append(
            OffsetFetchResponseTopics(
                topic,
                [
                    _unstable(partition)
                    if require_stable and state.offsets.is_pending(request.group_id, topic, partition)
                    else _answer(partition, known.get(partition))
                    for partition in partitions
                ],
            )
        )
    return OffsetFetchResponseGroup(request.group_id, topics)


def _answer(partition: int, committed: CommittedOffset | None) -> OffsetFetchResponsePartitions:
    if committed is None:
        return OffsetFetchResponsePartitions(partition, -1)
    return OffsetFetchResponsePartitions(
        partition, committed.offset, committed.leader_epoch, committed.metadata
    )


def _unstable(partition: int) -> OffsetFetchResponsePartitions:
    return OffsetFetchResponsePartitions(partition, -1, error_code=ErrorCode.UNSTABLE_OFFSET_COMMIT)
