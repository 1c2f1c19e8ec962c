"""ListOffsets: the offset at an end of the log, or the first record at or after a time.

- latest means the high watermark for consumers (the last stable offset when they read committed records only),
  the end of the log for followers; a time lookup never returns an offset beyond that.
- A new leader answers once its high watermark has reached the start of its epoch, so that offsets never go back.
- 0: a list of offsets, which Kafka 4 no longer serves and old monitors still ask for; here it has one, the first record at or after
  the time, where Kafka used to list the starts of segments
- 4: leader epochs in and out  - 5: OFFSET_NOT_AVAILABLE  - 7: the record with the largest timestamp  - 8: earliest on local disk
- 9: latest in tiered storage, of which there is none here  - 11: earliest that waits to go there, likewise
"""

from __future__ import annotations

import asyncio

from headrace.server.api.context import Context
from headrace.server.log.lookup import TimestampOffset
from headrace.server.log.partition import PartitionLog
from headrace.server.replica.fetching import READ_COMMITTED, check_leader_epoch
from headrace.server.security.operations import TOPIC, Operation
from headrace.wire.errors import ErrorCode, KafkaError
from headrace.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)

LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL = -1, -2, -3, -4
LATEST_TIERED, EARLIEST_PENDING_UPLOAD = -5, -6


async def handle(context: Context, request: ListOffsetsRequest) -> ListOffsetsResponse:
    topics = []
    for topic in request.topics:
        name = topic.name.encode()
        if context.may(Operation.DESCRIBE, TOPIC, topic.name):
            partitions = [
                await _answer(context, name, asked, request.replica_id, request.isolation_level)
                for asked in topic.partitions
            ]
        else:
            partitions = [_nothing(asked, ErrorCode.TOPIC_AUTHORIZATION_FAILED) for asked in topic.partitions]
        topics.append(ListOffsetsTopicResponse(topic.name, partitions))
    return ListOffsetsResponse(topics=topics)


async def _answer(
    context: Context, topic: bytes, asked: ListOffsetsPartition, replica_id: int, isolation: int
) -> ListOffsetsPartitionResponse:
    reply = _nothing(asked, ErrorCode.NONE)
    try:
        partition = context.engines.replicas.find(topic, asked.partition_index, by_id=False)
        if not partition.is_leader:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        check_leader_epoch(partition, asked.current_leader_epoch)
        log = partition.log
        if replica_id >= 0:
            limit = log.log_end_offset
        elif isolation == READ_COMMITTED:
            limit = log.last_stable_offset
        else:
            limit = log.high_watermark
        settled = replica_id >= 0 or partition.has_caught_up
        if asked.timestamp == LATEST:
            if not settled:
                raise _not_yet(context)
            reply.offset, reply.leader_epoch = limit, partition.leader_epoch
        elif asked.timestamp in (EARLIEST, EARLIEST_LOCAL):
            reply.offset = log.log_start_offset
            reply.leader_epoch = log.epoch_for(log.log_start_offset)
        elif asked.timestamp not in (LATEST_TIERED, EARLIEST_PENDING_UPLOAD):
            found = await _by_time(context, log, asked.timestamp)
            if found is not None and found.offset < limit:
                reply.timestamp, reply.offset, reply.leader_epoch = found
            elif not settled:
                raise _not_yet(context)
        reply.old_style_offsets = [reply.offset if reply.offset >= 0 else limit][: asked.max_num_offsets]
    except KafkaError as error:
        reply.error_code = error.code
    return reply


def _nothing(asked: ListOffsetsPartition, code: ErrorCode) -> ListOffsetsPartitionResponse:
    return ListOffsetsPartitionResponse(asked.partition_index, code, timestamp=-1, offset=-1, leader_epoch=-1)


def _not_yet(context: Context) -> KafkaError:
    """The last leader may have reported a larger high watermark than this one knows yet (KIP-207)."""
    code = ErrorCode.OFFSET_NOT_AVAILABLE if context.version >= 5 else ErrorCode.LEADER_NOT_AVAILABLE
    return KafkaError(code)


async def _by_time(context: Context, log: PartitionLog, timestamp: int) -> TimestampOffset | None:
    """A time lookup decodes a batch and may wait for the disk, so a thread does it."""
    if timestamp < MAX_TIMESTAMP:
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, f"{timestamp} is not a time this broker can look up")
    loop = asyncio.get_running_loop()
    if timestamp == MAX_TIMESTAMP:
        return await loop.run_in_executor(context.engines.disk, log.max_timestamp_offset)
    return await loop.run_in_executor(context.engines.disk, log.offset_for_timestamp, timestamp)
