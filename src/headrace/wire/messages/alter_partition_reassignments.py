"""AlterPartitionReassignments (API key 45). Made by tools/generate_messages.py: change that."""

from __future__ import annotations

from headrace.wire.schema import ALWAYS, Field, Message, Request, Response


class ReassignablePartition(Message):
    __slots__ = ("partition_index", "replicas")
    FLEXIBLE = 0
    FIELDS = (
        Field("partition_index", "int32", (0, ALWAYS), default=0),
        Field("replicas", "int32", (0, ALWAYS), array=True, nullable=(0, ALWAYS)),
    )

    def __init__(
        self,
        partition_index: int = 0,
        replicas: list[int] | None = None,
    ) -> None:
        self.partition_index = partition_index
        self.replicas = replicas


class ReassignableTopic(Message):
    __slots__ = ("name", "partitions")
    FLEXIBLE = 0
    FIELDS = (
        Field("name", "string", (0, ALWAYS), default=""),
        Field("partitions", "struct", (0, ALWAYS), array=True, struct=ReassignablePartition),
    )

    def __init__(
        self,
        name: str = "",
        partitions: list[ReassignablePartition] | None = None,
    ) -> None:
        self.name = name
        self.partitions = [] if partitions is None else partitions


class AlterPartitionReassignmentsRequest(Request["AlterPartitionReassignmentsResponse"]):
    __slots__ = ("allow_replication_factor_change", "timeout_ms", "topics")
    API_KEY = 45
    VERSIONS = (0, 1)
    FLEXIBLE = 0
    FIELDS = (
        Field("timeout_ms", "int32", (0, ALWAYS), default=60000),
        Field("allow_replication_factor_change", "bool", (1, ALWAYS), default=True),
        Field("topics", "struct", (0, ALWAYS), array=True, struct=ReassignableTopic),
    )

    def __init__(
        self,
        timeout_ms: int = 60000,
        allow_replication_factor_change: bool = True,
        topics: list[ReassignableTopic] | None = None,
    ) -> None:
        self.timeout_ms = timeout_ms
        self.allow_replication_factor_change = allow_replication_factor_change
        self.topics = [] if topics is None else topics

    @classmethod
    def reply_type(cls) -> type[AlterPartitionReassignmentsResponse]:
        return AlterPartitionReassignmentsResponse


class ReassignablePartitionResponse(Message):
    __slots__ = ("error_code", "error_message", "partition_index")
    FLEXIBLE = 0
    FIELDS = (
        Field("partition_index", "int32", (0, ALWAYS), default=0),
        Field("error_code", "int16", (0, ALWAYS), default=0),
        Field("error_message", "string", (0, ALWAYS), nullable=(0, ALWAYS), default=""),
    )

    def __init__(
        self,
        partition_index: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
    ) -> None:
        self.partition_index = partition_index
        self.error_code = error_code
        self.error_message = error_message


class ReassignableTopicResponse(Message):
    __slots__ = ("name", "partitions")
    FLEXIBLE = 0
    FIELDS = (
        Field("name", "string", (0, ALWAYS), default=""),
        Field("partitions", "struct", (0, ALWAYS), array=True, struct=ReassignablePartitionResponse),
    )

    def __init__(
        self,
        name: str = "",
        partitions: list[ReassignablePartitionResponse] | None = None,
    ) -> None:
        self.name = name
        self.partitions = [] if partitions is None else partitions


class AlterPartitionReassignmentsResponse(Response):
    __slots__ = (
        "allow_replication_factor_change",
        "error_code",
        "error_message",
        "responses",
        "throttle_time_ms",
    )
    API_KEY = 45
    FLEXIBLE = 0
    FIELDS = (
        Field("throttle_time_ms", "int32", (0, ALWAYS), default=0),
        Field("allow_replication_factor_change", "bool", (1, ALWAYS), default=True),
        Field("error_code", "int16", (0, ALWAYS), default=0),
        Field("error_message", "string", (0, ALWAYS), nullable=(0, ALWAYS), default=""),
        Field("responses", "struct", (0, ALWAYS), array=True, struct=ReassignableTopicResponse),
    )

    def __init__(
        self,
        throttle_time_ms: int = 0,
        allow_replication_factor_change: bool = True,
        error_code: int = 0,
        error_message: str | None = "",
        responses: list[ReassignableTopicResponse] | None = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.allow_replication_factor_change = allow_replication_factor_change
        self.error_code = error_code
        self.error_message = error_message
        self.responses = [] if responses is None else responses
