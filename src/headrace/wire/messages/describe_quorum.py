"""DescribeQuorum (API key 55). Made by tools/generate_messages.py: change that."""

from __future__ import annotations

import uuid

from headrace.wire.schema import ALWAYS, ZERO_UUID, Field, Message, Request, Response


class PartitionData(Message):
    __slots__ = ("partition_index",)
    FLEXIBLE = 0
    FIELDS = (Field("partition_index", "int32", (0, ALWAYS), default=0),)

    def __init__(
        self,
        partition_index: int = 0,
    ) -> None:
        self.partition_index = partition_index


class TopicData(Message):
    __slots__ = ("partitions", "topic_name")
    FLEXIBLE = 0
    FIELDS = (
        Field("topic_name", "string", (0, ALWAYS), default=""),
        Field("partitions", "struct", (0, ALWAYS), array=True, struct=PartitionData),
    )

    def __init__(
        self,
        topic_name: str = "",
        partitions: list[PartitionData] | None = None,
    ) -> None:
        self.topic_name = topic_name
        self.partitions = [] if partitions is None else partitions


class DescribeQuorumRequest(Request["DescribeQuorumResponse"]):
    __slots__ = ("topics",)
    API_KEY = 55
    VERSIONS = (0, 2)
    FLEXIBLE = 0
    FIELDS = (Field("topics", "struct", (0, ALWAYS), array=True, struct=TopicData),)

    def __init__(
        self,
        topics: list[TopicData] | None = None,
    ) -> None:
        self.topics = [] if topics is None else topics

    @classmethod
    def reply_type(cls) -> type[DescribeQuorumResponse]:
        return DescribeQuorumResponse


class ReplicaState(Message):
    __slots__ = (
        "last_caught_up_timestamp",
        "last_fetch_timestamp",
        "log_end_offset",
        "replica_directory_id",
        "replica_id",
    )
    FLEXIBLE = 0
    FIELDS = (
        Field("replica_id", "int32", (0, ALWAYS), default=0),
        Field("replica_directory_id", "uuid", (2, ALWAYS), default=ZERO_UUID),
        Field("log_end_offset", "int64", (0, ALWAYS), default=0),
        Field("last_fetch_timestamp", "int64", (1, ALWAYS), default=-1),
        Field("last_caught_up_timestamp", "int64", (1, ALWAYS), default=-1),
    )

    def __init__(
        self,
        replica_id: int = 0,
        replica_directory_id: uuid.UUID = ZERO_UUID,
        log_end_offset: int = 0,
        last_fetch_timestamp: int = -1,
        last_caught_up_timestamp: int = -1,
    ) -> None:
        self.replica_id = replica_id
        self.replica_directory_id = replica_directory_id
        self.log_end_offset = log_end_offset
        self.last_fetch_timestamp = last_fetch_timestamp
        self.last_caught_up_timestamp = last_caught_up_timestamp


class ResponsePartitionData(Message):
    __slots__ = (
        "current_voters",
        "error_code",
        "error_message",
        "high_watermark",
        "leader_epoch",
        "leader_id",
        "observers",
        "partition_index",
    )
    FLEXIBLE = 0
    FIELDS = (
        Field("partition_index", "int32", (0, ALWAYS), default=0),
        Field("error_code", "int16", (0, ALWAYS), default=0),
        Field("error_message", "string", (2, ALWAYS), nullable=(2, ALWAYS), default=""),
        Field("leader_id", "int32", (0, ALWAYS), default=0),
        Field("leader_epoch", "int32", (0, ALWAYS), default=0),
        Field("high_watermark", "int64", (0, ALWAYS), default=0),
        Field("current_voters", "struct", (0, ALWAYS), array=True, struct=ReplicaState),
        Field("observers", "struct", (0, ALWAYS), array=True, struct=ReplicaState),
    )

    def __init__(
        self,
        partition_index: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
        leader_id: int = 0,
        leader_epoch: int = 0,
        high_watermark: int = 0,
        current_voters: list[ReplicaState] | None = None,
        observers: list[ReplicaState] | None = None,
    ) -> None:
        self.partition_index = partition_index
        self.error_code = error_code
        self.error_message = error_message
        self.leader_id = leader_id
        self.leader_epoch = leader_epoch
        self.high_watermark = high_watermark
        self.current_voters = [] if current_voters is None else current_voters
        self.observers = [] if observers is None else observers


class ResponseTopicData(Message):
    __slots__ = ("partitions", "topic_name")
    FLEXIBLE = 0
    FIELDS = (
        Field("topic_name", "string", (0, ALWAYS), default=""),
        Field("partitions", "struct", (0, ALWAYS), array=True, struct=ResponsePartitionData),
    )

    def __init__(
        self,
        topic_name: str = "",
        partitions: list[ResponsePartitionData] | None = None,
    ) -> None:
        self.topic_name = topic_name
        self.partitions = [] if partitions is None else partitions


class Listener(Message):
    __slots__ = ("host", "name", "port")
    FLEXIBLE = 2
    FIELDS = (
        Field("name", "string", (2, ALWAYS), default=""),
        Field("host", "string", (2, ALWAYS), default=""),
        Field("port", "uint16", (2, ALWAYS), default=0),
    )

    def __init__(
        self,
        name: str = "",
        host: str = "",
        port: int = 0,
    ) -> None:
        self.name = name
        self.host = host
        self.port = port


class Node(Message):
    __slots__ = ("listeners", "node_id")
    FLEXIBLE = 2
    FIELDS = (
        Field("node_id", "int32", (2, ALWAYS), default=0),
        Field("listeners", "struct", (2, ALWAYS), array=True, struct=Listener),
    )

    def __init__(
        self,
        node_id: int = 0,
        listeners: list[Listener] | None = None,
    ) -> None:
        self.node_id = node_id
        self.listeners = [] if listeners is None else listeners


class DescribeQuorumResponse(Response):
    __slots__ = ("error_code", "error_message", "nodes", "topics")
    API_KEY = 55
    FLEXIBLE = 0
    FIELDS = (
        Field("error_code", "int16", (0, ALWAYS), default=0),
        Field("error_message", "string", (2, ALWAYS), nullable=(2, ALWAYS), default=""),
        Field("topics", "struct", (0, ALWAYS), array=True, struct=ResponseTopicData),
        Field("nodes", "struct", (2, ALWAYS), array=True, struct=Node),
    )

    def __init__(
        self,
        error_code: int = 0,
        error_message: str | None = "",
        topics: list[ResponseTopicData] | None = None,
        nodes: list[Node] | None = None,
    ) -> None:
        self.error_code = error_code
        self.error_message = error_message
        self.topics = [] if topics is None else topics
        self.nodes = [] if nodes is None else nodes
