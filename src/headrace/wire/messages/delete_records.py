"""DeleteRecords (API key 21). Made by tools/generate_messages.py: change that."""

from __future__ import annotations

from headrace.wire.schema import ALWAYS, Field, Message, Request, Response


class DeleteRecordsPartition(Message):
    __slots__ = ("offset", "partition_index")
    FLEXIBLE = 2
    FIELDS = (
        Field("partition_index", "int32", (0, ALWAYS), default=0),
        Field("offset", "int64", (0, ALWAYS), default=0),
    )

    def __init__(
        self,
        partition_index: int = 0,
        offset: int = 0,
    ) -> None:
        self.partition_index = partition_index
        self.offset = offset


class DeleteRecordsTopic(Message):
    __slots__ = ("name", "partitions")
    FLEXIBLE = 2
    FIELDS = (
        Field("name", "string", (0, ALWAYS), default=""),
        Field("partitions", "struct", (0, ALWAYS), array=True, struct=DeleteRecordsPartition),
    )

    def __init__(
        self,
        name: str = "",
        partitions: list[DeleteRecordsPartition] | None = None,
    ) -> None:
        self.name = name
        self.partitions = [] if partitions is None else partitions


class DeleteRecordsRequest(Request["DeleteRecordsResponse"]):
    __slots__ = ("timeout_ms", "topics")
    API_KEY = 21
    VERSIONS = (0, 2)
    FLEXIBLE = 2
    FIELDS = (
        Field("topics", "struct", (0, ALWAYS), array=True, struct=DeleteRecordsTopic),
        Field("timeout_ms", "int32", (0, ALWAYS), default=0),
    )

    def __init__(
        self,
        topics: list[DeleteRecordsTopic] | None = None,
        timeout_ms: int = 0,
    ) -> None:
        self.topics = [] if topics is None else topics
        self.timeout_ms = timeout_ms

    @classmethod
    def reply_type(cls) -> type[DeleteRecordsResponse]:
        return DeleteRecordsResponse


class DeleteRecordsPartitionResult(Message):
    __slots__ = ("error_code", "low_watermark", "partition_index")
    FLEXIBLE = 2
    FIELDS = (
        Field("partition_index", "int32", (0, ALWAYS), default=0),
        Field("low_watermark", "int64", (0, ALWAYS), default=0),
        Field("error_code", "int16", (0, ALWAYS), default=0),
    )

    def __init__(
        self,
        partition_index: int = 0,
        low_watermark: int = 0,
        error_code: int = 0,
    ) -> None:
        self.partition_index = partition_index
        self.low_watermark = low_watermark
        self.error_code = error_code


class DeleteRecordsTopicResult(Message):
    __slots__ = ("name", "partitions")
    FLEXIBLE = 2
    FIELDS = (
        Field("name", "string", (0, ALWAYS), default=""),
        Field("partitions", "struct", (0, ALWAYS), array=True, struct=DeleteRecordsPartitionResult),
    )

    def __init__(
        self,
        name: str = "",
        partitions: list[DeleteRecordsPartitionResult] | None = None,
    ) -> None:
        self.name = name
        self.partitions = [] if partitions is None else partitions


class DeleteRecordsResponse(Response):
    __slots__ = ("throttle_time_ms", "topics")
    API_KEY = 21
    FLEXIBLE = 2
    FIELDS = (
        Field("throttle_time_ms", "int32", (0, ALWAYS), default=0),
        Field("topics", "struct", (0, ALWAYS), array=True, struct=DeleteRecordsTopicResult),
    )

    def __init__(
        self,
        throttle_time_ms: int = 0,
        topics: list[DeleteRecordsTopicResult] | None = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.topics = [] if topics is None else topics
