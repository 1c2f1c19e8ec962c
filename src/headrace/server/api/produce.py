"""Produce: appends record batches, as they are, to the partitions this broker leads.

- acks=0 gets no reply (the connection is cut when it fails), acks=1 when written, acks=all when committed.
- A reply that waits keeps its place; requests behind it on the connection are served meanwhile.
- A connection remembers its requests to one partition: the next ones like them are served without being decoded.
- Versions 0 to 2 are advertised only because old clients look for them; a request in one is refused.
- 9: compact encoding  - 10: the reply names the current leader  - 13: topic ids
"""

from __future__ import annotations

from headrace.server.api.context import Context
from headrace.server.api.produce_answers import Replies, Wait, answer, refusal
from headrace.server.api.repeated_produce import ATTRIBUTES, WRITE, remember
from headrace.server.api.topic_permissions import topic_permission
from headrace.server.api.verification import Verification
from headrace.server.cluster.internal_topics import INTERNAL_TOPICS
from headrace.server.log.producers import VerificationGuard
from headrace.server.net.connection import FAILED_INSIDE
from headrace.server.replica.partition import Partition
from headrace.server.security.operations import NO_PERMISSION, TRANSACTIONAL_ID
from headrace.wire.batch import HEADER_SIZE, TRANSACTIONAL
from headrace.wire.codec import WireError
from headrace.wire.errors import ErrorCode, KafkaError
from headrace.wire.produce import (
    TOPIC_IDS,
    PartitionData,
    PartitionReply,
    ProduceRequest,
    read_request,
)

TRANSACTION_FORBIDDEN = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED

Refused = dict[bytes, ErrorCode]
"""Topics that the client may not write to, and why."""


def handle_frame(context: Context, frame: memoryview, position: int) -> None:
    if context.version < 3:
        raise WireError(
            f"Produce version {context.version} carries message formats that are no longer written"
        )
    request = read_request(frame, position, context.version)
    refused = _refused(context, request) if context.engines.guarded else {}
    if request.transactional_id is not None:
        writes = request
        if refused:
            writes = request._replace(topics=[each for each in request.topics if each.topic not in refused])
        verification = Verification(context.engines, writes, context.version)
        if verification.needed and verification.verified_locally():
            _serve(context, request, verification, refused)
            return
        if verification.needed:
            # The frame is valid only during this call; a request that waits for a coordinator works on a copy.
            copy = memoryview(bytearray(frame[position:]))
            context.connection.mute()
            verification.start(
                lambda: _verified(context, read_request(copy, 0, context.version), verification, refused),
                lambda: context.connection.cut(FAILED_INSIDE),
            )
            return
    _serve(context, request, None, refused)
    remember(context, request, frame)


def _refused(context: Context, request: ProduceRequest) -> Refused:
    """The topics this client may not write to; all of them when it may not use its transactional id."""
    transactional_id = request.transactional_id
    in_transaction = transactional_id is not None
    known, ask = topic_permission(context, WRITE, context.version >= TOPIC_IDS)
    refused: Refused = {}
    for topic, partitions in request.topics:
        if topic not in known and not ask(topic):
            refused[topic] = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        for _, records in partitions:
            if records is not None and len(records) >= HEADER_SIZE and records[ATTRIBUTES] & TRANSACTIONAL:
                in_transaction = True
    # Records of a transaction need its transactional id, whose permission can be asked.
    if in_transaction and (
        transactional_id is None or not context.may(WRITE, TRANSACTIONAL_ID, transactional_id)
    ):
        return dict.fromkeys((topic for topic, _ in request.topics), TRANSACTION_FORBIDDEN)
    return refused


def _verified(
    context: Context, request: ProduceRequest, verification: Verification, refused: Refused
) -> None:
    if context.connection.transport.is_closing():
        return  # As if the request had been lost in transit.
    _serve(context, request, verification, refused)
    context.connection.unmute()


def _serve(
    context: Context, request: ProduceRequest, verification: Verification | None, refused: Refused
) -> None:
    acks = request.acks
    waits: list[Wait] = []
    replies: Replies = []
    find = context.engines.replicas.find
    by_id = context.version >= TOPIC_IDS
    for topic, partitions in request.topics:
        answers: list[PartitionReply] = []
        replies.append((topic, answers))
        for data in partitions:
            try:
                if acks not in (-1, 0, 1):
                    raise KafkaError(ErrorCode.INVALID_REQUIRED_ACKS, f"acks={acks} is not -1, 0 or 1")
                if topic in refused:
                    raise KafkaError(refused[topic], NO_PERMISSION)
                partition = find(topic, data[0], by_id)
                guard = verification.guard_for(partition) if verification is not None else None
                answers.append(_append(partition, data, acks, guard, waits, answers))
            except KafkaError as error:
                answers.append(refusal(context, topic, data[0], by_id, error))
    answer(context, replies, waits, acks, request.timeout_ms)


def _append(
    partition: Partition,
    data: PartitionData,
    acks: int,
    guard: VerificationGuard | None,
    waits: list[Wait],
    answers: list[PartitionReply],
) -> PartitionReply:
    if partition.topic in INTERNAL_TOPICS:
        # Only coordinators may write there: the next coordinator to load the partition would fail on a foreign record.
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"{partition.topic} is written by brokers only")
    if data.records is None:
        raise KafkaError(ErrorCode.INVALID_RECORD, "a produce request carries no records for this partition")
    appended = partition.append(data.records, acks=acks, guard=guard)
    if partition.must_wait(appended.last_offset, acks):
        waits.append(Wait(partition, appended.last_offset, answers, len(answers)))
    return PartitionReply(
        data.partition, 0, appended.first_offset, appended.log_append_time, appended.log_start_offset
    )
