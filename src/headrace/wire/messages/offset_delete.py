"""OffsetDelete (API key 47). Made by tools/generate_messages.py: change that."""

from __future__ import annotations

from headrace.wire.schema import ALWAYS, Field, Message, Request, Response


class OffsetDeleteRequestPartition(Message):
    __slots__ = ("partition_index",)
    FIELDS = (Field("partition_index", "int32", (0, ALWAYS), default=0),)

    def __init__(
        self,
        partition_index: int = 0,
    ) -> None:
        self.partition_index = partition_index


class OffsetDeleteRequestTopic(Message):
    __slots__ = ("name", "partitions")
    FIELDS = (
        Field("name", "string", (0, ALWAYS), default=""),
        Field("partitions", "struct", (0, ALWAYS), array=True, struct=OffsetDeleteRequestPartition),
    )

    def __init__(
        self,
        name: str = "",
        partitions: list[OffsetDeleteRequestPartition] | None = None,
    ) -> None:
        self.name = name
        self.partitions = [] if partitions is None else partitions


class OffsetDeleteRequest(Request["OffsetDeleteResponse"]):
    __slots__ = ("group_id", "topics")
    API_KEY = 47
    VERSIONS = (0, 0)
    FIELDS = (
        Field("group_id", "string", (0, ALWAYS), default=""),
        Field("topics", "struct", (0, ALWAYS), array=True, struct=OffsetDeleteRequestTopic),
    )

    def __init__(
        self,
        group_id: str = "",
        topics: list[OffsetDeleteRequestTopic] | None = None,
    ) -> None:
        self.group_id = group_id
        self.topics = [] if topics is None else topics

    @classmethod
    def reply_type(cls) -> type[OffsetDeleteResponse]:
        return OffsetDeleteResponse


class OffsetDeleteResponsePartition(Message):
    __slots__ = ("error_code", "partition_index")
    FIELDS = (
        Field("partition_index", "int32", (0, ALWAYS), default=0),
        Field("error_code", "int16", (0, ALWAYS), default=0),
    )

    def __init__(
        self,
        partition_index: int = 0,
        error_code: int = 0,
    ) -> None:
        self.partition_index = partition_index
        self.error_code = error_code


class OffsetDeleteResponseTopic(Message):
    __slots__ = ("name", "partitions")
    FIELDS = (
        Field("name", "string", (0, ALWAYS), default=""),
        Field("partitions", "struct", (0, ALWAYS), array=True, struct=OffsetDeleteResponsePartition),
    )

    def __init__(
        self,
        name: str = "",
        partitions: list[OffsetDeleteResponsePartition] | None = None,
    ) -> None:
        self.name = name
        self.partitions = [] if partitions is None else partitions


class OffsetDeleteResponse(Response):
    __slots__ = ("error_code", "throttle_time_ms", "topics")
    API_KEY = 47
    FIELDS = (
        Field("error_code", "int16", (0, ALWAYS), default=0),
        Field("throttle_time_ms", "int32", (0, ALWAYS), default=0),
        Field("topics", "struct", (0, ALWAYS), array=True, struct=OffsetDeleteResponseTopic),
    )

    def __init__(
        self,
        error_code: int = 0,
        throttle_time_ms: int = 0,
        topics: list[OffsetDeleteResponseTopic] | None = None,
    ) -> None:
        self.error_code = error_code
        self.throttle_time_ms = throttle_time_ms
        self.topics = [] if topics is None else topics
