"""DescribeShareGroupOffsets (API key 90). Made by tools/generate_messages.py: change that."""

from __future__ import annotations

import uuid

from headrace.wire.schema import ALWAYS, ZERO_UUID, Field, Message, Request, Response


class DescribeShareGroupOffsetsRequestTopic(Message):
    __slots__ = ("partitions", "topic_name")
    FLEXIBLE = 0
    FIELDS = (
        Field("topic_name", "string", (0, ALWAYS), default=""),
        Field("partitions", "int32", (0, ALWAYS), array=True),
    )

    def __init__(
        self,
        topic_name: str = "",
        partitions: list[int] | None = None,
    ) -> None:
        self.topic_name = topic_name
        self.partitions = [] if partitions is None else partitions


class DescribeShareGroupOffsetsRequestGroup(Message):
    __slots__ = ("group_id", "topics")
    FLEXIBLE = 0
    FIELDS = (
        Field("group_id", "string", (0, ALWAYS), default=""),
        Field(
            "topics",
            "struct",
            (0, ALWAYS),
            array=True,
            nullable=(0, ALWAYS),
            struct=DescribeShareGroupOffsetsRequestTopic,
        ),
    )

    def __init__(
        self,
        group_id: str = "",
        topics: list[DescribeShareGroupOffsetsRequestTopic] | None = None,
    ) -> None:
        self.group_id = group_id
        self.topics = topics


class DescribeShareGroupOffsetsRequest(Request["DescribeShareGroupOffsetsResponse"]):
    __slots__ = ("groups",)
    API_KEY = 90
    VERSIONS = (0, 1)
    FLEXIBLE = 0
    FIELDS = (
        Field("groups", "struct", (0, ALWAYS), array=True, struct=DescribeShareGroupOffsetsRequestGroup),
    )

    def __init__(
        self,
        groups: list[DescribeShareGroupOffsetsRequestGroup] | None = None,
    ) -> None:
        self.groups = [] if groups is None else groups

    @classmethod
    def reply_type(cls) -> type[DescribeShareGroupOffsetsResponse]:
        return DescribeShareGroupOffsetsResponse


class DescribeShareGroupOffsetsResponsePartition(Message):
    __slots__ = ("error_code", "error_message", "lag", "leader_epoch", "partition_index", "start_offset")
    FLEXIBLE = 0
    FIELDS = (
        Field("partition_index", "int32", (0, ALWAYS), default=0),
        Field("start_offset", "int64", (0, ALWAYS), default=0),
        Field("leader_epoch", "int32", (0, ALWAYS), default=0),
        Field("lag", "int64", (1, ALWAYS), default=-1),
        Field("error_code", "int16", (0, ALWAYS), default=0),
        Field("error_message", "string", (0, ALWAYS), nullable=(0, ALWAYS)),
    )

    def __init__(
        self,
        partition_index: int = 0,
        start_offset: int = 0,
        leader_epoch: int = 0,
        lag: int = -1,
        error_code: int = 0,
        error_message: str | None = None,
    ) -> None:
        self.partition_index = partition_index
        self.start_offset = start_offset
        self.leader_epoch = leader_epoch
        self.lag = lag
        self.error_code = error_code
        self.error_message = error_message


class DescribeShareGroupOffsetsResponseTopic(Message):
    __slots__ = ("partitions", "topic_id", "topic_name")
    FLEXIBLE = 0
    FIELDS = (
        Field("topic_name", "string", (0, ALWAYS), default=""),
        Field("topic_id", "uuid", (0, ALWAYS), default=ZERO_UUID),
        Field(
            "partitions", "struct", (0, ALWAYS), array=True, struct=DescribeShareGroupOffsetsResponsePartition
        ),
    )

    def __init__(
        self,
        topic_name: str = "",
        topic_id: uuid.UUID = ZERO_UUID,
        partitions: list[DescribeShareGroupOffsetsResponsePartition] | None = None,
    ) -> None:
        self.topic_name = topic_name
        self.topic_id = topic_id
        self.partitions = [] if partitions is None else partitions


class DescribeShareGroupOffsetsResponseGroup(Message):
    __slots__ = ("error_code", "error_message", "group_id", "topics")
    FLEXIBLE = 0
    FIELDS = (
        Field("group_id", "string", (0, ALWAYS), default=""),
        Field("topics", "struct", (0, ALWAYS), array=True, struct=DescribeShareGroupOffsetsResponseTopic),
        Field("error_code", "int16", (0, ALWAYS), default=0),
        Field("error_message", "string", (0, ALWAYS), nullable=(0, ALWAYS)),
    )

    def __init__(
        self,
        group_id: str = "",
        topics: list[DescribeShareGroupOffsetsResponseTopic] | None = None,
        error_code: int = 0,
        error_message: str | None = None,
    ) -> None:
        self.group_id = group_id
        self.topics = [] if topics is None else topics
        self.error_code = error_code
        self.error_message = error_message


class DescribeShareGroupOffsetsResponse(Response):
    __slots__ = ("groups", "throttle_time_ms")
    API_KEY = 90
    FLEXIBLE = 0
    FIELDS = (
        Field("throttle_time_ms", "int32", (0, ALWAYS), default=0),
        Field("groups", "struct", (0, ALWAYS), array=True, struct=DescribeShareGroupOffsetsResponseGroup),
    )

    def __init__(
        self,
        throttle_time_ms: int = 0,
        groups: list[DescribeShareGroupOffsetsResponseGroup] | None = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.groups = [] if groups is None else groups
