"""Metadata (API key 3). Made by tools/generate_messages.py: change that."""

from __future__ import annotations

import uuid

from headrace.wire.schema import ALWAYS, ZERO_UUID, Field, Message, Request, Response


class MetadataRequestTopic(Message):
    __slots__ = ("name", "topic_id")
    FLEXIBLE = 9
    FIELDS = (
        Field("topic_id", "uuid", (10, ALWAYS), default=ZERO_UUID),
        Field("name", "string", (0, ALWAYS), nullable=(10, ALWAYS), default=""),
    )

    def __init__(
        self,
        topic_id: uuid.UUID = ZERO_UUID,
        name: str | None = "",
    ) -> None:
        self.topic_id = topic_id
        self.name = name


class MetadataRequest(Request["MetadataResponse"]):
    __slots__ = (
        "allow_auto_topic_creation",
        "include_cluster_authorized_operations",
        "include_topic_authorized_operations",
        "topics",
    )
    API_KEY = 3
    VERSIONS = (0, 13)
    FLEXIBLE = 9
    FIELDS = (
        Field("topics", "struct", (0, ALWAYS), array=True, nullable=(1, ALWAYS), struct=MetadataRequestTopic),
        Field("allow_auto_topic_creation", "bool", (4, ALWAYS), default=True),
        Field("include_cluster_authorized_operations", "bool", (8, 10), default=False),
        Field("include_topic_authorized_operations", "bool", (8, ALWAYS), default=False),
    )

    def __init__(
        self,
        topics: list[MetadataRequestTopic] | None = None,
        allow_auto_topic_creation: bool = True,
        include_cluster_authorized_operations: bool = False,
        include_topic_authorized_operations: bool = False,
    ) -> None:
        self.topics = topics
        self.allow_auto_topic_creation = allow_auto_topic_creation
        self.include_cluster_authorized_operations = include_cluster_authorized_operations
        self.include_topic_authorized_operations = include_topic_authorized_operations

    @classmethod
    def reply_type(cls) -> type[MetadataResponse]:
        return MetadataResponse


class MetadataResponseBroker(Message):
    __slots__ = ("host", "node_id", "port", "rack")
    FLEXIBLE = 9
    FIELDS = (
        Field("node_id", "int32", (0, ALWAYS), default=0),
        Field("host", "string", (0, ALWAYS), default=""),
        Field("port", "int32", (0, ALWAYS), default=0),
        Field("rack", "string", (1, ALWAYS), nullable=(1, ALWAYS)),
    )

    def __init__(
        self,
        node_id: int = 0,
        host: str = "",
        port: int = 0,
        rack: str | None = None,
    ) -> None:
        self.node_id = node_id
        self.host = host
        self.port = port
        self.rack = rack


class MetadataResponsePartition(Message):
    __slots__ = (
        "error_code",
        "isr_nodes",
        "leader_epoch",
        "leader_id",
        "offline_replicas",
        "partition_index",
        "replica_nodes",
    )
    FLEXIBLE = 9
    FIELDS = (
        Field("error_code", "int16", (0, ALWAYS), default=0),
        Field("partition_index", "int32", (0, ALWAYS), default=0),
        Field("leader_id", "int32", (0, ALWAYS), default=0),
        Field("leader_epoch", "int32", (7, ALWAYS), default=-1),
        Field("replica_nodes", "int32", (0, ALWAYS), array=True),
        Field("isr_nodes", "int32", (0, ALWAYS), array=True),
        Field("offline_replicas", "int32", (5, ALWAYS), array=True),
    )

    def __init__(
        self,
        error_code: int = 0,
        partition_index: int = 0,
        leader_id: int = 0,
        leader_epoch: int = -1,
        replica_nodes: list[int] | None = None,
        isr_nodes: list[int] | None = None,
        offline_replicas: list[int] | None = None,
    ) -> None:
        self.error_code = error_code
        self.partition_index = partition_index
        self.leader_id = leader_id
        self.leader_epoch = leader_epoch
        self.replica_nodes = [] if replica_nodes is None else replica_nodes
        self.isr_nodes = [] if isr_nodes is None else isr_nodes
        self.offline_replicas = [] if offline_replicas is None else offline_replicas


class MetadataResponseTopic(Message):
    __slots__ = ("error_code", "is_internal", "name", "partitions", "topic_authorized_operations", "topic_id")
    FLEXIBLE = 9
    FIELDS = (
        Field("error_code", "int16", (0, ALWAYS), default=0),
        Field("name", "string", (0, ALWAYS), nullable=(12, ALWAYS), default=""),
        Field("topic_id", "uuid", (10, ALWAYS), default=ZERO_UUID),
        Field("is_internal", "bool", (1, ALWAYS), default=False),
        Field("partitions", "struct", (0, ALWAYS), array=True, struct=MetadataResponsePartition),
        Field("topic_authorized_operations", "int32", (8, ALWAYS), default=-2147483648),
    )

    def __init__(
        self,
        error_code: int = 0,
        name: str | None = "",
        topic_id: uuid.UUID = ZERO_UUID,
        is_internal: bool = False,
        partitions: list[MetadataResponsePartition] | None = None,
        topic_authorized_operations: int = -2147483648,
    ) -> None:
        self.error_code = error_code
        self.name = name
        self.topic_id = topic_id
        self.is_internal = is_internal
        self.partitions = [] if partitions is None else partitions
        self.topic_authorized_operations = topic_authorized_operations


class MetadataResponse(Response):
    __slots__ = (
        "brokers",
        "cluster_authorized_operations",
        "cluster_id",
        "controller_id",
        "error_code",
        "throttle_time_ms",
        "topics",
    )
    API_KEY = 3
    FLEXIBLE = 9
    FIELDS = (
        Field("throttle_time_ms", "int32", (3, ALWAYS), default=0),
        Field("brokers", "struct", (0, ALWAYS), array=True, struct=MetadataResponseBroker),
        Field("cluster_id", "string", (2, ALWAYS), nullable=(2, ALWAYS)),
        Field("controller_id", "int32", (1, ALWAYS), default=-1),
        Field("topics", "struct", (0, ALWAYS), array=True, struct=MetadataResponseTopic),
        Field("cluster_authorized_operations", "int32", (8, 10), default=-2147483648),
        Field("error_code", "int16", (13, ALWAYS), default=0),
    )

    def __init__(
        self,
        throttle_time_ms: int = 0,
        brokers: list[MetadataResponseBroker] | None = None,
        cluster_id: str | None = None,
        controller_id: int = -1,
        topics: list[MetadataResponseTopic] | None = None,
        cluster_authorized_operations: int = -2147483648,
        error_code: int = 0,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.brokers = [] if brokers is None else brokers
        self.cluster_id = cluster_id
        self.controller_id = controller_id
        self.topics = [] if topics is None else topics
        self.cluster_authorized_operations = cluster_authorized_operations
        self.error_code = error_code
