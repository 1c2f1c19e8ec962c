"""DescribeTransactions (API key 65). Made by tools/generate_messages.py: change that."""

from __future__ import annotations

from headrace.wire.schema import ALWAYS, Field, Message, Request, Response


class DescribeTransactionsRequest(Request["DescribeTransactionsResponse"]):
    __slots__ = ("transactional_ids",)
    API_KEY = 65
    VERSIONS = (0, 0)
    FLEXIBLE = 0
    FIELDS = (Field("transactional_ids", "string", (0, ALWAYS), array=True),)

    def __init__(
        self,
        transactional_ids: list[str] | None = None,
    ) -> None:
        self.transactional_ids = [] if transactional_ids is None else transactional_ids

    @classmethod
    def reply_type(cls) -> type[DescribeTransactionsResponse]:
        return DescribeTransactionsResponse


class TopicData(Message):
    __slots__ = ("partitions", "topic")
    FLEXIBLE = 0
    FIELDS = (
        Field("topic", "string", (0, ALWAYS), default=""),
        Field("partitions", "int32", (0, ALWAYS), array=True),
    )

    def __init__(
        self,
        topic: str = "",
        partitions: list[int] | None = None,
    ) -> None:
        self.topic = topic
        self.partitions = [] if partitions is None else partitions


class TransactionState(Message):
    __slots__ = (
        "error_code",
        "producer_epoch",
        "producer_id",
        "topics",
        "transaction_start_time_ms",
        "transaction_state",
        "transaction_timeout_ms",
        "transactional_id",
    )
    FLEXIBLE = 0
    FIELDS = (
        Field("error_code", "int16", (0, ALWAYS), default=0),
        Field("transactional_id", "string", (0, ALWAYS), default=""),
        Field("transaction_state", "string", (0, ALWAYS), default=""),
        Field("transaction_timeout_ms", "int32", (0, ALWAYS), default=0),
        Field("transaction_start_time_ms", "int64", (0, ALWAYS), default=0),
        Field("producer_id", "int64", (0, ALWAYS), default=0),
        Field("producer_epoch", "int16", (0, ALWAYS), default=0),
        Field("topics", "struct", (0, ALWAYS), array=True, struct=TopicData),
    )

    def __init__(
        self,
        error_code: int = 0,
        transactional_id: str = "",
        transaction_state: str = "",
        transaction_timeout_ms: int = 0,
        transaction_start_time_ms: int = 0,
        producer_id: int = 0,
        producer_epoch: int = 0,
        topics: list[TopicData] | None = None,
    ) -> None:
        self.error_code = error_code
        self.transactional_id = transactional_id
        self.transaction_state = transaction_state
        self.transaction_timeout_ms = transaction_timeout_ms
        self.transaction_start_time_ms = transaction_start_time_ms
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.topics = [] if topics is None else topics


class DescribeTransactionsResponse(Response):
    __slots__ = ("throttle_time_ms", "transaction_states")
    API_KEY = 65
    FLEXIBLE = 0
    FIELDS = (
        Field("throttle_time_ms", "int32", (0, ALWAYS), default=0),
        Field("transaction_states", "struct", (0, ALWAYS), array=True, struct=TransactionState),
    )

    def __init__(
        self,
        throttle_time_ms: int = 0,
        transaction_states: list[TransactionState] | None = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.transaction_states = [] if transaction_states is None else transaction_states
