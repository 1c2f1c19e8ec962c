"""OffsetCommit: a group's positions, kept in `__consumer_offsets`.

- Answered when the in-sync replicas have them. Commits that arrive together are appended together.
- A member must be of the current generation (epoch); a consumer without a group membership, or an administrator,
  commits with generation -1 while the group has no members.
- A topic or partition that does not exist is refused for itself; so is metadata beyond offset.metadata.max.bytes.

- 2 to 4: retention of the commit's own  - 3: throttle time  - 6: leader epoch  - 7: instance ids  - 8: compact
- 9: consumer protocol: GROUP_ID_NOT_FOUND and STALE_MEMBER_EPOCH
"""

from __future__ import annotations

from headrace.server.api.context import Context
from headrace.server.api.metering import tell_throttle_time
from headrace.server.cluster.image import Topic
from headrace.server.groups.offsets.commit import refuse
from headrace.server.security.operations import GROUP, TOPIC, Operation
from headrace.wire.errors import ErrorCode
from headrace.wire.messages.offset_commit import OffsetCommitResponse
from headrace.wire.offset_commit import Commit, TopicCommit, TopicResult, encode_reply, read_commit


def handle_frame(context: Context, frame: memoryview, position: int) -> None:
    commit = read_commit(frame, position, context.version)
    refused: list[TopicResult] = []
    if context.engines.guarded:
        commit, refused = _take_out_denied(context, commit)
    commit, unknown = _take_out_unknown(context, commit)
    refused += unknown
    connection = context.connection

    def reply(results: list[TopicResult]) -> None:
        if connection.transport.is_closing():
            return
        if refused:
            results = results + refused
        frame = encode_reply(results, context.version, context.correlation_id)
        if context.meter is not None:
            tell_throttle_time(frame, OffsetCommitResponse, context.version, context.meter.answered())
        context.reply(frame)
        connection.unmute()

    connection.mute()
    if commit.topics or not refused:
        context.engines.groups.commit(context.version, commit, reply)
    else:
        reply([])


def _take_out_denied(context: Context, commit: Commit) -> tuple[Commit, list[TopicResult]]:
    """The commit without the topics the client may not read, and the answers for those."""
    if not context.may(Operation.READ, GROUP, commit.group_id):
        return commit._replace(topics=[]), refuse(commit.topics, ErrorCode.GROUP_AUTHORIZATION_FAILED)
    allowed, denied = context.split(Operation.READ, TOPIC, commit.topics, lambda each: each.topic)
    return commit._replace(topics=allowed), refuse(denied, ErrorCode.TOPIC_AUTHORIZATION_FAILED)


def _take_out_unknown(context: Context, commit: Commit) -> tuple[Commit, list[TopicResult]]:
    """The commit without what does not exist, and the answers for that."""
    known = context.engines.cluster.image.topics
    for topic, partitions in commit.topics:
        count = _count(known.get(topic))
        for each in partitions:
            if not 0 <= each.partition < count:
                break
        else:
            continue
        break
    else:
        return commit, []
    there, missing = [], []
    for topic, partitions in commit.topics:
        count = _count(known.get(topic))
        found = [each for each in partitions if 0 <= each.partition < count]
        lost = [each for each in partitions if not 0 <= each.partition < count]
        if found:
            there.append(TopicCommit(topic, found))
        if lost:
            missing.append(TopicCommit(topic, lost))
    return commit._replace(topics=there), refuse(missing, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


def _count(topic: Topic | None) -> int:
    return 0 if topic is None else len(topic.partitions)
