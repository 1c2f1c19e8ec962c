"""OffsetCommit: a group's positions, kept in `__consumer_offsets`.

- Answered when the in-sync replicas have them. Commits that arrive together are appended together.
- A member must be of the current generation (epoch); a consumer without a group membership, or an administrator,
  commits with generation -1 while the group has no members.
- A topic or partition that does not exist is refused for itself; so is metadata beyond offset.metadata.max.bytes.

- 2 to 4: retention of the commit's own  - 3: throttle time  - 6: leader epoch  - 7: instance ids  - 8: compact
- 9: consumer protocol: GROUP_ID_NOT_FOUND and STALE_MEMBER_EPOCH
"""

from __future__ import annotations

from collections.abc import Callable

from headrace.api.context import Context
from headrace.api.group_client import client_of
from headrace.wire.errors import ErrorCode
from headrace.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)


def handle_later(
    context: Context, request: OffsetCommitRequest, reply: Callable[[OffsetCommitResponse], None]
) -> None:
    refused = _take_out_unknown(context, request)
    if not refused:
        context.services.groups.commit(client_of(context), request, reply)
        return

    def reply_for_all(response: OffsetCommitResponse) -> None:
        response.topics += refused
        reply(response)

    if request.topics:
        context.services.groups.commit(client_of(context), request, reply_for_all)
    else:
        reply(OffsetCommitResponse(topics=refused))


def _take_out_unknown(context: Context, request: OffsetCommitRequest) -> list[OffsetCommitResponseTopic]:
    """The answers for what does not exist, which leaves the request."""
    topics = context.services.cluster.image.topics
    refused = []
    for topic in request.topics:
        known = topics.get(topic.name)
        count = 0 if known is None else len(known.partitions)
        if any(not 0 <= each.partition_index < count for each in topic.partitions):
            there = [each for each in topic.partitions if 0 <= each.partition_index < count]
            missing = [each for each in topic.partitions if not 0 <= each.partition_index < count]
            topic.partitions = missing
            refused.append(_failed(topic, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
            topic.partitions = there
    if refused:
        request.topics = [topic for topic in request.topics if topic.partitions]
    return refused


def _failed(topic: OffsetCommitRequestTopic, error: ErrorCode) -> OffsetCommitResponseTopic:
    return OffsetCommitResponseTopic(
        topic.name, [OffsetCommitResponsePartition(each.partition_index, error) for each in topic.partitions]
    )
