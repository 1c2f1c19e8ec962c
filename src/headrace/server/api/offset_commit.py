"""OffsetCommit: a group's positions, kept in `__consumer_offsets`.

- Answered when the in-sync replicas have them. Commits that arrive together are appended together.
- A member must be of the current generation (epoch); a consumer without a group membership, or an administrator,
  commits with generation -1 while the group has no members.
- A topic or partition that does not exist is refused for itself; so is metadata beyond offset.metadata.max.bytes.
- A connection remembers its last commit: the next one mostly differs only in its offsets, and is then not decoded again.

- 2 to 4: a retention time per commit  - 3: throttle time  - 6: leader epoch  - 7: instance ids  - 8: compact
- 9: consumer protocol: GROUP_ID_NOT_FOUND and STALE_MEMBER_EPOCH  - 10: topics by id
"""

from __future__ import annotations

import struct
import uuid
from collections.abc import Callable, Sequence

from headrace.server.api.context import Context
from headrace.server.api.engines import Engines
from headrace.server.api.metering import tell_throttle_time
from headrace.server.api.topic_ids import UNKNOWN, name_of
from headrace.server.cluster.image import Topic
from headrace.server.groups.offsets.commit import PreparedCommit, refuse
from headrace.server.net.connection import Connection
from headrace.server.security.operations import GROUP, TOPIC, Operation
from headrace.wire.errors import ErrorCode, KafkaError
from headrace.wire.messages.offset_commit import OffsetCommitResponse
from headrace.wire.offset_commit import (
    TOPIC_IDS,
    Commit,
    RepeatedCommit,
    TopicCommit,
    TopicResult,
    encode_reply,
    read_commit,
)

API_KEY = 8
MOST_REMEMBERED = 256
"""Partitions of a commit that a connection remembers: it costs memory for as long as the client is connected."""

_LENGTH_AND_CORRELATION = struct.Struct(">ii")


def handle_frame(context: Context, frame: memoryview, position: int) -> None:
    engines, connection = context.engines, context.connection
    commit, offsets_at = read_commit(frame, position, context.version)
    refused: list[TopicResult] = []
    if context.version >= TOPIC_IDS:
        commit, refused = _by_name(context, commit)
    if engines.guarded:
        commit, denied = _take_out_denied(context, commit)
        refused += denied
    commit, unknown = _take_out_unknown(context, commit)
    refused += unknown
    connection.mute()
    if refused and not commit.topics:
        _reply(context, encode_reply(refused, context.version, context.correlation_id, commit.ids))
        return
    try:
        prepared = engines.groups.prepare_commit(context.version, commit)
    except KafkaError as error:
        results = refuse(commit.topics, error.code) + refused
        _reply(context, encode_reply(results, context.version, context.correlation_id, commit.ids))
        return
    reply = encode_reply(prepared.results + refused, context.version, 0, commit.ids)
    engines.groups.commit(
        prepared, prepared.offsets, _answering(context, prepared, bytes(reply[8:]), refused)
    )
    unlimited = not engines.guarded and not engines.quotas.in_force
    if unlimited and len(prepared.forms) == len(offsets_at) <= MOST_REMEMBERED:
        connection.repeated[API_KEY] = _Repeated(
            context, RepeatedCommit(frame, offsets_at), prepared, bytes(reply[8:])
        )


class _Repeated:
    """The last commit of a connection, all of which was accepted, and what is needed to serve it again."""

    __slots__ = ("_client_id", "_commit", "_engines", "_image", "_prepared", "_reply")

    def __init__(
        self, context: Context, commit: RepeatedCommit, prepared: PreparedCommit, reply: bytes
    ) -> None:
        self._engines: Engines = context.engines
        self._client_id = context.client_id
        self._commit = commit
        self._prepared = prepared
        self._reply = reply
        self._image = context.engines.cluster.image

    def serve(self, connection: Connection, frame: memoryview) -> bool:
        """Serve a frame that says the same again; False for any other, and when topics may have come or gone."""
        engines = self._engines
        numbers = self._commit.read(frame)
        if numbers is None or engines.cluster.image is not self._image:
            return False
        prepared = self._prepared
        context = Context(engines, connection, prepared.version, numbers[0], self._client_id)
        connection.mute()
        engines.groups.commit(prepared, numbers[1:], _answering(context, prepared, self._reply, ()))
        return True


def _answering(
    context: Context, prepared: PreparedCommit, accepted: bytes, refused: Sequence[TopicResult]
) -> Callable[[KafkaError | None], None]:
    """Reply when the commit is stored: `accepted` is that reply after its correlation id."""

    def done(error: KafkaError | None) -> None:
        if context.connection.transport.is_closing():
            return
        if error is None:
            start = _LENGTH_AND_CORRELATION.pack(len(accepted) + 4, context.correlation_id)
            _reply(context, bytearray(start + accepted))
            return
        request = prepared.request
        results = [*refuse(request.topics, error.code), *refused]
        _reply(context, encode_reply(results, context.version, context.correlation_id, request.ids))

    return done


def _reply(context: Context, frame: bytearray) -> None:
    if context.meter is not None:
        tell_throttle_time(frame, OffsetCommitResponse, context.version, context.meter.answered())
    context.reply_together(frame)


def _by_name(context: Context, commit: Commit) -> tuple[Commit, list[TopicResult]]:
    """The commit with the names of its topics, without those whose id nobody knows, and the answers for those."""
    image = context.engines.cluster.image
    topics: list[TopicCommit] = []
    unknown: list[TopicCommit] = []
    ids = {}
    for topic_id, partitions in commit.topics:
        name = name_of(image, uuid.UUID(topic_id))
        ids[name] = commit.ids[topic_id]
        (unknown if name.startswith(UNKNOWN) else topics).append(TopicCommit(name, partitions))
    code = ErrorCode.UNKNOWN_TOPIC_ID
    if unknown and not context.may(Operation.READ, GROUP, commit.group_id):
        code = ErrorCode.GROUP_AUTHORIZATION_FAILED
    return commit._replace(topics=topics, ids=ids), refuse(unknown, code)


def _take_out_denied(context: Context, commit: Commit) -> tuple[Commit, list[TopicResult]]:
    """The commit without the topics the client may not read, and the answers for those."""
    if not context.may(Operation.READ, GROUP, commit.group_id):
        return commit._replace(topics=[]), refuse(commit.topics, ErrorCode.GROUP_AUTHORIZATION_FAILED)
    allowed, denied = context.split(Operation.READ, TOPIC, commit.topics, lambda each: each.topic)
    return commit._replace(topics=allowed), refuse(denied, ErrorCode.TOPIC_AUTHORIZATION_FAILED)


def _take_out_unknown(context: Context, commit: Commit) -> tuple[Commit, list[TopicResult]]:
    """The commit without partitions that do not exist, and the answers for those."""
    known = context.engines.cluster.image.topics
    there, missing = [], []
    for topic, partitions in commit.topics:
        count = _count(known.get(topic))
        found = [each for each in partitions if 0 <= each.partition < count]
        if len(found) == len(partitions):
            there.append(TopicCommit(topic, partitions))
            continue
        if found:
            there.append(TopicCommit(topic, found))
        missing.append(TopicCommit(topic, [each for each in partitions if not 0 <= each.partition < count]))
    if not missing:
        return commit, []
    return commit._replace(topics=there), refuse(missing, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


def _count(topic: Topic | None) -> int:
    return 0 if topic is None else len(topic.partitions)
