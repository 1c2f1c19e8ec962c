"""OffsetForLeaderEpoch: where the records of a leader epoch end in this log, for a replica that must truncate its own.

- The reply has the largest epoch not above the one asked for, with its end; -1 and -1 when there is none.
- 2: current leader epoch is checked  - 3: followers name themselves  - 4: compact
"""

from __future__ import annotations

from headrace.server.api.context import Context
from headrace.server.replica.fetching import check_leader_epoch
from headrace.server.security.operations import TOPIC, Operation
from headrace.wire.errors import ErrorCode, KafkaError
from headrace.wire.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderTopicResult,
)


def handle(context: Context, request: OffsetForLeaderEpochRequest) -> OffsetForLeaderEpochResponse:
    results = []
    is_broker = context.may_on_cluster(Operation.CLUSTER_ACTION, asked_for=False)
    for topic in request.topics:
        name = topic.topic.encode()
        answers = []
        for asked in topic.partitions:
            reply = EpochEndOffset(partition=asked.partition, leader_epoch=-1, end_offset=-1)
            try:
                if not is_broker:
                    context.require(Operation.DESCRIBE, TOPIC, topic.topic)
                partition = context.engines.replicas.find(name, asked.partition, by_id=False)
                if not partition.is_leader:
                    raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
                check_leader_epoch(partition, asked.current_leader_epoch)
                reply.leader_epoch, reply.end_offset = partition.end_offset_for_epoch(asked.leader_epoch)
            except KafkaError as error:
                reply.error_code = error.code
            answers.append(reply)
        results.append(OffsetForLeaderTopicResult(topic.topic, answers))
    return OffsetForLeaderEpochResponse(topics=results)
