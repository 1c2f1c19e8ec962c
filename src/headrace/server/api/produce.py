"""Produce: appends record batches, as they are, to the partitions this broker leads.

- acks=0 gets no reply (the connection is cut when it fails), acks=1 when written, acks=all when committed.
- A reply that waits keeps its place; requests behind it on the connection are served meanwhile.
- Versions 0 to 2 are advertised only because old clients look for them; a request in one is refused.
- 9: compact encoding  - 10: the reply names the current leader  - 13: topic ids
"""

from __future__ import annotations

from collections.abc import Sequence

from headrace.clock import Timer
from headrace.server.api.context import Context
from headrace.server.api.topic_permissions import topic_permission
from headrace.server.api.verification import Verification
from headrace.server.cluster.internal_topics import INTERNAL_TOPICS
from headrace.server.log.producers import VerificationGuard
from headrace.server.log.validation import RecordsRefused
from headrace.server.net.connection import FAILED_INSIDE
from headrace.server.replica.partition import Committed, Partition
from headrace.server.security.operations import NO_PERMISSION, TRANSACTIONAL_ID, Operation
from headrace.wire.batch import HEADER_SIZE, TRANSACTIONAL
from headrace.wire.codec import WireError
from headrace.wire.errors import ErrorCode, KafkaError
from headrace.wire.frames import Endpoint
from headrace.wire.produce import (
    TOPIC_IDS,
    PartitionData,
    PartitionReply,
    ProduceRequest,
    encode_reply,
    read_request,
)

Replies = list[tuple[bytes, list[PartitionReply]]]
WRITE = Operation.WRITE
"""Python 3.11 takes its time to look up a member of an enum."""

TRANSACTION_FORBIDDEN = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED

ATTRIBUTES = 22
"""Where a batch has the lower byte of its attributes."""

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
    waits: list[tuple[Partition, int, list[PartitionReply], int]] = []
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
                answers.append(_append(partition, data, request, guard, waits, answers))
            except KafkaError as error:
                answers.append(_refusal(context, topic, data[0], by_id, error))
    if context.connection.served_all:
        # Wake waiting readers before replying to the writer.
        context.engines.turn.run_now()
    if acks == 0:
        _no_reply(context, replies)
        if context.meter is not None:
            context.meter.produced(replied=False)
    elif waits:
        _Waiting(context, replies, waits, request)
    else:
        context.reply(_encode(context, replies))


def _append(
    partition: Partition,
    data: PartitionData,
    request: ProduceRequest,
    guard: VerificationGuard | None,
    waits: list[tuple[Partition, int, list[PartitionReply], int]],
    answers: list[PartitionReply],
) -> PartitionReply:
    if partition.topic in INTERNAL_TOPICS:
        # Only coordinators may write there: the next coordinator to load the partition would fail on a foreign record.
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"{partition.topic} is written by brokers only")
    if data.records is None:
        raise KafkaError(ErrorCode.INVALID_RECORD, "a produce request carries no records for this partition")
    appended = partition.append(data.records, acks=request.acks, guard=guard)
    last = appended.last_offset
    if last >= partition.log.high_watermark and (request.acks == -1 or partition.sync_before_ack):
        waits.append((partition, last, answers, len(answers)))
    return PartitionReply(
        data.partition, 0, appended.first_offset, appended.log_append_time, appended.log_start_offset
    )


def _refusal(context: Context, topic: bytes, index: int, by_id: bool, error: KafkaError) -> PartitionReply:
    leader = None
    if error.code is ErrorCode.NOT_LEADER_OR_FOLLOWER:
        leader = context.engines.replicas.current_leader(topic, index, by_id)
    replicas = context.engines.replicas
    replicas.traffic.known(replicas.name_of(topic, by_id)).failed_produce_requests += 1
    refused = error.record_errors if isinstance(error, RecordsRefused) else ()
    return PartitionReply(
        index,
        error.code,
        record_errors=tuple((one.batch_index, one.message) for one in refused),
        error_message=error.message or None,
        current_leader=leader,
    )


def _no_reply(context: Context, replies: Replies) -> None:
    """With acks=0 the only way to signal an error to the producer is to close the connection."""
    for topic, partitions in replies:
        for reply in partitions:
            if reply.error_code:
                code = ErrorCode(reply.error_code).name
                name = topic.decode("utf-8", "replace") if context.version < TOPIC_IDS else topic.hex()
                context.connection.cut(
                    f"{code} for {name}-{reply.partition} in a produce request with acks=0"
                )
                return


def _encode(context: Context, replies: Replies) -> bytearray:
    endpoints: Sequence[Endpoint] = ()
    if any(reply.current_leader is not None for _, answers in replies for reply in answers):
        endpoints = context.engines.replicas.endpoints(
            {reply.current_leader[0] for _, answers in replies for reply in answers if reply.current_leader},
            context.connection.listener_name,
        )
    throttle_ms = 0 if context.meter is None else context.meter.produced()
    return encode_reply(replies, context.version, context.correlation_id, throttle_ms, endpoints)


class _Waiting:
    """A produce whose records are written but not all committed; its reply keeps its place in the reply queue."""

    __slots__ = ("_context", "_left", "_place", "_replies", "_timer", "_waits")

    def __init__(
        self,
        context: Context,
        replies: Replies,
        waits: list[tuple[Partition, int, list[PartitionReply], int]],
        request: ProduceRequest,
    ) -> None:
        self._context = context
        self._replies = replies
        self._place = context.reserve_reply()
        self._timer: Timer = context.engines.clock.call_later(request.timeout_ms / 1000, self._expired)
        self._waits = [
            (partition, offset, self._answering(partition, answers, position, request.acks))
            for partition, offset, answers, position in waits
        ]
        self._left = len(waits)
        for partition, offset, callback in tuple(self._waits):
            partition.when_committed(offset, callback)

    def _answering(
        self, partition: Partition, answers: list[PartitionReply], position: int, acks: int
    ) -> Committed:
        def committed(code: ErrorCode) -> None:
            if code is ErrorCode.NONE and acks == -1 and partition.below_minimum:
                code = ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
            if code is not ErrorCode.NONE:
                answers[position] = PartitionReply(answers[position].partition, code)
            self._left -= 1
            if self._left == 0:
                self._finish()

        return committed

    def _expired(self) -> None:
        for partition, offset, callback in self._waits:
            if partition.forget(offset, callback):
                callback(ErrorCode.REQUEST_TIMED_OUT)

    def _finish(self) -> None:
        self._timer.cancel()
        connection = self._context.connection
        connection.replies.resolve(self._place, (_encode(self._context, self._replies),))
