"""ShareAcknowledge: a share group member accepts, releases, rejects or renews records it holds; answered once that is stored.

- Epoch -1 ends the share session, and frees what the member still holds; 0 cannot be, since only a fetch opens a session.
- 2: acknowledgements may renew locks; the reply says for how long
"""

from __future__ import annotations

from headrace.server.api.context import Context
from headrace.server.api.share_requests import (
    Entry,
    acknowledge,
    failure,
    leader_of,
    require_share_group,
    when_all_known,
)
from headrace.server.coordinator.promise import Promise
from headrace.server.share.sessions import FINAL_EPOCH, INITIAL_EPOCH
from headrace.wire.errors import ErrorCode, KafkaError
from headrace.wire.messages.share_acknowledge import (
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
    ShareAcknowledgeRequest,
    ShareAcknowledgeResponse,
    ShareAcknowledgeTopicResponse,
)


def handle(
    context: Context, request: ShareAcknowledgeRequest
) -> ShareAcknowledgeResponse | Promise[ShareAcknowledgeResponse]:
    sharing = context.engines.sharing
    try:
        member = require_share_group(context, request.group_id, request.member_id)
        if request.share_session_epoch == INITIAL_EPOCH:
            raise KafkaError(
                ErrorCode.INVALID_SHARE_SESSION_EPOCH, "Only a share fetch opens a share session."
            )
        session = sharing.sessions.continued(*member, request.share_session_epoch)
    except KafkaError as error:
        return ShareAcknowledgeResponse(error_code=error.code, error_message=error.message or None)
    acknowledged: dict[Entry, Promise[None]] = {
        (topic.topic_id, part.partition_index): acknowledge(
            context,
            member,
            (topic.topic_id, part.partition_index),
            part.acknowledgement_batches,
            renewing=request.is_renew_ack,
        )
        for topic in request.topics
        for part in topic.partitions
    }
    if request.share_session_epoch == FINAL_EPOCH:
        sharing.sessions.end(session)
    lock_ms = sharing.settings.of(member.group_id).lock_ms
    return when_all_known(acknowledged.values()).then(lambda _: _reply(context, acknowledged, lock_ms))


def _reply(
    context: Context, acknowledged: dict[Entry, Promise[None]], lock_ms: int
) -> ShareAcknowledgeResponse:
    topics: dict[bytes, ShareAcknowledgeTopicResponse] = {}
    leaders = set()
    for entry, promise in acknowledged.items():
        code, message = failure(promise)
        leader = leader_of(context, entry)
        if code is ErrorCode.NOT_LEADER_OR_FOLLOWER:
            leaders.add(leader[0])
        topic = topics.setdefault(entry[0].bytes, ShareAcknowledgeTopicResponse(entry[0]))
        topic.partitions.append(PartitionData(entry[1], code, message, LeaderIdAndEpoch(*leader)))
    endpoints = context.engines.replicas.endpoints(leaders, context.connection.listener_name)
    return ShareAcknowledgeResponse(
        acquisition_lock_timeout_ms=lock_ms,
        responses=list(topics.values()),
        node_endpoints=[NodeEndpoint(*each) for each in endpoints],
    )
