"""DescribeProducers: the producer state of a partition; any replica answers."""

from __future__ import annotations

from headrace.server.api.context import Context
from headrace.server.log.producers import ProducerEntry
from headrace.server.security.operations import TOPIC, Operation
from headrace.wire.errors import KafkaError
from headrace.wire.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)


def handle(context: Context, request: DescribeProducersRequest) -> DescribeProducersResponse:
    topics = []
    for topic in request.topics:
        answers = [_describe(context, topic.name, index) for index in topic.partition_indexes]
        topics.append(TopicResponse(topic.name, answers))
    return DescribeProducersResponse(topics=topics)


def _describe(context: Context, topic: str, index: int) -> PartitionResponse:
    reply = PartitionResponse(index)
    try:
        context.require(Operation.READ, TOPIC, topic)
        partition = context.engines.replicas.find(topic.encode(), index, by_id=False)
        reply.active_producers = [_state(entry) for entry in partition.log.active_producers]
    except KafkaError as error:
        reply.error_code, reply.error_message = error.code, error.message or None
    return reply


def _state(entry: ProducerEntry) -> ProducerState:
    return ProducerState(
        producer_id=entry.producer_id,
        producer_epoch=entry.epoch,
        last_sequence=entry.last_sequence,
        last_timestamp=entry.last_timestamp,
        coordinator_epoch=entry.coordinator_epoch,
        current_txn_start_offset=entry.transaction_first_offset,
    )
