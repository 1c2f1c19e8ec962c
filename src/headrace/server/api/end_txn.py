"""EndTxn: commits or aborts. Answered when the decision is stored; the markers follow.

- 2: PRODUCER_FENCED instead of INVALID_PRODUCER_EPOCH  - 3: compact  - 4: TRANSACTION_ABORTABLE
- 5: transaction version 2: the epoch grows with every transaction, and the answer has the new one
"""

from __future__ import annotations

from headrace.server.api.context import Context
from headrace.server.coordinator.promise import Promise
from headrace.server.security.operations import TRANSACTIONAL_ID, Operation
from headrace.wire.errors import ErrorCode, KafkaError
from headrace.wire.messages.end_txn import EndTxnRequest, EndTxnResponse


def handle(context: Context, request: EndTxnRequest) -> Promise[EndTxnResponse]:
    context.require(Operation.WRITE, TRANSACTIONAL_ID, request.transactional_id)
    ended = context.engines.transactions.coordinator.end(
        request.transactional_id,
        request.producer_id,
        request.producer_epoch,
        request.committed,
        client_version=2 if context.version >= 5 else 0,
    )

    def respond(known: Promise[tuple[int, int]]) -> EndTxnResponse:
        try:
            producer_id, epoch = known.result()
        except KafkaError as error:
            code = error.code
            if code is ErrorCode.PRODUCER_FENCED and context.version < 2:
                code = ErrorCode.INVALID_PRODUCER_EPOCH
            return EndTxnResponse(error_code=code)
        return EndTxnResponse(producer_id=producer_id, producer_epoch=epoch)

    return ended.then(respond)
