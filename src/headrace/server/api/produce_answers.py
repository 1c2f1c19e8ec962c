"""How a produce request is answered: at once, when its records are committed, or not at all (acks=0)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from headrace.clock import Timer
from headrace.server.api.context import Context
from headrace.server.log.validation import RecordsRefused
from headrace.server.replica.partition import Committed, Partition
from headrace.wire.errors import ErrorCode, KafkaError
from headrace.wire.frames import Endpoint
from headrace.wire.produce import TOPIC_IDS, PartitionReply, encode_reply

Replies = list[tuple[bytes, list[PartitionReply]]]


class Wait(NamedTuple):
    """Records that are written and not yet committed, or in sync mode not yet on disk."""

    partition: Partition
    last_offset: int
    answers: list[PartitionReply]
    """Those of the topic."""
    position: int
    """The partition's place among them."""


def answer(context: Context, replies: Replies, waits: list[Wait], acks: int, timeout_ms: int) -> None:
    """Answer a request whose records have all been appended or refused."""
    if context.connection.served_all:
        # Wake waiting readers before replying to the writer.
        context.engines.turn.run_now()
    if acks == 0:
        _no_reply(context, replies)
        if context.meter is not None:
            context.meter.produced(replied=False)
    elif waits:
        _Waiting(context, replies, waits, acks, timeout_ms)
    else:
        context.reply(_encode(context, replies))


def refusal(context: Context, topic: bytes, index: int, by_id: bool, error: KafkaError) -> PartitionReply:
    replicas = context.engines.replicas
    leader = None
    if error.code is ErrorCode.NOT_LEADER_OR_FOLLOWER:
        leader = replicas.current_leader(topic, index, by_id)
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
        waits: list[Wait],
        acks: int,
        timeout_ms: int,
    ) -> None:
        self._context = context
        self._replies = replies
        self._place = context.reserve_reply()
        self._timer: Timer = context.engines.clock.call_later(timeout_ms / 1000, self._expired)
        self._waits = [
            (partition, offset, self._answering(partition, answers, position, acks))
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
