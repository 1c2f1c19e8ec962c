"""DescribeLogDirs (API key 35). Made by tools/generate_messages.py: change that."""

from __future__ import annotations

from headrace.wire.schema import ALWAYS, Field, Message, Request, Response


class DescribableLogDirTopic(Message):
    __slots__ = ("partitions", "topic")
    FLEXIBLE = 2
    FIELDS = (
        Field("topic", "string", (1, ALWAYS), default=""),
        Field("partitions", "int32", (1, ALWAYS), array=True),
    )

    def __init__(
        self,
        topic: str = "",
        partitions: list[int] | None = None,
    ) -> None:
        self.topic = topic
        self.partitions = [] if partitions is None else partitions


class DescribeLogDirsRequest(Request["DescribeLogDirsResponse"]):
    __slots__ = ("topics",)
    API_KEY = 35
    VERSIONS = (1, 5)
    FLEXIBLE = 2
    FIELDS = (
        Field(
            "topics", "struct", (1, ALWAYS), array=True, nullable=(1, ALWAYS), struct=DescribableLogDirTopic
        ),
    )

    def __init__(
        self,
        topics: list[DescribableLogDirTopic] | None = None,
    ) -> None:
        self.topics = topics

    @classmethod
    def reply_type(cls) -> type[DescribeLogDirsResponse]:
        return DescribeLogDirsResponse


class DescribeLogDirsPartition(Message):
    __slots__ = ("is_future_key", "offset_lag", "partition_index", "partition_size")
    FLEXIBLE = 2
    FIELDS = (
        Field("partition_index", "int32", (1, ALWAYS), default=0),
        Field("partition_size", "int64", (1, ALWAYS), default=0),
        Field("offset_lag", "int64", (1, ALWAYS), default=0),
        Field("is_future_key", "bool", (1, ALWAYS), default=False),
    )

    def __init__(
        self,
        partition_index: int = 0,
        partition_size: int = 0,
        offset_lag: int = 0,
        is_future_key: bool = False,
    ) -> None:
        self.partition_index = partition_index
        self.partition_size = partition_size
        self.offset_lag = offset_lag
        self.is_future_key = is_future_key


class DescribeLogDirsTopic(Message):
    __slots__ = ("name", "partitions")
    FLEXIBLE = 2
    FIELDS = (
        Field("name", "string", (1, ALWAYS), default=""),
        Field("partitions", "struct", (1, ALWAYS), array=True, struct=DescribeLogDirsPartition),
    )

    def __init__(
        self,
        name: str = "",
        partitions: list[DescribeLogDirsPartition] | None = None,
    ) -> None:
        self.name = name
        self.partitions = [] if partitions is None else partitions


class DescribeLogDirsResult(Message):
    __slots__ = ("error_code", "is_cordoned", "log_dir", "topics", "total_bytes", "usable_bytes")
    FLEXIBLE = 2
    FIELDS = (
        Field("error_code", "int16", (1, ALWAYS), default=0),
        Field("log_dir", "string", (1, ALWAYS), default=""),
        Field("topics", "struct", (1, ALWAYS), array=True, struct=DescribeLogDirsTopic),
        Field("total_bytes", "int64", (4, ALWAYS), default=-1),
        Field("usable_bytes", "int64", (4, ALWAYS), default=-1),
        Field("is_cordoned", "bool", (5, ALWAYS), default=False),
    )

    def __init__(
        self,
        error_code: int = 0,
        log_dir: str = "",
        topics: list[DescribeLogDirsTopic] | None = None,
        total_bytes: int = -1,
        usable_bytes: int = -1,
        is_cordoned: bool = False,
    ) -> None:
        self.error_code = error_code
        self.log_dir = log_dir
        self.topics = [] if topics is None else topics
        self.total_bytes = total_bytes
        self.usable_bytes = usable_bytes
        self.is_cordoned = is_cordoned


class DescribeLogDirsResponse(Response):
    __slots__ = ("error_code", "results", "throttle_time_ms")
    API_KEY = 35
    FLEXIBLE = 2
    FIELDS = (
        Field("throttle_time_ms", "int32", (1, ALWAYS), default=0),
        Field("error_code", "int16", (3, ALWAYS), default=0),
        Field("results", "struct", (1, ALWAYS), array=True, struct=DescribeLogDirsResult),
    )

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        results: list[DescribeLogDirsResult] | None = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.results = [] if results is None else results
