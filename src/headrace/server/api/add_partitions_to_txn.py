"""AddPartitionsToTxn: the transaction reaches further partitions.

- 0 to 3: one transaction, from a client; all partitions are added or none.
- 2: PRODUCER_FENCED instead of INVALID_PRODUCER_EPOCH  - 3: compact
- 4: many transactions, from brokers: added, or only verified  - 5: TRANSACTION_ABORTABLE
"""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any

from headrace.server.api.context import Context
from headrace.server.cluster.internal_topics import INTERNAL_TOPICS
from headrace.server.coordinator.promise import Promise
from headrace.server.security.operations import CLUSTER, TOPIC, TRANSACTIONAL_ID, Operation
from headrace.server.transactions.metadata import TopicPartition, Transaction
from headrace.wire.errors import ErrorCode, KafkaError
from headrace.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTopicResult,
    AddPartitionsToTxnTransaction,
)

Answer = (
    AddPartitionsToTxnResponse
    | Promise[AddPartitionsToTxnResponse]
    | Coroutine[Any, Any, AddPartitionsToTxnResponse]
)


def handle(context: Context, request: AddPartitionsToTxnRequest) -> Answer:
    if context.version >= 4:
        context.require(Operation.CLUSTER_ACTION, *CLUSTER)
        return _from_brokers(context, request)
    return _from_client(context, request)


async def _from_brokers(context: Context, request: AddPartitionsToTxnRequest) -> AddPartitionsToTxnResponse:
    results = [await _from_broker(context, asked) for asked in request.transactions]
    return AddPartitionsToTxnResponse(results_by_transaction=results)


def _from_client(context: Context, request: AddPartitionsToTxnRequest) -> Answer:
    topics = request.v3_and_below_topics
    partitions = _partitions(topics)
    image = context.engines.cluster.image
    wrong: dict[TopicPartition, ErrorCode] = {}
    for each in partitions:
        # Offsets are added to a transaction by AddOffsetsToTxn; clients may not name internal topics here.
        if each[0] in INTERNAL_TOPICS or not context.may(Operation.WRITE, TOPIC, each[0]):
            wrong[each] = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        elif image.partition(*each) is None:
            wrong[each] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    transactional_id = request.v3_and_below_transactional_id
    if not context.may(Operation.WRITE, TRANSACTIONAL_ID, transactional_id):
        denial = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        return _response(topics, dict.fromkeys(partitions, denial))
    if wrong:
        return _response(
            topics, {each: wrong.get(each, ErrorCode.OPERATION_NOT_ATTEMPTED) for each in partitions}
        )
    added = context.engines.transactions.coordinator.add_partitions(
        transactional_id,
        request.v3_and_below_producer_id,
        request.v3_and_below_producer_epoch,
        partitions,
    )

    def respond(known: Promise[Transaction]) -> AddPartitionsToTxnResponse:
        code = ErrorCode.NONE
        try:
            known.result()
        except KafkaError as error:
            code = error.code
            if code is ErrorCode.PRODUCER_FENCED and context.version < 2:
                code = ErrorCode.INVALID_PRODUCER_EPOCH
        return _response(topics, dict.fromkeys(partitions, code))

    return added.then(respond)


def _response(
    topics: list[AddPartitionsToTxnTopic], codes: dict[TopicPartition, ErrorCode]
) -> AddPartitionsToTxnResponse:
    return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=_results(topics, codes))


async def _from_broker(context: Context, asked: AddPartitionsToTxnTransaction) -> AddPartitionsToTxnResult:
    partitions = _partitions(asked.topics)
    try:
        codes = await context.engines.transactions.enlisting.ask_here(
            asked.transactional_id, asked.producer_id, asked.producer_epoch, partitions, asked.verify_only
        )
    except KafkaError as error:
        codes = dict.fromkeys(partitions, error.code)
    return AddPartitionsToTxnResult(asked.transactional_id, _results(asked.topics, codes))


def _partitions(topics: list[AddPartitionsToTxnTopic]) -> list[TopicPartition]:
    return [(topic.name, index) for topic in topics for index in topic.partitions]


def _results(
    topics: list[AddPartitionsToTxnTopic], codes: dict[TopicPartition, ErrorCode]
) -> list[AddPartitionsToTxnTopicResult]:
    return [
        AddPartitionsToTxnTopicResult(
            topic.name,
            [
                AddPartitionsToTxnPartitionResult(index, codes[topic.name, index])
                for index in topic.partitions
            ],
        )
        for topic in topics
    ]
