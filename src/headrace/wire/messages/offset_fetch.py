"""OffsetFetch (API key 9). Made by tools/generate_messages.py: change that."""

from __future__ import annotations

import uuid

from headrace.wire.schema import ALWAYS, ZERO_UUID, Field, Message, Request, Response


class OffsetFetchRequestTopic(Message):
    __slots__ = ("name", "partition_indexes")
    FLEXIBLE = 6
    FIELDS = (
        Field("name", "string", (1, ALWAYS), default=""),
        Field("partition_indexes", "int32", (1, ALWAYS), array=True),
    )

    def __init__(
        self,
        name: str = "",
        partition_indexes: list[int] | None = None,
    ) -> None:
        self.name = name
        self.partition_indexes = [] if partition_indexes is None else partition_indexes


class OffsetFetchRequestTopics(Message):
    __slots__ = ("name", "partition_indexes", "topic_id")
    FLEXIBLE = 8
    FIELDS = (
        Field("name", "string", (8, 9), default=""),
        Field("topic_id", "uuid", (10, ALWAYS), default=ZERO_UUID),
        Field("partition_indexes", "int32", (8, ALWAYS), array=True),
    )

    def __init__(
        self,
        name: str = "",
        partition_indexes: list[int] | None = None,
        topic_id: uuid.UUID = ZERO_UUID,
    ) -> None:
        self.name = name
        self.partition_indexes = [] if partition_indexes is None else partition_indexes
        self.topic_id = topic_id


class OffsetFetchRequestGroup(Message):
    __slots__ = ("group_id", "member_epoch", "member_id", "topics")
    FLEXIBLE = 8
    FIELDS = (
        Field("group_id", "string", (8, ALWAYS), default=""),
        Field("member_id", "string", (9, ALWAYS), nullable=(9, ALWAYS)),
        Field("member_epoch", "int32", (9, ALWAYS), default=-1),
        Field(
            "topics", "struct", (8, ALWAYS), array=True, nullable=(8, ALWAYS), struct=OffsetFetchRequestTopics
        ),
    )

    def __init__(
        self,
        group_id: str = "",
        member_id: str | None = None,
        member_epoch: int = -1,
        topics: list[OffsetFetchRequestTopics] | None = None,
    ) -> None:
        self.group_id = group_id
        self.member_id = member_id
        self.member_epoch = member_epoch
        self.topics = topics


class OffsetFetchRequest(Request["OffsetFetchResponse"]):
    __slots__ = ("group_id", "groups", "require_stable", "topics")
    API_KEY = 9
    VERSIONS = (1, 10)
    FLEXIBLE = 6
    FIELDS = (
        Field("group_id", "string", (1, 7), default=""),
        Field("topics", "struct", (1, 7), array=True, nullable=(2, 7), struct=OffsetFetchRequestTopic),
        Field("groups", "struct", (8, ALWAYS), array=True, struct=OffsetFetchRequestGroup),
        Field("require_stable", "bool", (7, ALWAYS), default=False),
    )

    def __init__(
        self,
        group_id: str = "",
        topics: list[OffsetFetchRequestTopic] | None = None,
        groups: list[OffsetFetchRequestGroup] | None = None,
        require_stable: bool = False,
    ) -> None:
        self.group_id = group_id
        self.topics = topics
        self.groups = [] if groups is None else groups
        self.require_stable = require_stable

    @classmethod
    def reply_type(cls) -> type[OffsetFetchResponse]:
        return OffsetFetchResponse


class OffsetFetchResponsePartition(Message):
    __slots__ = ("committed_leader_epoch", "committed_offset", "error_code", "metadata", "partition_index")
    FLEXIBLE = 6
    FIELDS = (
        Field("partition_index", "int32", (1, ALWAYS), default=0),
        Field("committed_offset", "int64", (1, ALWAYS), default=0),
        Field("committed_leader_epoch", "int32", (5, ALWAYS), default=-1),
        Field("metadata", "string", (1, ALWAYS), nullable=(1, ALWAYS), default=""),
        Field("error_code", "int16", (1, ALWAYS), default=0),
    )

    def __init__(
        self,
        partition_index: int = 0,
        committed_offset: int = 0,
        committed_leader_epoch: int = -1,
        metadata: str | None = "",
        error_code: int = 0,
    ) -> None:
        self.partition_index = partition_index
        self.committed_offset = committed_offset
        self.committed_leader_epoch = committed_leader_epoch
        self.metadata = metadata
        self.error_code = error_code


class OffsetFetchResponseTopic(Message):
    __slots__ = ("name", "partitions")
    FLEXIBLE = 6
    FIELDS = (
        Field("name", "string", (1, ALWAYS), default=""),
        Field("partitions", "struct", (1, ALWAYS), array=True, struct=OffsetFetchResponsePartition),
    )

    def __init__(
        self,
        name: str = "",
        partitions: list[OffsetFetchResponsePartition] | None = None,
    ) -> None:
        self.name = name
        self.partitions = [] if partitions is None else partitions


class OffsetFetchResponsePartitions(Message):
    __slots__ = ("committed_leader_epoch", "committed_offset", "error_code", "metadata", "partition_index")
    FLEXIBLE = 8
    FIELDS = (
        Field("partition_index", "int32", (8, ALWAYS), default=0),
        Field("committed_offset", "int64", (8, ALWAYS), default=0),
        Field("committed_leader_epoch", "int32", (8, ALWAYS), default=-1),
        Field("metadata", "string", (8, ALWAYS), nullable=(8, ALWAYS), default=""),
        Field("error_code", "int16", (8, ALWAYS), default=0),
    )

    def __init__(
        self,
        partition_index: int = 0,
        committed_offset: int = 0,
        committed_leader_epoch: int = -1,
        metadata: str | None = "",
        error_code: int = 0,
    ) -> None:
        self.partition_index = partition_index
        self.committed_offset = committed_offset
        self.committed_leader_epoch = committed_leader_epoch
        self.metadata = metadata
        self.error_code = error_code


class OffsetFetchResponseTopics(Message):
    __slots__ = ("name", "partitions", "topic_id")
    FLEXIBLE = 8
    FIELDS = (
        Field("name", "string", (8, 9), default=""),
        Field("topic_id", "uuid", (10, ALWAYS), default=ZERO_UUID),
        Field("partitions", "struct", (8, ALWAYS), array=True, struct=OffsetFetchResponsePartitions),
    )

    def __init__(
        self,
        name: str = "",
        partitions: list[OffsetFetchResponsePartitions] | None = None,
        topic_id: uuid.UUID = ZERO_UUID,
    ) -> None:
        self.name = name
        self.partitions = [] if partitions is None else partitions
        self.topic_id = topic_id


class OffsetFetchResponseGroup(Message):
    __slots__ = ("error_code", "group_id", "topics")
    FLEXIBLE = 8
    FIELDS = (
        Field("group_id", "string", (8, ALWAYS), default=""),
        Field("topics", "struct", (8, ALWAYS), array=True, struct=OffsetFetchResponseTopics),
        Field("error_code", "int16", (8, ALWAYS), default=0),
    )

    def __init__(
        self,
        group_id: str = "",
        topics: list[OffsetFetchResponseTopics] | None = None,
        error_code: int = 0,
    ) -> None:
        self.group_id = group_id
        self.topics = [] if topics is None else topics
        self.error_code = error_code


class OffsetFetchResponse(Response):
    __slots__ = ("error_code", "groups", "throttle_time_ms", "topics")
    API_KEY = 9
    FLEXIBLE = 6
    FIELDS = (
        Field("throttle_time_ms", "int32", (3, ALWAYS), default=0),
        Field("topics", "struct", (1, 7), array=True, struct=OffsetFetchResponseTopic),
        Field("error_code", "int16", (2, 7), default=0),
        Field("groups", "struct", (8, ALWAYS), array=True, struct=OffsetFetchResponseGroup),
    )

    def __init__(
        self,
        throttle_time_ms: int = 0,
        topics: list[OffsetFetchResponseTopic] | None = None,
        error_code: int = 0,
        groups: list[OffsetFetchResponseGroup] | None = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.topics = [] if topics is None else topics
        self.error_code = error_code
        self.groups = [] if groups is None else groups
