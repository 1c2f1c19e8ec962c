"""StreamsGroupHeartbeat (API key 88). Made by tools/generate_messages.py: change that."""

from __future__ import annotations

from headrace.wire.schema import ALWAYS, Field, Message, Request, Response


class KeyValue(Message):
    __slots__ = ("key", "value")
    FLEXIBLE = 0
    FIELDS = (
        Field("key", "string", (0, ALWAYS), default=""),
        Field("value", "string", (0, ALWAYS), default=""),
    )

    def __init__(
        self,
        key: str = "",
        value: str = "",
    ) -> None:
        self.key = key
        self.value = value


class TopicInfo(Message):
    __slots__ = ("name", "partitions", "replication_factor", "topic_configs")
    FLEXIBLE = 0
    FIELDS = (
        Field("name", "string", (0, ALWAYS), default=""),
        Field("partitions", "int32", (0, ALWAYS), default=0),
        Field("replication_factor", "int16", (0, ALWAYS), default=0),
        Field("topic_configs", "struct", (0, ALWAYS), array=True, struct=KeyValue),
    )

    def __init__(
        self,
        name: str = "",
        partitions: int = 0,
        replication_factor: int = 0,
        topic_configs: list[KeyValue] | None = None,
    ) -> None:
        self.name = name
        self.partitions = partitions
        self.replication_factor = replication_factor
        self.topic_configs = [] if topic_configs is None else topic_configs


class CopartitionGroup(Message):
    __slots__ = ("repartition_source_topics", "source_topic_regex", "source_topics")
    FLEXIBLE = 0
    FIELDS = (
        Field("source_topics", "int16", (0, ALWAYS), array=True),
        Field("source_topic_regex", "int16", (0, ALWAYS), array=True),
        Field("repartition_source_topics", "int16", (0, ALWAYS), array=True),
    )

    def __init__(
        self,
        source_topics: list[int] | None = None,
        source_topic_regex: list[int] | None = None,
        repartition_source_topics: list[int] | None = None,
    ) -> None:
        self.source_topics = [] if source_topics is None else source_topics
        self.source_topic_regex = [] if source_topic_regex is None else source_topic_regex
        self.repartition_source_topics = (
            [] if repartition_source_topics is None else repartition_source_topics
        )


class Subtopology(Message):
    __slots__ = (
        "copartition_groups",
        "repartition_sink_topics",
        "repartition_source_topics",
        "source_topic_regex",
        "source_topics",
        "state_changelog_topics",
        "subtopology_id",
    )
    FLEXIBLE = 0
    FIELDS = (
        Field("subtopology_id", "string", (0, ALWAYS), default=""),
        Field("source_topics", "string", (0, ALWAYS), array=True),
        Field("source_topic_regex", "string", (0, ALWAYS), array=True),
        Field("state_changelog_topics", "struct", (0, ALWAYS), array=True, struct=TopicInfo),
        Field("repartition_sink_topics", "string", (0, ALWAYS), array=True),
        Field("repartition_source_topics", "struct", (0, ALWAYS), array=True, struct=TopicInfo),
        Field("copartition_groups", "struct", (0, ALWAYS), array=True, struct=CopartitionGroup),
    )

    def __init__(
        self,
        subtopology_id: str = "",
        source_topics: list[str] | None = None,
        source_topic_regex: list[str] | None = None,
        state_changelog_topics: list[TopicInfo] | None = None,
        repartition_sink_topics: list[str] | None = None,
        repartition_source_topics: list[TopicInfo] | None = None,
        copartition_groups: list[CopartitionGroup] | None = None,
    ) -> None:
        self.subtopology_id = subtopology_id
        self.source_topics = [] if source_topics is None else source_topics
        self.source_topic_regex = [] if source_topic_regex is None else source_topic_regex
        self.state_changelog_topics = [] if state_changelog_topics is None else state_changelog_topics
        self.repartition_sink_topics = [] if repartition_sink_topics is None else repartition_sink_topics
        self.repartition_source_topics = (
            [] if repartition_source_topics is None else repartition_source_topics
        )
        self.copartition_groups = [] if copartition_groups is None else copartition_groups


class Topology(Message):
    __slots__ = ("epoch", "subtopologies")
    FLEXIBLE = 0
    FIELDS = (
        Field("epoch", "int32", (0, ALWAYS), default=0),
        Field("subtopologies", "struct", (0, ALWAYS), array=True, struct=Subtopology),
    )

    def __init__(
        self,
        epoch: int = 0,
        subtopologies: list[Subtopology] | None = None,
    ) -> None:
        self.epoch = epoch
        self.subtopologies = [] if subtopologies is None else subtopologies


class TaskIds(Message):
    __slots__ = ("partitions", "subtopology_id")
    FLEXIBLE = 0
    FIELDS = (
        Field("subtopology_id", "string", (0, ALWAYS), default=""),
        Field("partitions", "int32", (0, ALWAYS), array=True),
    )

    def __init__(
        self,
        subtopology_id: str = "",
        partitions: list[int] | None = None,
    ) -> None:
        self.subtopology_id = subtopology_id
        self.partitions = [] if partitions is None else partitions


class Endpoint(Message):
    __slots__ = ("host", "port")
    FLEXIBLE = 0
    FIELDS = (
        Field("host", "string", (0, ALWAYS), default=""),
        Field("port", "uint16", (0, ALWAYS), default=0),
    )

    def __init__(
        self,
        host: str = "",
        port: int = 0,
    ) -> None:
        self.host = host
        self.port = port


class TaskOffset(Message):
    __slots__ = ("offset", "partition", "subtopology_id")
    FLEXIBLE = 0
    FIELDS = (
        Field("subtopology_id", "string", (0, ALWAYS), default=""),
        Field("partition", "int32", (0, ALWAYS), default=0),
        Field("offset", "int64", (0, ALWAYS), default=0),
    )

    def __init__(
        self,
        subtopology_id: str = "",
        partition: int = 0,
        offset: int = 0,
    ) -> None:
        self.subtopology_id = subtopology_id
        self.partition = partition
        self.offset = offset


class StreamsGroupHeartbeatRequest(Request["StreamsGroupHeartbeatResponse"]):
    __slots__ = (
        "active_tasks",
        "client_tags",
        "endpoint_information_epoch",
        "group_id",
        "instance_id",
        "member_epoch",
        "member_id",
        "process_id",
        "rack_id",
        "rebalance_timeout_ms",
        "shutdown_application",
        "standby_tasks",
        "task_end_offsets",
        "task_offsets",
        "topology",
        "user_endpoint",
        "warmup_tasks",
    )
    API_KEY = 88
    VERSIONS = (0, 1)
    FLEXIBLE = 0
    FIELDS = (
        Field("group_id", "string", (0, ALWAYS), default=""),
        Field("member_id", "string", (0, ALWAYS), default=""),
        Field("member_epoch", "int32", (0, ALWAYS), default=0),
        Field("endpoint_information_epoch", "int32", (0, ALWAYS), default=0),
        Field("instance_id", "string", (0, ALWAYS), nullable=(0, ALWAYS)),
        Field("rack_id", "string", (0, ALWAYS), nullable=(0, ALWAYS)),
        Field("rebalance_timeout_ms", "int32", (0, ALWAYS), default=-1),
        Field("topology", "struct", (0, ALWAYS), nullable=(0, ALWAYS), struct=Topology),
        Field("active_tasks", "struct", (0, ALWAYS), array=True, nullable=(0, ALWAYS), struct=TaskIds),
        Field("standby_tasks", "struct", (0, ALWAYS), array=True, nullable=(0, ALWAYS), struct=TaskIds),
        Field("warmup_tasks", "struct", (0, ALWAYS), array=True, nullable=(0, ALWAYS), struct=TaskIds),
        Field("process_id", "string", (0, ALWAYS), nullable=(0, ALWAYS)),
        Field("user_endpoint", "struct", (0, ALWAYS), nullable=(0, ALWAYS), struct=Endpoint),
        Field("client_tags", "struct", (0, ALWAYS), array=True, nullable=(0, ALWAYS), struct=KeyValue),
        Field("task_offsets", "struct", (0, ALWAYS), array=True, nullable=(0, ALWAYS), struct=TaskOffset),
        Field("task_end_offsets", "struct", (0, ALWAYS), array=True, nullable=(0, ALWAYS), struct=TaskOffset),
        Field("shutdown_application", "bool", (0, ALWAYS), default=False),
    )

    def __init__(
        self,
        group_id: str = "",
        member_id: str = "",
        member_epoch: int = 0,
        endpoint_information_epoch: int = 0,
        instance_id: str | None = None,
        rack_id: str | None = None,
        rebalance_timeout_ms: int = -1,
        topology: Topology | None = None,
        active_tasks: list[TaskIds] | None = None,
        standby_tasks: list[TaskIds] | None = None,
        warmup_tasks: list[TaskIds] | None = None,
        process_id: str | None = None,
        user_endpoint: Endpoint | None = None,
        client_tags: list[KeyValue] | None = None,
        task_offsets: list[TaskOffset] | None = None,
        task_end_offsets: list[TaskOffset] | None = None,
        shutdown_application: bool = False,
    ) -> None:
        self.group_id = group_id
        self.member_id = member_id
        self.member_epoch = member_epoch
        self.endpoint_information_epoch = endpoint_information_epoch
        self.instance_id = instance_id
        self.rack_id = rack_id
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.topology = topology
        self.active_tasks = active_tasks
        self.standby_tasks = standby_tasks
        self.warmup_tasks = warmup_tasks
        self.process_id = process_id
        self.user_endpoint = user_endpoint
        self.client_tags = client_tags
        self.task_offsets = task_offsets
        self.task_end_offsets = task_end_offsets
        self.shutdown_application = shutdown_application

    @classmethod
    def reply_type(cls) -> type[StreamsGroupHeartbeatResponse]:
        return StreamsGroupHeartbeatResponse


class Status(Message):
    __slots__ = ("status_code", "status_detail")
    FLEXIBLE = 0
    FIELDS = (
        Field("status_code", "int8", (0, ALWAYS), default=0),
        Field("status_detail", "string", (0, ALWAYS), default=""),
    )

    def __init__(
        self,
        status_code: int = 0,
        status_detail: str = "",
    ) -> None:
        self.status_code = status_code
        self.status_detail = status_detail


class ResponseTaskIds(Message):
    __slots__ = ("partitions", "subtopology_id")
    FLEXIBLE = 0
    FIELDS = (
        Field("subtopology_id", "string", (0, ALWAYS), default=""),
        Field("partitions", "int32", (0, ALWAYS), array=True),
    )

    def __init__(
        self,
        subtopology_id: str = "",
        partitions: list[int] | None = None,
    ) -> None:
        self.subtopology_id = subtopology_id
        self.partitions = [] if partitions is None else partitions


class ResponseEndpoint(Message):
    __slots__ = ("host", "port")
    FLEXIBLE = 0
    FIELDS = (
        Field("host", "string", (0, ALWAYS), default=""),
        Field("port", "uint16", (0, ALWAYS), default=0),
    )

    def __init__(
        self,
        host: str = "",
        port: int = 0,
    ) -> None:
        self.host = host
        self.port = port


class TopicPartition(Message):
    __slots__ = ("partitions", "topic")
    FLEXIBLE = 0
    FIELDS = (
        Field("topic", "string", (0, ALWAYS), default=""),
        Field("partitions", "int32", (0, ALWAYS), array=True),
    )

    def __init__(
        self,
        topic: str = "",
        partitions: list[int] | None = None,
    ) -> None:
        self.topic = topic
        self.partitions = [] if partitions is None else partitions


class EndpointToPartitions(Message):
    __slots__ = ("active_partitions", "standby_partitions", "user_endpoint")
    FLEXIBLE = 0
    FIELDS = (
        Field("user_endpoint", "struct", (0, ALWAYS), struct=ResponseEndpoint),
        Field("active_partitions", "struct", (0, ALWAYS), array=True, struct=TopicPartition),
        Field("standby_partitions", "struct", (0, ALWAYS), array=True, struct=TopicPartition),
    )

    def __init__(
        self,
        user_endpoint: ResponseEndpoint | None = None,
        active_partitions: list[TopicPartition] | None = None,
        standby_partitions: list[TopicPartition] | None = None,
    ) -> None:
        self.user_endpoint = ResponseEndpoint() if user_endpoint is None else user_endpoint
        self.active_partitions = [] if active_partitions is None else active_partitions
        self.standby_partitions = [] if standby_partitions is None else standby_partitions


class StreamsGroupHeartbeatResponse(Response):
    __slots__ = (
        "acceptable_recovery_lag",
        "acceptable_recovery_lag_legacy",
        "active_tasks",
        "endpoint_information_epoch",
        "error_code",
        "error_message",
        "heartbeat_interval_ms",
        "member_epoch",
        "member_id",
        "partitions_by_user_endpoint",
        "standby_tasks",
        "status",
        "task_offset_interval_ms",
        "throttle_time_ms",
        "topology_description_required",
        "warmup_tasks",
    )
    API_KEY = 88
    FLEXIBLE = 0
    FIELDS = (
        Field("throttle_time_ms", "int32", (0, ALWAYS), default=0),
        Field("error_code", "int16", (0, ALWAYS), default=0),
        Field("error_message", "string", (0, ALWAYS), nullable=(0, ALWAYS)),
        Field("member_id", "string", (0, ALWAYS), default=""),
        Field("member_epoch", "int32", (0, ALWAYS), default=0),
        Field("heartbeat_interval_ms", "int32", (0, ALWAYS), default=0),
        Field("acceptable_recovery_lag_legacy", "int32", (0, 0), default=0),
        Field("task_offset_interval_ms", "int32", (0, ALWAYS), default=0),
        Field("acceptable_recovery_lag", "int64", (1, ALWAYS), default=-1),
        Field("status", "struct", (0, ALWAYS), array=True, nullable=(0, ALWAYS), struct=Status),
        Field(
            "active_tasks", "struct", (0, ALWAYS), array=True, nullable=(0, ALWAYS), struct=ResponseTaskIds
        ),
        Field(
            "standby_tasks", "struct", (0, ALWAYS), array=True, nullable=(0, ALWAYS), struct=ResponseTaskIds
        ),
        Field(
            "warmup_tasks", "struct", (0, ALWAYS), array=True, nullable=(0, ALWAYS), struct=ResponseTaskIds
        ),
        Field("topology_description_required", "bool", (1, ALWAYS), default=False),
        Field("endpoint_information_epoch", "int32", (0, ALWAYS), default=0),
        Field(
            "partitions_by_user_endpoint",
            "struct",
            (0, ALWAYS),
            array=True,
            nullable=(0, ALWAYS),
            struct=EndpointToPartitions,
        ),
    )

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        member_id: str = "",
        member_epoch: int = 0,
        heartbeat_interval_ms: int = 0,
        acceptable_recovery_lag_legacy: int = 0,
        task_offset_interval_ms: int = 0,
        acceptable_recovery_lag: int = -1,
        status: list[Status] | None = None,
        active_tasks: list[ResponseTaskIds] | None = None,
        standby_tasks: list[ResponseTaskIds] | None = None,
        warmup_tasks: list[ResponseTaskIds] | None = None,
        topology_description_required: bool = False,
        endpoint_information_epoch: int = 0,
        partitions_by_user_endpoint: list[EndpointToPartitions] | None = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.member_id = member_id
        self.member_epoch = member_epoch
        self.heartbeat_interval_ms = heartbeat_interval_ms
        self.acceptable_recovery_lag_legacy = acceptable_recovery_lag_legacy
        self.task_offset_interval_ms = task_offset_interval_ms
        self.acceptable_recovery_lag = acceptable_recovery_lag
        self.status = status
        self.active_tasks = active_tasks
        self.standby_tasks = standby_tasks
        self.warmup_tasks = warmup_tasks
        self.topology_description_required = topology_description_required
        self.endpoint_information_epoch = endpoint_information_epoch
        self.partitions_by_user_endpoint = partitions_by_user_endpoint
