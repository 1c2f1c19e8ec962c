"""ListTransactions: the transactional ids whose coordinator is here.

- Filters by state, by producer id  - 1: by how long they have been running  - 2: by a pattern on the id
"""

from __future__ import annotations

import re2

from headrace.server.api.context import Context
from headrace.server.security.operations import TRANSACTIONAL_ID, Operation
from headrace.server.transactions.metadata import Status, Transaction
from headrace.wire.errors import ErrorCode, KafkaError
from headrace.wire.messages.list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
    TransactionState,
)

LABELS = {status.label for status in Status} | {"Dead", "PrepareEpochFence"}
"""Only Kafka uses the last two states: the names are valid, but no transaction here is ever in them."""


def handle(context: Context, request: ListTransactionsRequest) -> ListTransactionsResponse:
    try:
        pattern = _compile(request.transactional_id_pattern) if request.transactional_id_pattern else None
    except re2.error:
        return ListTransactionsResponse(error_code=ErrorCode.INVALID_REGULAR_EXPRESSION)
    now = context.engines.clock.now_ms()

    def wanted(transaction: Transaction) -> bool:
        return (
            (not request.state_filters or transaction.status.label in request.state_filters)
            and (not request.producer_id_filters or transaction.producer_id in request.producer_id_filters)
            and (
                request.duration_filter < 0
                or (transaction.started_ms >= 0 and now - transaction.started_ms > request.duration_filter)
            )
            and (pattern is None or pattern.fullmatch(transaction.transactional_id) is not None)
            and context.may(Operation.DESCRIBE, TRANSACTIONAL_ID, transaction.transactional_id)
        )

    try:
        found = [each for each in context.engines.transactions.coordinator.all() if wanted(each)]
    except KafkaError as error:
        return ListTransactionsResponse(error_code=error.code)
    return ListTransactionsResponse(
        unknown_state_filters=[each for each in request.state_filters if each not in LABELS],
        transaction_states=[
            TransactionState(each.transactional_id, each.producer_id, each.status.label) for each in found
        ],
    )


def _compile(pattern: str) -> re2._Regexp:
    options = re2.Options()
    options.log_errors = False  # The client gets the error.
    return re2.compile(pattern, options)
