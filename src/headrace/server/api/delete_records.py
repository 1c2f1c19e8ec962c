"""DeleteRecords: moves the log start offset; records before it are no longer served, and removed segment by segment.

- offset -1 means the high watermark; beyond it is OFFSET_OUT_OF_RANGE.
- A topic that is only compacted refuses (POLICY_VIOLATION), as in Kafka; one with an empty cleanup.policy does not.
"""

from __future__ import annotations

from headrace.server.api.context import Context
from headrace.server.security.operations import TOPIC, Operation
from headrace.wire.errors import ErrorCode, KafkaError
from headrace.wire.messages.delete_records import (
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)


def handle(context: Context, request: DeleteRecordsRequest) -> DeleteRecordsResponse:
    topics = []
    for topic in request.topics:
        partitions = [
            _delete(context, topic.name, asked.partition_index, asked.offset) for asked in topic.partitions
        ]
        topics.append(DeleteRecordsTopicResult(topic.name, partitions))
    return DeleteRecordsResponse(topics=topics)


def _delete(context: Context, topic: str, index: int, offset: int) -> DeleteRecordsPartitionResult:
    result = DeleteRecordsPartitionResult(index, low_watermark=-1)
    try:
        context.require(Operation.DELETE, TOPIC, topic)
        partition = context.engines.replicas.find(topic.encode(), index, by_id=False)
        result.low_watermark = partition.delete_records(offset)
    except KafkaError as error:
        result.error_code = error.code
    except OSError:
        result.error_code = ErrorCode.KAFKA_STORAGE_ERROR
    return result
