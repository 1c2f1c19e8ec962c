"""DescribeTopicPartitions (API key 75). Made by tools/generate_messages.py: change that."""

from __future__ import annotations

import uuid

from headrace.wire.schema import ALWAYS, ZERO_UUID, Field, Message, Request, Response


class TopicRequest(Message):
    __slots__ = ("name",)
    FLEXIBLE = 0
    FIELDS = (Field("name", "string", (0, ALWAYS), default=""),)

    def __init__(
        self,
        name: str = "",
    ) -> None:
        self.name = name


class Cursor(Message):
    __slots__ = ("partition_index", "topic_name")
    FLEXIBLE = 0
    FIELDS = (
        Field("topic_name", "string", (0, ALWAYS), default=""),
        Field("partition_index", "int32", (0, ALWAYS), default=0),
    )

    def __init__(
        self,
        topic_name: str = "",
        partition_index: int = 0,
    ) -> None:
        self.topic_name = topic_name
        self.partition_index = partition_index


class DescribeTopicPartitionsRequest(Request["DescribeTopicPartitionsResponse"]):
    __slots__ = ("cursor", "response_partition_limit", "topics")
    API_KEY = 75
    VERSIONS = (0, 0)
    FLEXIBLE = 0
    FIELDS = (
        Field("topics", "struct", (0, ALWAYS), array=True, struct=TopicRequest),
        Field("response_partition_limit", "int32", (0, ALWAYS), default=2000),
        Field("cursor", "struct", (0, ALWAYS), nullable=(0, ALWAYS), struct=Cursor),
    )

    def __init__(
        self,
        topics: list[TopicRequest] | None = None,
        response_partition_limit: int = 2000,
        cursor: Cursor | None = None,
    ) -> None:
        self.topics = [] if topics is None else topics
        self.response_partition_limit = response_partition_limit
        self.cursor = cursor

    @classmethod
    def reply_type(cls) -> type[DescribeTopicPartitionsResponse]:
        return DescribeTopicPartitionsResponse


class DescribeTopicPartitionsResponsePartition(Message):
    __slots__ = (
        "eligible_leader_replicas",
        "error_code",
        "isr_nodes",
        "last_known_elr",
        "leader_epoch",
        "leader_id",
        "offline_replicas",
        "partition_index",
        "replica_nodes",
    )
    FLEXIBLE = 0
    FIELDS = (
        Field("error_code", "int16", (0, ALWAYS), default=0),
        Field("partition_index", "int32", (0, ALWAYS), default=0),
        Field("leader_id", "int32", (0, ALWAYS), default=0),
        Field("leader_epoch", "int32", (0, ALWAYS), default=-1),
        Field("replica_nodes", "int32", (0, ALWAYS), array=True),
        Field("isr_nodes", "int32", (0, ALWAYS), array=True),
        Field("eligible_leader_replicas", "int32", (0, ALWAYS), array=True, nullable=(0, ALWAYS)),
        Field("last_known_elr", "int32", (0, ALWAYS), array=True, nullable=(0, ALWAYS)),
        Field("offline_replicas", "int32", (0, ALWAYS), array=True),
    )

    def __init__(
        self,
        error_code: int = 0,
        partition_index: int = 0,
        leader_id: int = 0,
        leader_epoch: int = -1,
        replica_nodes: list[int] | None = None,
        isr_nodes: list[int] | None = None,
        eligible_leader_replicas: list[int] | None = None,
        last_known_elr: list[int] | None = None,
        offline_replicas: list[int] | None = None,
    ) -> None:
        self.error_code = error_code
        self.partition_index = partition_index
        self.leader_id = leader_id
        self.leader_epoch = leader_epoch
        self.replica_nodes = [] if replica_nodes is None else replica_nodes
        self.isr_nodes = [] if isr_nodes is None else isr_nodes
        self.eligible_leader_replicas = eligible_leader_replicas
        self.last_known_elr = last_known_elr
        self.offline_replicas = [] if offline_replicas is None else offline_replicas


class DescribeTopicPartitionsResponseTopic(Message):
    __slots__ = ("error_code", "is_internal", "name", "partitions", "topic_authorized_operations", "topic_id")
    FLEXIBLE = 0
    FIELDS = (
        Field("error_code", "int16", (0, ALWAYS), default=0),
        Field("name", "string", (0, ALWAYS), nullable=(0, ALWAYS), default=""),
        Field("topic_id", "uuid", (0, ALWAYS), default=ZERO_UUID),
        Field("is_internal", "bool", (0, ALWAYS), default=False),
        Field(
            "partitions", "struct", (0, ALWAYS), array=True, struct=DescribeTopicPartitionsResponsePartition
        ),
        Field("topic_authorized_operations", "int32", (0, ALWAYS), default=-2147483648),
    )

    def __init__(
        self,
        error_code: int = 0,
        name: str | None = "",
        topic_id: uuid.UUID = ZERO_UUID,
        is_internal: bool = False,
        partitions: list[DescribeTopicPartitionsResponsePartition] | None = None,
        topic_authorized_operations: int = -2147483648,
    ) -> None:
        self.error_code = error_code
        self.name = name
        self.topic_id = topic_id
        self.is_internal = is_internal
        self.partitions = [] if partitions is None else partitions
        self.topic_authorized_operations = topic_authorized_operations


class ResponseCursor(Message):
    __slots__ = ("partition_index", "topic_name")
    FLEXIBLE = 0
    FIELDS = (
        Field("topic_name", "string", (0, ALWAYS), default=""),
        Field("partition_index", "int32", (0, ALWAYS), default=0),
    )

    def __init__(
        self,
        topic_name: str = "",
        partition_index: int = 0,
    ) -> None:
        self.topic_name = topic_name
        self.partition_index = partition_index


class DescribeTopicPartitionsResponse(Response):
    __slots__ = ("next_cursor", "throttle_time_ms", "topics")
    API_KEY = 75
    FLEXIBLE = 0
    FIELDS = (
        Field("throttle_time_ms", "int32", (0, ALWAYS), default=0),
        Field("topics", "struct", (0, ALWAYS), array=True, struct=DescribeTopicPartitionsResponseTopic),
        Field("next_cursor", "struct", (0, ALWAYS), nullable=(0, ALWAYS), struct=ResponseCursor),
    )

    def __init__(
        self,
        throttle_time_ms: int = 0,
        topics: list[DescribeTopicPartitionsResponseTopic] | None = None,
        next_cursor: ResponseCursor | None = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.topics = [] if topics is None else topics
        self.next_cursor = next_cursor
