"""DescribeTopicPartitions: like Metadata, in pages; a cursor marks where the next page begins.

- Topics come by name in order; without any named, all of them. Nothing is created.
- A page holds at most max.request.partition.size.limit partitions, or fewer if the client asks for fewer.
"""

from __future__ import annotations

from headrace.server.api.context import Context
from headrace.server.api.metadata import describe
from headrace.server.cluster.image import Topic
from headrace.server.cluster.internal_topics import INTERNAL_TOPICS
from headrace.server.cluster.topics import check_topic_name
from headrace.server.security.operations import TOPIC, Operation
from headrace.wire.errors import ErrorCode, KafkaError
from headrace.wire.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
    ResponseCursor,
)

LATEST_METADATA = 12


def handle(context: Context, request: DescribeTopicPartitionsRequest) -> DescribeTopicPartitionsResponse:
    image = context.engines.cluster.image
    most = context.engines.config.integer("max.request.partition.size.limit")
    room = max(1, min(most, request.response_partition_limit))
    names = sorted({topic.name for topic in request.topics} or image.topics)
    first_name, first_partition = "", 0
    if request.cursor is not None:
        first_name, first_partition = request.cursor.topic_name, request.cursor.partition_index
        if first_partition < 0:
            # The response can carry an error only in its topics.
            wrong = [
                DescribeTopicPartitionsResponseTopic(ErrorCode.INVALID_REQUEST, topic.name)
                for topic in request.topics
            ]
            return DescribeTopicPartitionsResponse(topics=wrong)
    response = DescribeTopicPartitionsResponse()
    for name in names:
        if name < first_name:
            continue
        if not context.may(Operation.DESCRIBE, TOPIC, name, asked_for=bool(request.topics)):
            if request.topics:
                response.topics.append(
                    DescribeTopicPartitionsResponseTopic(ErrorCode.TOPIC_AUTHORIZATION_FAILED, name)
                )
            continue
        topic = image.topics.get(name)
        start = first_partition if name == first_name else 0
        if topic is None:
            # A client that asked for all topics need not know of one deleted between two pages.
            if request.topics:
                response.topics.append(_absent(name))
            continue
        if room == 0:
            response.next_cursor = ResponseCursor(name, start)
            break
        page = _page(context, topic, start, room)
        response.topics.append(page)
        room -= len(page.partitions)
        reached = start + len(page.partitions)
        if reached < len(topic.partitions):
            response.next_cursor = ResponseCursor(name, reached)
            break
    return response


def _absent(name: str) -> DescribeTopicPartitionsResponseTopic:
    try:
        check_topic_name(name)
        code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    except KafkaError as error:
        code = error.code
    return DescribeTopicPartitionsResponseTopic(code, name, is_internal=name in INTERNAL_TOPICS)


def _page(context: Context, topic: Topic, start: int, room: int) -> DescribeTopicPartitionsResponseTopic:
    image = context.engines.cluster.image
    full = describe(image, topic, context.connection.listener_name, LATEST_METADATA)
    partitions = [
        DescribeTopicPartitionsResponsePartition(
            error_code=partition.error_code,
            partition_index=partition.partition_index,
            leader_id=partition.leader_id,
            leader_epoch=partition.leader_epoch,
            replica_nodes=partition.replica_nodes,
            isr_nodes=partition.isr_nodes,
            eligible_leader_replicas=[],
            last_known_elr=[],
            offline_replicas=partition.offline_replicas,
        )
        for partition in full.partitions[start : start + room]
    ]
    return DescribeTopicPartitionsResponseTopic(
        ErrorCode.NONE,
        topic.name,
        topic.id,
        topic.name in INTERNAL_TOPICS,
        partitions,
        context.operations_on(TOPIC, topic.name),
    )
