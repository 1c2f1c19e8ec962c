"""ListOffsets (API key 2). Made by tools/generate_messages.py: change that."""

from __future__ import annotations

from headrace.wire.schema import ALWAYS, Field, Message, Request, Response


class ListOffsetsPartition(Message):
    __slots__ = ("current_leader_epoch", "max_num_offsets", "partition_index", "timestamp")
    FLEXIBLE = 6
    FIELDS = (
        Field("partition_index", "int32", (0, ALWAYS), default=0),
        Field("current_leader_epoch", "int32", (4, ALWAYS), default=-1),
        Field("timestamp", "int64", (0, ALWAYS), default=0),
        Field("max_num_offsets", "int32", (0, 0), default=1),
    )

    def __init__(
        self,
        partition_index: int = 0,
        current_leader_epoch: int = -1,
        timestamp: int = 0,
        max_num_offsets: int = 1,
    ) -> None:
        self.partition_index = partition_index
        self.current_leader_epoch = current_leader_epoch
        self.timestamp = timestamp
        self.max_num_offsets = max_num_offsets


class ListOffsetsTopic(Message):
    __slots__ = ("name", "partitions")
    FLEXIBLE = 6
    FIELDS = (
        Field("name", "string", (0, ALWAYS), default=""),
        Field("partitions", "struct", (0, ALWAYS), array=True, struct=ListOffsetsPartition),
    )

    def __init__(
        self,
        name: str = "",
        partitions: list[ListOffsetsPartition] | None = None,
    ) -> None:
        self.name = name
        self.partitions = [] if partitions is None else partitions


class ListOffsetsRequest(Request["ListOffsetsResponse"]):
    __slots__ = ("isolation_level", "replica_id", "timeout_ms", "topics")
    API_KEY = 2
    VERSIONS = (0, 11)
    FLEXIBLE = 6
    FIELDS = (
        Field("replica_id", "int32", (0, ALWAYS), default=0),
        Field("isolation_level", "int8", (2, ALWAYS), default=0),
        Field("topics", "struct", (0, ALWAYS), array=True, struct=ListOffsetsTopic),
        Field("timeout_ms", "int32", (10, ALWAYS), default=0),
    )

    def __init__(
        self,
        replica_id: int = 0,
        isolation_level: int = 0,
        topics: list[ListOffsetsTopic] | None = None,
        timeout_ms: int = 0,
    ) -> None:
        self.replica_id = replica_id
        self.isolation_level = isolation_level
        self.topics = [] if topics is None else topics
        self.timeout_ms = timeout_ms

    @classmethod
    def reply_type(cls) -> type[ListOffsetsResponse]:
        return ListOffsetsResponse


class ListOffsetsPartitionResponse(Message):
    __slots__ = ("error_code", "leader_epoch", "offset", "old_style_offsets", "partition_index", "timestamp")
    FLEXIBLE = 6
    FIELDS = (
        Field("partition_index", "int32", (0, ALWAYS), default=0),
        Field("error_code", "int16", (0, ALWAYS), default=0),
        Field("timestamp", "int64", (1, ALWAYS), default=-1),
        Field("offset", "int64", (1, ALWAYS), default=-1),
        Field("leader_epoch", "int32", (4, ALWAYS), default=-1),
        Field("old_style_offsets", "int64", (0, 0), array=True),
    )

    def __init__(
        self,
        partition_index: int = 0,
        error_code: int = 0,
        timestamp: int = -1,
        offset: int = -1,
        leader_epoch: int = -1,
        old_style_offsets: list[int] | None = None,
    ) -> None:
        self.partition_index = partition_index
        self.error_code = error_code
        self.timestamp = timestamp
        self.offset = offset
        self.leader_epoch = leader_epoch
        self.old_style_offsets = [] if old_style_offsets is None else old_style_offsets


class ListOffsetsTopicResponse(Message):
    __slots__ = ("name", "partitions")
    FLEXIBLE = 6
    FIELDS = (
        Field("name", "string", (0, ALWAYS), default=""),
        Field("partitions", "struct", (0, ALWAYS), array=True, struct=ListOffsetsPartitionResponse),
    )

    def __init__(
        self,
        name: str = "",
        partitions: list[ListOffsetsPartitionResponse] | None = None,
    ) -> None:
        self.name = name
        self.partitions = [] if partitions is None else partitions


class ListOffsetsResponse(Response):
    __slots__ = ("throttle_time_ms", "topics")
    API_KEY = 2
    FLEXIBLE = 6
    FIELDS = (
        Field("throttle_time_ms", "int32", (2, ALWAYS), default=0),
        Field("topics", "struct", (0, ALWAYS), array=True, struct=ListOffsetsTopicResponse),
    )

    def __init__(
        self,
        throttle_time_ms: int = 0,
        topics: list[ListOffsetsTopicResponse] | None = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.topics = [] if topics is None else topics
