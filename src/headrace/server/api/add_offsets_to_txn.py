"""AddOffsetsToTxn: the transaction will commit offsets of a group, so it reaches the group's partition.

- 2: PRODUCER_FENCED instead of INVALID_PRODUCER_EPOCH  - 3: compact  - 4: TRANSACTION_ABORTABLE
"""

from __future__ import annotations

from headrace.server.api.context import Context
from headrace.server.cluster.internal_topics import CONSUMER_OFFSETS
from headrace.server.security.operations import GROUP, TRANSACTIONAL_ID, Operation
from headrace.wire.errors import ErrorCode, KafkaError
from headrace.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse


async def handle(context: Context, request: AddOffsetsToTxnRequest) -> AddOffsetsToTxnResponse:
    engines = context.engines
    try:
        context.require(Operation.WRITE, TRANSACTIONAL_ID, request.transactional_id)
        context.require(Operation.READ, GROUP, request.group_id)
        await engines.transactions.coordinator.add_partitions(
            request.transactional_id,
            request.producer_id,
            request.producer_epoch,
            [(CONSUMER_OFFSETS, engines.groups.partition_for(request.group_id))],
        )
    except KafkaError as error:
        code = error.code
        if code is ErrorCode.PRODUCER_FENCED and context.version < 2:
            code = ErrorCode.INVALID_PRODUCER_EPOCH
        return AddOffsetsToTxnResponse(error_code=code)
    return AddOffsetsToTxnResponse()
