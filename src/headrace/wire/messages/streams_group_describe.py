"""StreamsGroupDescribe (API key 89). Made by tools/generate_messages.py: change that."""

from __future__ import annotations

from headrace.wire.schema import ALWAYS, Field, Message, Request, Response


class StreamsGroupDescribeRequest(Request["StreamsGroupDescribeResponse"]):
    __slots__ = ("group_ids", "include_authorized_operations", "include_topology_description")
    API_KEY = 89
    VERSIONS = (0, 1)
    FLEXIBLE = 0
    FIELDS = (
        Field("group_ids", "string", (0, ALWAYS), array=True),
        Field("include_authorized_operations", "bool", (0, ALWAYS), default=False),
        Field("include_topology_description", "bool", (1, ALWAYS), default=False),
    )

    def __init__(
        self,
        group_ids: list[str] | None = None,
        include_authorized_operations: bool = False,
        include_topology_description: bool = False,
    ) -> None:
        self.group_ids = [] if group_ids is None else group_ids
        self.include_authorized_operations = include_authorized_operations
        self.include_topology_description = include_topology_description

    @classmethod
    def reply_type(cls) -> type[StreamsGroupDescribeResponse]:
        return StreamsGroupDescribeResponse


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


class Subtopology(Message):
    __slots__ = (
        "repartition_sink_topics",
        "repartition_source_topics",
        "source_topics",
        "state_changelog_topics",
        "subtopology_id",
    )
    FLEXIBLE = 0
    FIELDS = (
        Field("subtopology_id", "string", (0, ALWAYS), default=""),
        Field("source_topics", "string", (0, ALWAYS), array=True),
        Field("repartition_sink_topics", "string", (0, ALWAYS), array=True),
        Field("state_changelog_topics", "struct", (0, ALWAYS), array=True, struct=TopicInfo),
        Field("repartition_source_topics", "struct", (0, ALWAYS), array=True, struct=TopicInfo),
    )

    def __init__(
        self,
        subtopology_id: str = "",
        source_topics: list[str] | None = None,
        repartition_sink_topics: list[str] | None = None,
        state_changelog_topics: list[TopicInfo] | None = None,
        repartition_source_topics: list[TopicInfo] | None = None,
    ) -> None:
        self.subtopology_id = subtopology_id
        self.source_topics = [] if source_topics is None else source_topics
        self.repartition_sink_topics = [] if repartition_sink_topics is None else repartition_sink_topics
        self.state_changelog_topics = [] if state_changelog_topics is None else state_changelog_topics
        self.repartition_source_topics = (
            [] if repartition_source_topics is None else repartition_source_topics
        )


class Topology(Message):
    __slots__ = ("epoch", "subtopologies")
    FLEXIBLE = 0
    FIELDS = (
        Field("epoch", "int32", (0, ALWAYS), default=0),
        Field("subtopologies", "struct", (0, ALWAYS), array=True, nullable=(0, ALWAYS), struct=Subtopology),
    )

    def __init__(
        self,
        epoch: int = 0,
        subtopologies: list[Subtopology] | None = None,
    ) -> None:
        self.epoch = epoch
        self.subtopologies = subtopologies


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


class Assignment(Message):
    __slots__ = ("active_tasks", "standby_tasks", "warmup_tasks")
    FLEXIBLE = 0
    FIELDS = (
        Field("active_tasks", "struct", (0, ALWAYS), array=True, struct=TaskIds),
        Field("standby_tasks", "struct", (0, ALWAYS), array=True, struct=TaskIds),
        Field("warmup_tasks", "struct", (0, ALWAYS), array=True, struct=TaskIds),
    )

    def __init__(
        self,
        active_tasks: list[TaskIds] | None = None,
        standby_tasks: list[TaskIds] | None = None,
        warmup_tasks: list[TaskIds] | None = None,
    ) -> None:
        self.active_tasks = [] if active_tasks is None else active_tasks
        self.standby_tasks = [] if standby_tasks is None else standby_tasks
        self.warmup_tasks = [] if warmup_tasks is None else warmup_tasks


class Member(Message):
    __slots__ = (
        "assignment",
        "client_host",
        "client_id",
        "client_tags",
        "instance_id",
        "is_classic",
        "member_epoch",
        "member_id",
        "process_id",
        "rack_id",
        "target_assignment",
        "task_end_offsets",
        "task_offsets",
        "topology_epoch",
        "user_endpoint",
    )
    FLEXIBLE = 0
    FIELDS = (
        Field("member_id", "string", (0, ALWAYS), default=""),
        Field("member_epoch", "int32", (0, ALWAYS), default=0),
        Field("instance_id", "string", (0, ALWAYS), nullable=(0, ALWAYS)),
        Field("rack_id", "string", (0, ALWAYS), nullable=(0, ALWAYS)),
        Field("client_id", "string", (0, ALWAYS), default=""),
        Field("client_host", "string", (0, ALWAYS), default=""),
        Field("topology_epoch", "int32", (0, ALWAYS), default=0),
        Field("process_id", "string", (0, ALWAYS), default=""),
        Field("user_endpoint", "struct", (0, ALWAYS), nullable=(0, ALWAYS), struct=Endpoint),
        Field("client_tags", "struct", (0, ALWAYS), array=True, struct=KeyValue),
        Field("task_offsets", "struct", (0, ALWAYS), array=True, struct=TaskOffset),
        Field("task_end_offsets", "struct", (0, ALWAYS), array=True, struct=TaskOffset),
        Field("assignment", "struct", (0, ALWAYS), struct=Assignment),
        Field("target_assignment", "struct", (0, ALWAYS), struct=Assignment),
        Field("is_classic", "bool", (0, ALWAYS), default=False),
    )

    def __init__(
        self,
        member_id: str = "",
        member_epoch: int = 0,
        instance_id: str | None = None,
        rack_id: str | None = None,
        client_id: str = "",
        client_host: str = "",
        topology_epoch: int = 0,
        process_id: str = "",
        user_endpoint: Endpoint | None = None,
        client_tags: list[KeyValue] | None = None,
        task_offsets: list[TaskOffset] | None = None,
        task_end_offsets: list[TaskOffset] | None = None,
        assignment: Assignment | None = None,
        target_assignment: Assignment | None = None,
        is_classic: bool = False,
    ) -> None:
        self.member_id = member_id
        self.member_epoch = member_epoch
        self.instance_id = instance_id
        self.rack_id = rack_id
        self.client_id = client_id
        self.client_host = client_host
        self.topology_epoch = topology_epoch
        self.process_id = process_id
        self.user_endpoint = user_endpoint
        self.client_tags = [] if client_tags is None else client_tags
        self.task_offsets = [] if task_offsets is None else task_offsets
        self.task_end_offsets = [] if task_end_offsets is None else task_end_offsets
        self.assignment = Assignment() if assignment is None else assignment
        self.target_assignment = Assignment() if target_assignment is None else target_assignment
        self.is_classic = is_classic


class TopologyDescriptionNode(Message):
    __slots__ = ("name", "node_type", "sink_topic", "source_topics", "stores", "successors")
    FLEXIBLE = 1
    FIELDS = (
        Field("name", "string", (1, ALWAYS), default=""),
        Field("node_type", "int8", (1, ALWAYS), default=0),
        Field("source_topics", "string", (1, ALWAYS), array=True),
        Field("sink_topic", "string", (1, ALWAYS), nullable=(1, ALWAYS)),
        Field("stores", "string", (1, ALWAYS), array=True),
        Field("successors", "string", (1, ALWAYS), array=True),
    )

    def __init__(
        self,
        name: str = "",
        node_type: int = 0,
        source_topics: list[str] | None = None,
        sink_topic: str | None = None,
        stores: list[str] | None = None,
        successors: list[str] | None = None,
    ) -> None:
        self.name = name
        self.node_type = node_type
        self.source_topics = [] if source_topics is None else source_topics
        self.sink_topic = sink_topic
        self.stores = [] if stores is None else stores
        self.successors = [] if successors is None else successors


class TopologyDescriptionSubtopology(Message):
    __slots__ = ("nodes", "subtopology_id")
    FLEXIBLE = 1
    FIELDS = (
        Field("subtopology_id", "string", (1, ALWAYS), default=""),
        Field("nodes", "struct", (1, ALWAYS), array=True, struct=TopologyDescriptionNode),
    )

    def __init__(
        self,
        subtopology_id: str = "",
        nodes: list[TopologyDescriptionNode] | None = None,
    ) -> None:
        self.subtopology_id = subtopology_id
        self.nodes = [] if nodes is None else nodes


class TopologyDescriptionGlobalStore(Message):
    __slots__ = ("processor", "source")
    FLEXIBLE = 1
    FIELDS = (
        Field("source", "struct", (1, ALWAYS), struct=TopologyDescriptionNode),
        Field("processor", "struct", (1, ALWAYS), struct=TopologyDescriptionNode),
    )

    def __init__(
        self,
        source: TopologyDescriptionNode | None = None,
        processor: TopologyDescriptionNode | None = None,
    ) -> None:
        self.source = TopologyDescriptionNode() if source is None else source
        self.processor = TopologyDescriptionNode() if processor is None else processor


class TopologyDescription(Message):
    __slots__ = ("global_stores", "subtopologies")
    FLEXIBLE = 1
    FIELDS = (
        Field("subtopologies", "struct", (1, ALWAYS), array=True, struct=TopologyDescriptionSubtopology),
        Field("global_stores", "struct", (1, ALWAYS), array=True, struct=TopologyDescriptionGlobalStore),
    )

    def __init__(
        self,
        subtopologies: list[TopologyDescriptionSubtopology] | None = None,
        global_stores: list[TopologyDescriptionGlobalStore] | None = None,
    ) -> None:
        self.subtopologies = [] if subtopologies is None else subtopologies
        self.global_stores = [] if global_stores is None else global_stores


class DescribedGroup(Message):
    __slots__ = (
        "assignment_epoch",
        "assignor_name",
        "authorized_operations",
        "error_code",
        "error_message",
        "group_epoch",
        "group_id",
        "group_state",
        "members",
        "topology",
        "topology_description",
        "topology_description_status",
    )
    FLEXIBLE = 0
    FIELDS = (
        Field("error_code", "int16", (0, ALWAYS), default=0),
        Field("error_message", "string", (0, ALWAYS), nullable=(0, ALWAYS)),
        Field("group_id", "string", (0, ALWAYS), default=""),
        Field("group_state", "string", (0, ALWAYS), default=""),
        Field("group_epoch", "int32", (0, ALWAYS), default=0),
        Field("assignment_epoch", "int32", (0, ALWAYS), default=0),
        Field("topology", "struct", (0, ALWAYS), nullable=(0, ALWAYS), struct=Topology),
        Field("members", "struct", (0, ALWAYS), array=True, struct=Member),
        Field("authorized_operations", "int32", (0, ALWAYS), default=-2147483648),
        Field(
            "topology_description", "struct", (1, ALWAYS), nullable=(1, ALWAYS), struct=TopologyDescription
        ),
        Field("topology_description_status", "int8", (1, ALWAYS), default=0),
        Field("assignor_name", "string", (1, ALWAYS), nullable=(1, ALWAYS)),
    )

    def __init__(
        self,
        error_code: int = 0,
        error_message: str | None = None,
        group_id: str = "",
        group_state: str = "",
        group_epoch: int = 0,
        assignment_epoch: int = 0,
        topology: Topology | None = None,
        members: list[Member] | None = None,
        authorized_operations: int = -2147483648,
        topology_description: TopologyDescription | None = None,
        topology_description_status: int = 0,
        assignor_name: str | None = None,
    ) -> None:
        self.error_code = error_code
        self.error_message = error_message
        self.group_id = group_id
        self.group_state = group_state
        self.group_epoch = group_epoch
        self.assignment_epoch = assignment_epoch
        self.topology = topology
        self.members = [] if members is None else members
        self.authorized_operations = authorized_operations
        self.topology_description = topology_description
        self.topology_description_status = topology_description_status
        self.assignor_name = assignor_name


class StreamsGroupDescribeResponse(Response):
    __slots__ = ("groups", "throttle_time_ms")
    API_KEY = 89
    FLEXIBLE = 0
    FIELDS = (
        Field("throttle_time_ms", "int32", (0, ALWAYS), default=0),
        Field("groups", "struct", (0, ALWAYS), array=True, struct=DescribedGroup),
    )

    def __init__(
        self,
        throttle_time_ms: int = 0,
        groups: list[DescribedGroup] | None = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.groups = [] if groups is None else groups
