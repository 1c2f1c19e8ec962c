"""ListPartitionReassignments (API key 46). Made by tools/generate_messages.py: change that."""

from __future__ import annotations

from headrace.wire.schema import ALWAYS, Field, Message, Request, Response


class ListPartitionReassignmentsTopics(Message):
    __slots__ = ("name", "partition_indexes")
    FLEXIBLE = 0
    FIELDS = (
        Field("name", "string", (0, ALWAYS), default=""),
        Field("partition_indexes", "int32", (0, ALWAYS), array=True),
    )

    def __init__(
        self,
        name: str = "",
        partition_indexes: list[int] | None = None,
    ) -> None:
        self.name = name
        self.partition_indexes = [] if partition_indexes is None else partition_indexes


class ListPartitionReassignmentsRequest(Request["ListPartitionReassignmentsResponse"]):
    __slots__ = ("timeout_ms", "topics")
    API_KEY = 46
    VERSIONS = (0, 0)
    FLEXIBLE = 0
    FIELDS = (
        Field("timeout_ms", "int32", (0, ALWAYS), default=60000),
        Field(
            "topics",
            "struct",
            (0, ALWAYS),
            array=True,
            nullable=(0, ALWAYS),
            struct=ListPartitionReassignmentsTopics,
        ),
    )

    def __init__(
        self,
        timeout_ms: int = 60000,
        topics: list[ListPartitionReassignmentsTopics] | None = None,
    ) -> None:
        self.timeout_ms = timeout_ms
        self.topics = topics

    @classmethod
    def reply_type(cls) -> type[ListPartitionReassignmentsResponse]:
        return ListPartitionReassignmentsResponse


class OngoingPartitionReassignment(Message):
    __slots__ = ("adding_replicas", "partition_index", "removing_replicas", "replicas")
    FLEXIBLE = 0
    FIELDS = (
        Field("partition_index", "int32", (0, ALWAYS), default=0),
        Field("replicas", "int32", (0, ALWAYS), array=True),
        Field("adding_replicas", "int32", (0, ALWAYS), array=True),
        Field("removing_replicas", "int32", (0, ALWAYS), array=True),
    )

    def __init__(
        self,
        partition_index: int = 0,
        replicas: list[int] | None = None,
        adding_replicas: list[int] | None = None,
        removing_replicas: list[int] | None = None,
    ) -> None:
        self.partition_index = partition_index
        self.replicas = [] if replicas is None else replicas
        self.adding_replicas = [] if adding_replicas is None else adding_replicas
        self.removing_replicas = [] if removing_replicas is None else removing_replicas


class OngoingTopicReassignment(Message):
    __slots__ = ("name", "partitions")
    FLEXIBLE = 0
    FIELDS = (
        Field("name", "string", (0, ALWAYS), default=""),
        Field("partitions", "struct", (0, ALWAYS), array=True, struct=OngoingPartitionReassignment),
    )

    def __init__(
        self,
        name: str = "",
        partitions: list[OngoingPartitionReassignment] | None = None,
    ) -> None:
        self.name = name
        self.partitions = [] if partitions is None else partitions


class ListPartitionReassignmentsResponse(Response):
    __slots__ = ("error_code", "error_message", "throttle_time_ms", "topics")
    API_KEY = 46
    FLEXIBLE = 0
    FIELDS = (
        Field("throttle_time_ms", "int32", (0, ALWAYS), default=0),
        Field("error_code", "int16", (0, ALWAYS), default=0),
        Field("error_message", "string", (0, ALWAYS), nullable=(0, ALWAYS), default=""),
        Field("topics", "struct", (0, ALWAYS), array=True, struct=OngoingTopicReassignment),
    )

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
        topics: list[OngoingTopicReassignment] | None = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.topics = [] if topics is None else topics
