"""CreateTopics (API key 19). Made by tools/generate_messages.py: change that."""

from __future__ import annotations

import uuid

from headrace.wire.schema import ALWAYS, ZERO_UUID, Field, Message, Request, Response


class CreatableReplicaAssignment(Message):
    __slots__ = ("broker_ids", "partition_index")
    FLEXIBLE = 5
    FIELDS = (
        Field("partition_index", "int32", (2, ALWAYS), default=0),
        Field("broker_ids", "int32", (2, ALWAYS), array=True),
    )

    def __init__(
        self,
        partition_index: int = 0,
        broker_ids: list[int] | None = None,
    ) -> None:
        self.partition_index = partition_index
        self.broker_ids = [] if broker_ids is None else broker_ids


class CreatableTopicConfig(Message):
    __slots__ = ("name", "value")
    FLEXIBLE = 5
    FIELDS = (
        Field("name", "string", (2, ALWAYS), default=""),
        Field("value", "string", (2, ALWAYS), nullable=(2, ALWAYS), default=""),
    )

    def __init__(
        self,
        name: str = "",
        value: str | None = "",
    ) -> None:
        self.name = name
        self.value = value


class CreatableTopic(Message):
    __slots__ = ("assignments", "configs", "name", "num_partitions", "replication_factor")
    FLEXIBLE = 5
    FIELDS = (
        Field("name", "string", (2, ALWAYS), default=""),
        Field("num_partitions", "int32", (2, ALWAYS), default=0),
        Field("replication_factor", "int16", (2, ALWAYS), default=0),
        Field("assignments", "struct", (2, ALWAYS), array=True, struct=CreatableReplicaAssignment),
        Field("configs", "struct", (2, ALWAYS), array=True, struct=CreatableTopicConfig),
    )

    def __init__(
        self,
        name: str = "",
        num_partitions: int = 0,
        replication_factor: int = 0,
        assignments: list[CreatableReplicaAssignment] | None = None,
        configs: list[CreatableTopicConfig] | None = None,
    ) -> None:
        self.name = name
        self.num_partitions = num_partitions
        self.replication_factor = replication_factor
        self.assignments = [] if assignments is None else assignments
        self.configs = [] if configs is None else configs


class CreateTopicsRequest(Request["CreateTopicsResponse"]):
    __slots__ = ("timeout_ms", "topics", "validate_only")
    API_KEY = 19
    VERSIONS = (2, 7)
    FLEXIBLE = 5
    FIELDS = (
        Field("topics", "struct", (2, ALWAYS), array=True, struct=CreatableTopic),
        Field("timeout_ms", "int32", (2, ALWAYS), default=60000),
        Field("validate_only", "bool", (2, ALWAYS), default=False),
    )

    def __init__(
        self,
        topics: list[CreatableTopic] | None = None,
        timeout_ms: int = 60000,
        validate_only: bool = False,
    ) -> None:
        self.topics = [] if topics is None else topics
        self.timeout_ms = timeout_ms
        self.validate_only = validate_only

    @classmethod
    def reply_type(cls) -> type[CreateTopicsResponse]:
        return CreateTopicsResponse


class CreatableTopicConfigs(Message):
    __slots__ = ("config_source", "is_sensitive", "name", "read_only", "value")
    FLEXIBLE = 5
    FIELDS = (
        Field("name", "string", (5, ALWAYS), default=""),
        Field("value", "string", (5, ALWAYS), nullable=(5, ALWAYS), default=""),
        Field("read_only", "bool", (5, ALWAYS), default=False),
        Field("config_source", "int8", (5, ALWAYS), default=-1),
        Field("is_sensitive", "bool", (5, ALWAYS), default=False),
    )

    def __init__(
        self,
        name: str = "",
        value: str | None = "",
        read_only: bool = False,
        config_source: int = -1,
        is_sensitive: bool = False,
    ) -> None:
        self.name = name
        self.value = value
        self.read_only = read_only
        self.config_source = config_source
        self.is_sensitive = is_sensitive


class CreatableTopicResult(Message):
    __slots__ = (
        "configs",
        "error_code",
        "error_message",
        "name",
        "num_partitions",
        "replication_factor",
        "topic_config_error_code",
        "topic_id",
    )
    FLEXIBLE = 5
    FIELDS = (
        Field("name", "string", (2, ALWAYS), default=""),
        Field("topic_id", "uuid", (7, ALWAYS), default=ZERO_UUID),
        Field("error_code", "int16", (2, ALWAYS), default=0),
        Field("error_message", "string", (2, ALWAYS), nullable=(2, ALWAYS), default=""),
        Field("topic_config_error_code", "int16", (5, ALWAYS), tag=0, default=0),
        Field("num_partitions", "int32", (5, ALWAYS), default=-1),
        Field("replication_factor", "int16", (5, ALWAYS), default=-1),
        Field(
            "configs", "struct", (5, ALWAYS), array=True, nullable=(5, ALWAYS), struct=CreatableTopicConfigs
        ),
    )

    def __init__(
        self,
        name: str = "",
        topic_id: uuid.UUID = ZERO_UUID,
        error_code: int = 0,
        error_message: str | None = "",
        topic_config_error_code: int = 0,
        num_partitions: int = -1,
        replication_factor: int = -1,
        configs: list[CreatableTopicConfigs] | None = None,
    ) -> None:
        self.name = name
        self.topic_id = topic_id
        self.error_code = error_code
        self.error_message = error_message
        self.topic_config_error_code = topic_config_error_code
        self.num_partitions = num_partitions
        self.replication_factor = replication_factor
        self.configs = configs


class CreateTopicsResponse(Response):
    __slots__ = ("throttle_time_ms", "topics")
    API_KEY = 19
    FLEXIBLE = 5
    FIELDS = (
        Field("throttle_time_ms", "int32", (2, ALWAYS), default=0),
        Field("topics", "struct", (2, ALWAYS), array=True, struct=CreatableTopicResult),
    )

    def __init__(
        self,
        throttle_time_ms: int = 0,
        topics: list[CreatableTopicResult] | None = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.topics = [] if topics is None else topics
