"""AlterShareGroupOffsets (API key 91). Made by tools/generate_messages.py: change that."""

from __future__ import annotations

import uuid

from headrace.wire.schema import ALWAYS, ZERO_UUID, Field, Message, Request, Response


class AlterShareGroupOffsetsRequestPartition(Message):
    __slots__ = ("partition_index", "start_offset")
    FLEXIBLE = 0
    FIELDS = (
        Field("partition_index", "int32", (0, ALWAYS), default=0),
        Field("start_offset", "int64", (0, ALWAYS), default=0),
    )

    def __init__(
        self,
        partition_index: int = 0,
        start_offset: int = 0,
    ) -> None:
        self.partition_index = partition_index
        self.start_offset = start_offset


class AlterShareGroupOffsetsRequestTopic(Message):
    __slots__ = ("partitions", "topic_name")
    FLEXIBLE = 0
    FIELDS = (
        Field("topic_name", "string", (0, ALWAYS), default=""),
        Field("partitions", "struct", (0, ALWAYS), array=True, struct=AlterShareGroupOffsetsRequestPartition),
    )

    def __init__(
        self,
        topic_name: str = "",
        partitions: list[AlterShareGroupOffsetsRequestPartition] | None = None,
    ) -> None:
        self.topic_name = topic_name
        self.partitions = [] if partitions is None else partitions


class AlterShareGroupOffsetsRequest(Request["AlterShareGroupOffsetsResponse"]):
    __slots__ = ("group_id", "topics")
    API_KEY = 91
    VERSIONS = (0, 0)
    FLEXIBLE = 0
    FIELDS = (
        Field("group_id", "string", (0, ALWAYS), default=""),
        Field("topics", "struct", (0, ALWAYS), array=True, struct=AlterShareGroupOffsetsRequestTopic),
    )

    def __init__(
        self,
        group_id: str = "",
        topics: list[AlterShareGroupOffsetsRequestTopic] | None = None,
    ) -> None:
        self.group_id = group_id
        self.topics = [] if topics is None else topics

    @classmethod
    def reply_type(cls) -> type[AlterShareGroupOffsetsResponse]:
        return AlterShareGroupOffsetsResponse


class AlterShareGroupOffsetsResponsePartition(Message):
    __slots__ = ("error_code", "error_message", "partition_index")
    FLEXIBLE = 0
    FIELDS = (
        Field("partition_index", "int32", (0, ALWAYS), default=0),
        Field("error_code", "int16", (0, ALWAYS), default=0),
        Field("error_message", "string", (0, ALWAYS), nullable=(0, ALWAYS)),
    )

    def __init__(
        self,
        partition_index: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
    ) -> None:
        self.partition_index = partition_index
        self.error_code = error_code
        self.error_message = error_message


class AlterShareGroupOffsetsResponseTopic(Message):
    __slots__ = ("partitions", "topic_id", "topic_name")
    FLEXIBLE = 0
    FIELDS = (
        Field("topic_name", "string", (0, ALWAYS), default=""),
        Field("topic_id", "uuid", (0, ALWAYS), default=ZERO_UUID),
        Field(
            "partitions", "struct", (0, ALWAYS), array=True, struct=AlterShareGroupOffsetsResponsePartition
        ),
    )

    def __init__(
        self,
        topic_name: str = "",
        topic_id: uuid.UUID = ZERO_UUID,
        partitions: list[AlterShareGroupOffsetsResponsePartition] | None = None,
    ) -> None:
        self.topic_name = topic_name
        self.topic_id = topic_id
        self.partitions = [] if partitions is None else partitions


class AlterShareGroupOffsetsResponse(Response):
    __slots__ = ("error_code", "error_message", "responses", "throttle_time_ms")
    API_KEY = 91
    FLEXIBLE = 0
    FIELDS = (
        Field("throttle_time_ms", "int32", (0, ALWAYS), default=0),
        Field("error_code", "int16", (0, ALWAYS), default=0),
        Field("error_message", "string", (0, ALWAYS), nullable=(0, ALWAYS)),
        Field("responses", "struct", (0, ALWAYS), array=True, struct=AlterShareGroupOffsetsResponseTopic),
    )

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        responses: list[AlterShareGroupOffsetsResponseTopic] | None = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.responses = [] if responses is None else responses
