"""CreatePartitions (API key 37). Made by tools/generate_messages.py: change that."""

from __future__ import annotations

from headrace.wire.schema import ALWAYS, Field, Message, Request, Response


class CreatePartitionsAssignment(Message):
    __slots__ = ("broker_ids",)
    FLEXIBLE = 2
    FIELDS = (Field("broker_ids", "int32", (0, ALWAYS), array=True),)

    def __init__(
        self,
        broker_ids: list[int] | None = None,
    ) -> None:
        self.broker_ids = [] if broker_ids is None else broker_ids


class CreatePartitionsTopic(Message):
    __slots__ = ("assignments", "count", "name")
    FLEXIBLE = 2
    FIELDS = (
        Field("name", "string", (0, ALWAYS), default=""),
        Field("count", "int32", (0, ALWAYS), default=0),
        Field(
            "assignments",
            "struct",
            (0, ALWAYS),
            array=True,
            nullable=(0, ALWAYS),
            struct=CreatePartitionsAssignment,
        ),
    )

    def __init__(
        self,
        name: str = "",
        count: int = 0,
        assignments: list[CreatePartitionsAssignment] | None = None,
    ) -> None:
        self.name = name
        self.count = count
        self.assignments = assignments


class CreatePartitionsRequest(Request["CreatePartitionsResponse"]):
    __slots__ = ("timeout_ms", "topics", "validate_only")
    API_KEY = 37
    VERSIONS = (0, 3)
    FLEXIBLE = 2
    FIELDS = (
        Field("topics", "struct", (0, ALWAYS), array=True, struct=CreatePartitionsTopic),
        Field("timeout_ms", "int32", (0, ALWAYS), default=0),
        Field("validate_only", "bool", (0, ALWAYS), default=False),
    )

    def __init__(
        self,
        topics: list[CreatePartitionsTopic] | None = None,
        timeout_ms: int = 0,
        validate_only: bool = False,
    ) -> None:
        self.topics = [] if topics is None else topics
        self.timeout_ms = timeout_ms
        self.validate_only = validate_only

    @classmethod
    def reply_type(cls) -> type[CreatePartitionsResponse]:
        return CreatePartitionsResponse


class CreatePartitionsTopicResult(Message):
    __slots__ = ("error_code", "error_message", "name")
    FLEXIBLE = 2
    FIELDS = (
        Field("name", "string", (0, ALWAYS), default=""),
        Field("error_code", "int16", (0, ALWAYS), default=0),
        Field("error_message", "string", (0, ALWAYS), nullable=(0, ALWAYS)),
    )

    def __init__(
        self,
        name: str = "",
        error_code: int = 0,
        error_message: str | None = None,
    ) -> None:
        self.name = name
        self.error_code = error_code
        self.error_message = error_message


class CreatePartitionsResponse(Response):
    __slots__ = ("results", "throttle_time_ms")
    API_KEY = 37
    FLEXIBLE = 2
    FIELDS = (
        Field("throttle_time_ms", "int32", (0, ALWAYS), default=0),
        Field("results", "struct", (0, ALWAYS), array=True, struct=CreatePartitionsTopicResult),
    )

    def __init__(
        self,
        throttle_time_ms: int = 0,
        results: list[CreatePartitionsTopicResult] | None = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.results = [] if results is None else results
