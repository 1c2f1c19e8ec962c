"""DescribeTransactions: what the coordinator knows about transactional ids."""

from __future__ import annotations

from headrace.server.api.context import Context
from headrace.server.security.operations import TOPIC, TRANSACTIONAL_ID, Operation
from headrace.server.transactions.metadata import Status
from headrace.wire.errors import KafkaError
from headrace.wire.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TopicData,
    TransactionState,
)


def handle(context: Context, request: DescribeTransactionsRequest) -> DescribeTransactionsResponse:
    return DescribeTransactionsResponse(
        transaction_states=[_describe(context, each) for each in request.transactional_ids]
    )


def _describe(context: Context, transactional_id: str) -> TransactionState:
    try:
        context.require(Operation.DESCRIBE, TRANSACTIONAL_ID, transactional_id)
        found = context.engines.transactions.coordinator.describe(transactional_id)
    except KafkaError as error:
        return TransactionState(error_code=error.code, transactional_id=transactional_id)
    topics: dict[str, TopicData] = {}
    for topic, index in sorted(found.partitions):
        if context.may(Operation.DESCRIBE, TOPIC, topic):
            topics.setdefault(topic, TopicData(topic)).partitions.append(index)
    return TransactionState(
        transactional_id=transactional_id,
        transaction_state=found.status.label,
        transaction_timeout_ms=found.timeout_ms,
        transaction_start_time_ms=-1 if found.status is Status.EMPTY else found.started_ms,
        producer_id=found.producer_id,
        producer_epoch=found.producer_epoch,
        topics=list(topics.values()),
    )
