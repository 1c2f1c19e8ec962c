"""DescribeProducers (API key 61). Made by tools/generate_messages.py: change that."""

from __future__ import annotations

from headrace.wire.schema import ALWAYS, Field, Message, Request, Response


class TopicRequest(Message):
    __slots__ = ("name", "partition_indexes")
    FLEXIBLE = 0
    FIELDS = (
        Field("name", "string", (0, ALWAYS), default=""),
        Field("partition_indexes", "int32", (0, ALWAYS), array=True),
    )

    def __init__(
        self,
        name: str = "",
        partition_indexes: list[int] | None = None,
    ) -> None:
        self.name = name
        self.partition_indexes = [] if partition_indexes is None else partition_indexes


class DescribeProducersRequest(Request["DescribeProducersResponse"]):
    __slots__ = ("topics",)
    API_KEY = 61
    VERSIONS = (0, 0)
    FLEXIBLE = 0
    FIELDS = (Field("topics", "struct", (0, ALWAYS), array=True, struct=TopicRequest),)

    def __init__(
        self,
        topics: list[TopicRequest] | None = None,
    ) -> None:
        self.topics = [] if topics is None else topics

    @classmethod
    def reply_type(cls) -> type[DescribeProducersResponse]:
        return DescribeProducersResponse


class ProducerState(Message):
    __slots__ = (
        "coordinator_epoch",
        "current_txn_start_offset",
        "last_sequence",
        "last_timestamp",
        "producer_epoch",
        "producer_id",
    )
    FLEXIBLE = 0
    FIELDS = (
        Field("producer_id", "int64", (0, ALWAYS), default=0),
        Field("producer_epoch", "int32", (0, ALWAYS), default=0),
        Field("last_sequence", "int32", (0, ALWAYS), default=-1),
        Field("last_timestamp", "int64", (0, ALWAYS), default=-1),
        Field("coordinator_epoch", "int32", (0, ALWAYS), default=0),
        Field("current_txn_start_offset", "int64", (0, ALWAYS), default=-1),
    )

    def __init__(
        self,
        producer_id: int = 0,
        producer_epoch: int = 0,
        last_sequence: int = -1,
        last_timestamp: int = -1,
        coordinator_epoch: int = 0,
        current_txn_start_offset: int = -1,
    ) -> None:
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.last_sequence = last_sequence
        self.last_timestamp = last_timestamp
        self.coordinator_epoch = coordinator_epoch
        self.current_txn_start_offset = current_txn_start_offset


class PartitionResponse(Message):
    __slots__ = ("active_producers", "error_code", "error_message", "partition_index")
    FLEXIBLE = 0
    FIELDS = (
        Field("partition_index", "int32", (0, ALWAYS), default=0),
        Field("error_code", "int16", (0, ALWAYS), default=0),
        Field("error_message", "string", (0, ALWAYS), nullable=(0, ALWAYS)),
        Field("active_producers", "struct", (0, ALWAYS), array=True, struct=ProducerState),
    )

    def __init__(
        self,
        partition_index: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        active_producers: list[ProducerState] | None = None,
    ) -> None:
        self.partition_index = partition_index
        self.error_code = error_code
        self.error_message = error_message
        self.active_producers = [] if active_producers is None else active_producers


class TopicResponse(Message):
    __slots__ = ("name", "partitions")
    FLEXIBLE = 0
    FIELDS = (
        Field("name", "string", (0, ALWAYS), default=""),
        Field("partitions", "struct", (0, ALWAYS), array=True, struct=PartitionResponse),
    )

    def __init__(
        self,
        name: str = "",
        partitions: list[PartitionResponse] | None = None,
    ) -> None:
        self.name = name
        self.partitions = [] if partitions is None else partitions


class DescribeProducersResponse(Response):
    __slots__ = ("throttle_time_ms", "topics")
    API_KEY = 61
    FLEXIBLE = 0
    FIELDS = (
        Field("throttle_time_ms", "int32", (0, ALWAYS), default=0),
        Field("topics", "struct", (0, ALWAYS), array=True, struct=TopicResponse),
    )

    def __init__(
        self,
        throttle_time_ms: int = 0,
        topics: list[TopicResponse] | None = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.topics = [] if topics is None else topics
