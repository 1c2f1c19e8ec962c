"""OffsetCommit (API key 8). Made by tools/generate_messages.py: change that."""

from __future__ import annotations

import uuid

from headrace.wire.schema import ALWAYS, ZERO_UUID, Field, Message, Request, Response


class OffsetCommitRequestPartition(Message):
    __slots__ = ("committed_leader_epoch", "committed_metadata", "committed_offset", "partition_index")
    FLEXIBLE = 8
    FIELDS = (
        Field("partition_index", "int32", (2, ALWAYS), default=0),
        Field("committed_offset", "int64", (2, ALWAYS), default=0),
        Field("committed_leader_epoch", "int32", (6, ALWAYS), default=-1),
        Field("committed_metadata", "string", (2, ALWAYS), nullable=(2, ALWAYS), default=""),
    )

    def __init__(
        self,
        partition_index: int = 0,
        committed_offset: int = 0,
        committed_leader_epoch: int = -1,
        committed_metadata: str | None = "",
    ) -> None:
        self.partition_index = partition_index
        self.committed_offset = committed_offset
        self.committed_leader_epoch = committed_leader_epoch
        self.committed_metadata = committed_metadata


class OffsetCommitRequestTopic(Message):
    __slots__ = ("name", "partitions", "topic_id")
    FLEXIBLE = 8
    FIELDS = (
        Field("name", "string", (2, 9), default=""),
        Field("topic_id", "uuid", (10, ALWAYS), default=ZERO_UUID),
        Field("partitions", "struct", (2, ALWAYS), array=True, struct=OffsetCommitRequestPartition),
    )

    def __init__(
        self,
        name: str = "",
        partitions: list[OffsetCommitRequestPartition] | None = None,
        topic_id: uuid.UUID = ZERO_UUID,
    ) -> None:
        self.name = name
        self.partitions = [] if partitions is None else partitions
        self.topic_id = topic_id


class OffsetCommitRequest(Request["OffsetCommitResponse"]):
    __slots__ = (
        "generation_id_or_member_epoch",
        "group_id",
        "group_instance_id",
        "member_id",
        "retention_time_ms",
        "topics",
    )
    API_KEY = 8
    VERSIONS = (2, 10)
    FLEXIBLE = 8
    FIELDS = (
        Field("group_id", "string", (2, ALWAYS), default=""),
        Field("generation_id_or_member_epoch", "int32", (2, ALWAYS), default=-1),
        Field("member_id", "string", (2, ALWAYS), default=""),
        Field("group_instance_id", "string", (7, ALWAYS), nullable=(7, ALWAYS)),
        Field("retention_time_ms", "int64", (2, 4), default=-1),
        Field("topics", "struct", (2, ALWAYS), array=True, struct=OffsetCommitRequestTopic),
    )

    def __init__(
        self,
        group_id: str = "",
        generation_id_or_member_epoch: int = -1,
        member_id: str = "",
        retention_time_ms: int = -1,
        group_instance_id: str | None = None,
        topics: list[OffsetCommitRequestTopic] | None = None,
    ) -> None:
        self.group_id = group_id
        self.generation_id_or_member_epoch = generation_id_or_member_epoch
        self.member_id = member_id
        self.retention_time_ms = retention_time_ms
        self.group_instance_id = group_instance_id
        self.topics = [] if topics is None else topics

    @classmethod
    def reply_type(cls) -> type[OffsetCommitResponse]:
        return OffsetCommitResponse


class OffsetCommitResponsePartition(Message):
    __slots__ = ("error_code", "partition_index")
    FLEXIBLE = 8
    FIELDS = (
        Field("partition_index", "int32", (2, ALWAYS), default=0),
        Field("error_code", "int16", (2, ALWAYS), default=0),
    )

    def __init__(
        self,
        partition_index: int = 0,
        error_code: int = 0,
    ) -> None:
        self.partition_index = partition_index
        self.error_code = error_code


class OffsetCommitResponseTopic(Message):
    __slots__ = ("name", "partitions", "topic_id")
    FLEXIBLE = 8
    FIELDS = (
        Field("name", "string", (2, 9), default=""),
        Field("topic_id", "uuid", (10, ALWAYS), default=ZERO_UUID),
        Field("partitions", "struct", (2, ALWAYS), array=True, struct=OffsetCommitResponsePartition),
    )

    def __init__(
        self,
        name: str = "",
        partitions: list[OffsetCommitResponsePartition] | None = None,
        topic_id: uuid.UUID = ZERO_UUID,
    ) -> None:
        self.name = name
        self.partitions = [] if partitions is None else partitions
        self.topic_id = topic_id


class OffsetCommitResponse(Response):
    __slots__ = ("throttle_time_ms", "topics")
    API_KEY = 8
    FLEXIBLE = 8
    FIELDS = (
        Field("throttle_time_ms", "int32", (3, ALWAYS), default=0),
        Field("topics", "struct", (2, ALWAYS), array=True, struct=OffsetCommitResponseTopic),
    )

    def __init__(
        self,
        throttle_time_ms: int = 0,
        topics: list[OffsetCommitResponseTopic] | None = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.topics = [] if topics is None else topics
