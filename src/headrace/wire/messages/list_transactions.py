"""ListTransactions (API key 66). Made by tools/generate_messages.py: change that."""

from __future__ import annotations

from headrace.wire.schema import ALWAYS, Field, Message, Request, Response


class ListTransactionsRequest(Request["ListTransactionsResponse"]):
    __slots__ = ("duration_filter", "producer_id_filters", "state_filters", "transactional_id_pattern")
    API_KEY = 66
    VERSIONS = (0, 2)
    FLEXIBLE = 0
    FIELDS = (
        Field("state_filters", "string", (0, ALWAYS), array=True),
        Field("producer_id_filters", "int64", (0, ALWAYS), array=True),
        Field("duration_filter", "int64", (1, ALWAYS), default=-1),
        Field("transactional_id_pattern", "string", (2, ALWAYS), nullable=(2, ALWAYS)),
    )

    def __init__(
        self,
        state_filters: list[str] | None = None,
        producer_id_filters: list[int] | None = None,
        duration_filter: int = -1,
        transactional_id_pattern: str | None = None,
    ) -> None:
        self.state_filters = [] if state_filters is None else state_filters
        self.producer_id_filters = [] if producer_id_filters is None else producer_id_filters
        self.duration_filter = duration_filter
        self.transactional_id_pattern = transactional_id_pattern

    @classmethod
    def reply_type(cls) -> type[ListTransactionsResponse]:
        return ListTransactionsResponse


class TransactionState(Message):
    __slots__ = ("producer_id", "transaction_state", "transactional_id")
    FLEXIBLE = 0
    FIELDS = (
        Field("transactional_id", "string", (0, ALWAYS), default=""),
        Field("producer_id", "int64", (0, ALWAYS), default=0),
        Field("transaction_state", "string", (0, ALWAYS), default=""),
    )

    def __init__(
        self,
        transactional_id: str = "",
        producer_id: int = 0,
        transaction_state: str = "",
    ) -> None:
        self.transactional_id = transactional_id
        self.producer_id = producer_id
        self.transaction_state = transaction_state


class ListTransactionsResponse(Response):
    __slots__ = ("error_code", "throttle_time_ms", "transaction_states", "unknown_state_filters")
    API_KEY = 66
    FLEXIBLE = 0
    FIELDS = (
        Field("throttle_time_ms", "int32", (0, ALWAYS), default=0),
        Field("error_code", "int16", (0, ALWAYS), default=0),
        Field("unknown_state_filters", "string", (0, ALWAYS), array=True),
        Field("transaction_states", "struct", (0, ALWAYS), array=True, struct=TransactionState),
    )

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        unknown_state_filters: list[str] | None = None,
        transaction_states: list[TransactionState] | None = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.unknown_state_filters = [] if unknown_state_filters is None else unknown_state_filters
        self.transaction_states = [] if transaction_states is None else transaction_states
