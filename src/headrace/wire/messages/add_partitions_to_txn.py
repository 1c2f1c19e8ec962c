"""AddPartitionsToTxn (API key 24). Made by tools/generate_messages.py: change that."""

from __future__ import annotations

from headrace.wire.schema import ALWAYS, Field, Message, Request, Response


class AddPartitionsToTxnTopic(Message):
    __slots__ = ("name", "partitions")
    FLEXIBLE = 3
    FIELDS = (
        Field("name", "string", (0, ALWAYS), default=""),
        Field("partitions", "int32", (0, ALWAYS), array=True),
    )

    def __init__(
        self,
        name: str = "",
        partitions: list[int] | None = None,
    ) -> None:
        self.name = name
        self.partitions = [] if partitions is None else partitions


class AddPartitionsToTxnTransaction(Message):
    __slots__ = ("producer_epoch", "producer_id", "topics", "transactional_id", "verify_only")
    FLEXIBLE = 4
    FIELDS = (
        Field("transactional_id", "string", (4, ALWAYS), default=""),
        Field("producer_id", "int64", (4, ALWAYS), default=0),
        Field("producer_epoch", "int16", (4, ALWAYS), default=0),
        Field("verify_only", "bool", (4, ALWAYS), default=False),
        Field("topics", "struct", (4, ALWAYS), array=True, struct=AddPartitionsToTxnTopic),
    )

    def __init__(
        self,
        transactional_id: str = "",
        producer_id: int = 0,
        producer_epoch: int = 0,
        verify_only: bool = False,
        topics: list[AddPartitionsToTxnTopic] | None = None,
    ) -> None:
        self.transactional_id = transactional_id
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.verify_only = verify_only
        self.topics = [] if topics is None else topics


class AddPartitionsToTxnRequest(Request["AddPartitionsToTxnResponse"]):
    __slots__ = (
        "transactions",
        "v3_and_below_producer_epoch",
        "v3_and_below_producer_id",
        "v3_and_below_topics",
        "v3_and_below_transactional_id",
    )
    API_KEY = 24
    VERSIONS = (0, 5)
    FLEXIBLE = 3
    FIELDS = (
        Field("transactions", "struct", (4, ALWAYS), array=True, struct=AddPartitionsToTxnTransaction),
        Field("v3_and_below_transactional_id", "string", (0, 3), default=""),
        Field("v3_and_below_producer_id", "int64", (0, 3), default=0),
        Field("v3_and_below_producer_epoch", "int16", (0, 3), default=0),
        Field("v3_and_below_topics", "struct", (0, 3), array=True, struct=AddPartitionsToTxnTopic),
    )

    def __init__(
        self,
        v3_and_below_transactional_id: str = "",
        v3_and_below_producer_id: int = 0,
        v3_and_below_producer_epoch: int = 0,
        v3_and_below_topics: list[AddPartitionsToTxnTopic] | None = None,
        transactions: list[AddPartitionsToTxnTransaction] | None = None,
    ) -> None:
        self.v3_and_below_transactional_id = v3_and_below_transactional_id
        self.v3_and_below_producer_id = v3_and_below_producer_id
        self.v3_and_below_producer_epoch = v3_and_below_producer_epoch
        self.v3_and_below_topics = [] if v3_and_below_topics is None else v3_and_below_topics
        self.transactions = [] if transactions is None else transactions

    @classmethod
    def reply_type(cls) -> type[AddPartitionsToTxnResponse]:
        return AddPartitionsToTxnResponse


class AddPartitionsToTxnPartitionResult(Message):
    __slots__ = ("partition_error_code", "partition_index")
    FLEXIBLE = 3
    FIELDS = (
        Field("partition_index", "int32", (0, ALWAYS), default=0),
        Field("partition_error_code", "int16", (0, ALWAYS), default=0),
    )

    def __init__(
        self,
        partition_index: int = 0,
        partition_error_code: int = 0,
    ) -> None:
        self.partition_index = partition_index
        self.partition_error_code = partition_error_code


class AddPartitionsToTxnTopicResult(Message):
    __slots__ = ("name", "results_by_partition")
    FLEXIBLE = 3
    FIELDS = (
        Field("name", "string", (0, ALWAYS), default=""),
        Field(
            "results_by_partition",
            "struct",
            (0, ALWAYS),
            array=True,
            struct=AddPartitionsToTxnPartitionResult,
        ),
    )

    def __init__(
        self,
        name: str = "",
        results_by_partition: list[AddPartitionsToTxnPartitionResult] | None = None,
    ) -> None:
        self.name = name
        self.results_by_partition = [] if results_by_partition is None else results_by_partition


class AddPartitionsToTxnResult(Message):
    __slots__ = ("topic_results", "transactional_id")
    FLEXIBLE = 4
    FIELDS = (
        Field("transactional_id", "string", (4, ALWAYS), default=""),
        Field("topic_results", "struct", (4, ALWAYS), array=True, struct=AddPartitionsToTxnTopicResult),
    )

    def __init__(
        self,
        transactional_id: str = "",
        topic_results: list[AddPartitionsToTxnTopicResult] | None = None,
    ) -> None:
        self.transactional_id = transactional_id
        self.topic_results = [] if topic_results is None else topic_results


class AddPartitionsToTxnResponse(Response):
    __slots__ = ("error_code", "results_by_topic_v3_and_below", "results_by_transaction", "throttle_time_ms")
    API_KEY = 24
    FLEXIBLE = 3
    FIELDS = (
        Field("throttle_time_ms", "int32", (0, ALWAYS), default=0),
        Field("error_code", "int16", (4, ALWAYS), default=0),
        Field("results_by_transaction", "struct", (4, ALWAYS), array=True, struct=AddPartitionsToTxnResult),
        Field(
            "results_by_topic_v3_and_below",
            "struct",
            (0, 3),
            array=True,
            struct=AddPartitionsToTxnTopicResult,
        ),
    )

    def __init__(
        self,
        throttle_time_ms: int = 0,
        results_by_topic_v3_and_below: list[AddPartitionsToTxnTopicResult] | None = None,
        error_code: int = 0,
        results_by_transaction: list[AddPartitionsToTxnResult] | None = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.results_by_topic_v3_and_below = (
            [] if results_by_topic_v3_and_below is None else results_by_topic_v3_and_below
        )
        self.error_code = error_code
        self.results_by_transaction = [] if results_by_transaction is None else results_by_transaction
