"""InitProducerId: an id and an epoch, for an idempotent or a transactional producer.

- Without a transactional id every call gets a new producer id.
- With one, the coordinator gives the next epoch, which fences every producer before; an open transaction is aborted
  first, and the client asks again (CONCURRENT_TRANSACTIONS).
- 2: compact  - 3: the producer may say which id and epoch it has  - 4: PRODUCER_FENCED  - 5: TRANSACTION_ABORTABLE
"""

from __future__ import annotations

from headrace.server.api.context import Context
from headrace.server.security.operations import CLUSTER, TOPIC, TRANSACTIONAL_ID, Operation
from headrace.server.transactions.metadata import NO_EPOCH, NO_PRODUCER_ID
from headrace.wire.errors import ErrorCode, KafkaError
from headrace.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse


async def handle(context: Context, request: InitProducerIdRequest) -> InitProducerIdResponse:
    engines = context.engines
    if request.transactional_id is None:
        _check_idempotent_write(context)
        _check_both_or_neither(request)
        return InitProducerIdResponse(producer_id=await engines.producer_ids.next(), producer_epoch=0)
    try:
        context.require(Operation.WRITE, TRANSACTIONAL_ID, request.transactional_id)
        _check_both_or_neither(request)
        producer_id, epoch = await engines.transactions.coordinator.init_producer_id(
            request.transactional_id,
            request.transaction_timeout_ms,
            (request.producer_id, request.producer_epoch),
        )
    except KafkaError as error:
        code = error.code
        if code is ErrorCode.PRODUCER_FENCED and context.version < 4:
            code = ErrorCode.INVALID_PRODUCER_EPOCH
        return InitProducerIdResponse(error_code=code, producer_id=-1, producer_epoch=-1)
    return InitProducerIdResponse(producer_id=producer_id, producer_epoch=epoch)


def _check_both_or_neither(request: InitProducerIdRequest) -> None:
    """A producer id without an epoch, or the reverse, does not identify a producer."""
    if (request.producer_id == NO_PRODUCER_ID) != (request.producer_epoch == NO_EPOCH):
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, "A producer id and its epoch are given together or not at all."
        )


def _check_idempotent_write(context: Context) -> None:
    """A client that may write to any topic may do so idempotently (KIP-679)."""
    if context.may_on_cluster(Operation.IDEMPOTENT_WRITE, asked_for=False):
        return
    if not context.may_on_some(Operation.WRITE, TOPIC, context.engines.cluster.image.topics):
        context.require(Operation.IDEMPOTENT_WRITE, *CLUSTER)
