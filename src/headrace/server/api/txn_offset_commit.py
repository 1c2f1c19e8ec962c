"""TxnOffsetCommit: offsets of a group as part of a transaction; they count when it commits.

- The coordinator of the transaction is asked first, so that a late commit cannot land after its transaction.
- A topic or partition that does not exist gets its own error.

- 2: leader epoch; COORDINATOR_LOAD_IN_PROGRESS, which older clients fail on, instead of COORDINATOR_NOT_AVAILABLE
- 3: compact; member and generation are checked  - 4: TRANSACTION_ABORTABLE
- 5: transaction version 2: the group's partition is taken into the transaction here, without AddOffsetsToTxn
- 6: topics by id; GROUP_ID_NOT_FOUND and STALE_MEMBER_EPOCH instead of ILLEGAL_GENERATION
"""

from __future__ import annotations

from headrace.server.api.context import Context
from headrace.server.api.group_client import client_of
from headrace.server.api.offset_partitions import Codes, refused_partitions
from headrace.server.api.topic_ids import UNKNOWN, name_of
from headrace.server.cluster.internal_topics import CONSUMER_OFFSETS
from headrace.server.log.producers import VerificationGuard
from headrace.server.security.operations import GROUP, TRANSACTIONAL_ID, Operation
from headrace.server.transactions.metadata import TopicPartition
from headrace.wire.errors import ErrorCode, KafkaError
from headrace.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)

KNOWS_LOADING = 2
ENLISTED_BY_COMMITTING = 5
TOPIC_IDS = 6
ASK_AGAIN = {
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
}


async def handle(context: Context, request: TxnOffsetCommitRequest) -> TxnOffsetCommitResponse:
    asked = request.topics
    if context.version >= TOPIC_IDS:
        for topic in asked:
            topic.name = name_of(context.engines.cluster.image, topic.topic_id)
    try:
        context.require(Operation.WRITE, TRANSACTIONAL_ID, request.transactional_id)
        context.require(Operation.READ, GROUP, request.group_id)
        codes = _unknown(asked) if context.version >= TOPIC_IDS else {}
        codes |= refused_partitions(context, _without(asked, codes))
        request.topics = _without(asked, codes)
        if request.topics or not codes:
            await _enlist(context, request)
            response = await context.engines.groups.commit_transactional(
                client_of(context), request, knows_member_epochs=context.version >= TOPIC_IDS
            )
            for done in response.topics:
                codes |= {(done.name, each.partition_index): each.error_code for each in done.partitions}
    except KafkaError as error:
        code = error.code
        if code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS and context.version < KNOWS_LOADING:
            code = ErrorCode.COORDINATOR_NOT_AVAILABLE
        codes = {(topic.name, each.partition_index): code for topic in asked for each in topic.partitions}
    return _answer(asked, codes)


def _unknown(topics: list[TxnOffsetCommitRequestTopic]) -> Codes:
    return {
        (topic.name, each.partition_index): ErrorCode.UNKNOWN_TOPIC_ID
        for topic in topics
        if topic.name.startswith(UNKNOWN)
        for each in topic.partitions
    }


def _without(topics: list[TxnOffsetCommitRequestTopic], codes: Codes) -> list[TxnOffsetCommitRequestTopic]:
    left = (
        TxnOffsetCommitRequestTopic(
            topic.name,
            [each for each in topic.partitions if (topic.name, each.partition_index) not in codes],
        )
        for topic in topics
    )
    return [topic for topic in left if topic.partitions]


async def _enlist(context: Context, request: TxnOffsetCommitRequest) -> None:
    engines = context.engines
    engines.groups.require(request.group_id)
    if context.version < ENLISTED_BY_COMMITTING and not engines.logs.environment.transaction_verification:
        return
    index = engines.groups.partition_for(request.group_id)
    partition = engines.replicas.find(CONSUMER_OFFSETS.encode(), index, by_id=False)
    producer_id, epoch = request.producer_id, request.producer_epoch
    guard: VerificationGuard | None = None

    def begin() -> dict[tuple[int, int], list[TopicPartition]]:
        nonlocal guard
        guard = partition.log.start_verification(
            producer_id, 0, epoch, supports_epoch_bump=context.version >= ENLISTED_BY_COMMITTING
        )
        return {} if guard is None else {(producer_id, epoch): [(CONSUMER_OFFSETS, index)]}

    answers = await engines.transactions.enlisting.ask_in_time(
        request.transactional_id, context.version < ENLISTED_BY_COMMITTING, begin
    )
    code = answers.get((CONSUMER_OFFSETS, index), ErrorCode.NONE)
    if code in ASK_AGAIN:
        code = ErrorCode.COORDINATOR_NOT_AVAILABLE
    if code is ErrorCode.PRODUCER_FENCED:
        code = ErrorCode.INVALID_PRODUCER_EPOCH  # the error code that clients of every version know
    if code is ErrorCode.NONE and not partition.log.is_verified(producer_id, epoch, guard):
        code = ErrorCode.INVALID_TXN_STATE
    if code is ErrorCode.TRANSACTION_ABORTABLE and context.version < 4:
        code = ErrorCode.INVALID_TXN_STATE
    if code is not ErrorCode.NONE:
        raise KafkaError(code)


def _answer(topics: list[TxnOffsetCommitRequestTopic], codes: Codes) -> TxnOffsetCommitResponse:
    return TxnOffsetCommitResponse(
        topics=[
            TxnOffsetCommitResponseTopic(
                topic.name,
                [
                    TxnOffsetCommitResponsePartition(
                        each.partition_index, codes[topic.name, each.partition_index]
                    )
                    for each in topic.partitions
                ],
                topic.topic_id,
            )
            for topic in topics
        ]
    )
