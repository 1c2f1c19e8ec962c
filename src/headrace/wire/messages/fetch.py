"""Fetch (API key 1). Made by tools/generate_messages.py: change that."""

from __future__ import annotations

import uuid

from headrace.wire.schema import ALWAYS, ZERO_UUID, Field, Message, Request, Response


class ReplicaState(Message):
    __slots__ = ("replica_epoch", "replica_id")
    FLEXIBLE = 15
    FIELDS = (
        Field("replica_id", "int32", (15, ALWAYS), default=-1),
        Field("replica_epoch", "int64", (15, ALWAYS), default=-1),
    )

    def __init__(
        self,
        replica_id: int = -1,
        replica_epoch: int = -1,
    ) -> None:
        self.replica_id = replica_id
        self.replica_epoch = replica_epoch


class FetchPartition(Message):
    __slots__ = (
        "current_leader_epoch",
        "fetch_offset",
        "high_watermark",
        "last_fetched_epoch",
        "log_start_offset",
        "partition",
        "partition_max_bytes",
        "replica_directory_id",
    )
    FLEXIBLE = 12
    FIELDS = (
        Field("partition", "int32", (4, ALWAYS), default=0),
        Field("current_leader_epoch", "int32", (9, ALWAYS), default=-1),
        Field("fetch_offset", "int64", (4, ALWAYS), default=0),
        Field("last_fetched_epoch", "int32", (12, ALWAYS), default=-1),
        Field("log_start_offset", "int64", (5, ALWAYS), default=-1),
        Field("partition_max_bytes", "int32", (4, ALWAYS), default=0),
        Field("replica_directory_id", "uuid", (17, ALWAYS), tag=0, default=ZERO_UUID),
        Field("high_watermark", "int64", (18, ALWAYS), tag=1, default=9223372036854775807),
    )

    def __init__(
        self,
        partition: int = 0,
        current_leader_epoch: int = -1,
        fetch_offset: int = 0,
        last_fetched_epoch: int = -1,
        log_start_offset: int = -1,
        partition_max_bytes: int = 0,
        replica_directory_id: uuid.UUID = ZERO_UUID,
        high_watermark: int = 9223372036854775807,
    ) -> None:
        self.partition = partition
        self.current_leader_epoch = current_leader_epoch
        self.fetch_offset = fetch_offset
        self.last_fetched_epoch = last_fetched_epoch
        self.log_start_offset = log_start_offset
        self.partition_max_bytes = partition_max_bytes
        self.replica_directory_id = replica_directory_id
        self.high_watermark = high_watermark


class FetchTopic(Message):
    __slots__ = ("partitions", "topic", "topic_id")
    FLEXIBLE = 12
    FIELDS = (
        Field("topic", "string", (4, 12), default=""),
        Field("topic_id", "uuid", (13, ALWAYS), default=ZERO_UUID),
        Field("partitions", "struct", (4, ALWAYS), array=True, struct=FetchPartition),
    )

    def __init__(
        self,
        topic: str = "",
        topic_id: uuid.UUID = ZERO_UUID,
        partitions: list[FetchPartition] | None = None,
    ) -> None:
        self.topic = topic
        self.topic_id = topic_id
        self.partitions = [] if partitions is None else partitions


class ForgottenTopic(Message):
    __slots__ = ("partitions", "topic", "topic_id")
    FLEXIBLE = 12
    FIELDS = (
        Field("topic", "string", (7, 12), default=""),
        Field("topic_id", "uuid", (13, ALWAYS), default=ZERO_UUID),
        Field("partitions", "int32", (7, ALWAYS), array=True),
    )

    def __init__(
        self,
        topic: str = "",
        topic_id: uuid.UUID = ZERO_UUID,
        partitions: list[int] | None = None,
    ) -> None:
        self.topic = topic
        self.topic_id = topic_id
        self.partitions = [] if partitions is None else partitions


class FetchRequest(Request["FetchResponse"]):
    __slots__ = (
        "cluster_id",
        "forgotten_topics_data",
        "isolation_level",
        "max_bytes",
        "max_wait_ms",
        "min_bytes",
        "rack_id",
        "replica_id",
        "replica_state",
        "session_epoch",
        "session_id",
        "topics",
    )
    API_KEY = 1
    VERSIONS = (4, 18)
    FLEXIBLE = 12
    FIELDS = (
        Field("cluster_id", "string", (12, ALWAYS), nullable=(12, ALWAYS), tag=0),
        Field("replica_id", "int32", (4, 14), default=-1),
        Field("replica_state", "struct", (15, ALWAYS), tag=1, struct=ReplicaState),
        Field("max_wait_ms", "int32", (4, ALWAYS), default=0),
        Field("min_bytes", "int32", (4, ALWAYS), default=0),
        Field("max_bytes", "int32", (4, ALWAYS), default=2147483647),
        Field("isolation_level", "int8", (4, ALWAYS), default=0),
        Field("session_id", "int32", (7, ALWAYS), default=0),
        Field("session_epoch", "int32", (7, ALWAYS), default=-1),
        Field("topics", "struct", (4, ALWAYS), array=True, struct=FetchTopic),
        Field("forgotten_topics_data", "struct", (7, ALWAYS), array=True, struct=ForgottenTopic),
        Field("rack_id", "string", (11, ALWAYS), default=""),
    )

    def __init__(
        self,
        cluster_id: str | None = None,
        replica_id: int = -1,
        replica_state: ReplicaState | None = None,
        max_wait_ms: int = 0,
        min_bytes: int = 0,
        max_bytes: int = 2147483647,
        isolation_level: int = 0,
        session_id: int = 0,
        session_epoch: int = -1,
        topics: list[FetchTopic] | None = None,
        forgotten_topics_data: list[ForgottenTopic] | None = None,
        rack_id: str = "",
    ) -> None:
        self.cluster_id = cluster_id
        self.replica_id = replica_id
        self.replica_state = ReplicaState() if replica_state is None else replica_state
        self.max_wait_ms = max_wait_ms
        self.min_bytes = min_bytes
        self.max_bytes = max_bytes
        self.isolation_level = isolation_level
        self.session_id = session_id
        self.session_epoch = session_epoch
        self.topics = [] if topics is None else topics
        self.forgotten_topics_data = [] if forgotten_topics_data is None else forgotten_topics_data
        self.rack_id = rack_id

    @classmethod
    def reply_type(cls) -> type[FetchResponse]:
        return FetchResponse


class EpochEndOffset(Message):
    __slots__ = ("end_offset", "epoch")
    FLEXIBLE = 12
    FIELDS = (
        Field("epoch", "int32", (12, ALWAYS), default=-1),
        Field("end_offset", "int64", (12, ALWAYS), default=-1),
    )

    def __init__(
        self,
        epoch: int = -1,
        end_offset: int = -1,
    ) -> None:
        self.epoch = epoch
        self.end_offset = end_offset


class LeaderIdAndEpoch(Message):
    __slots__ = ("leader_epoch", "leader_id")
    FLEXIBLE = 12
    FIELDS = (
        Field("leader_id", "int32", (12, ALWAYS), default=-1),
        Field("leader_epoch", "int32", (12, ALWAYS), default=-1),
    )

    def __init__(
        self,
        leader_id: int = -1,
        leader_epoch: int = -1,
    ) -> None:
        self.leader_id = leader_id
        self.leader_epoch = leader_epoch


class SnapshotId(Message):
    __slots__ = ("end_offset", "epoch")
    FLEXIBLE = 12
    FIELDS = (
        Field("end_offset", "int64", (12, ALWAYS), default=-1),
        Field("epoch", "int32", (12, ALWAYS), default=-1),
    )

    def __init__(
        self,
        end_offset: int = -1,
        epoch: int = -1,
    ) -> None:
        self.end_offset = end_offset
        self.epoch = epoch


class AbortedTransaction(Message):
    __slots__ = ("first_offset", "producer_id")
    FLEXIBLE = 12
    FIELDS = (
        Field("producer_id", "int64", (4, ALWAYS), default=0),
        Field("first_offset", "int64", (4, ALWAYS), default=0),
    )

    def __init__(
        self,
        producer_id: int = 0,
        first_offset: int = 0,
    ) -> None:
        self.producer_id = producer_id
        self.first_offset = first_offset


class PartitionData(Message):
    __slots__ = (
        "aborted_transactions",
        "current_leader",
        "diverging_epoch",
        "error_code",
        "high_watermark",
        "last_stable_offset",
        "log_start_offset",
        "partition_index",
        "preferred_read_replica",
        "records",
        "snapshot_id",
    )
    FLEXIBLE = 12
    FIELDS = (
        Field("partition_index", "int32", (4, ALWAYS), default=0),
        Field("error_code", "int16", (4, ALWAYS), default=0),
        Field("high_watermark", "int64", (4, ALWAYS), default=0),
        Field("last_stable_offset", "int64", (4, ALWAYS), default=-1),
        Field("log_start_offset", "int64", (5, ALWAYS), default=-1),
        Field("diverging_epoch", "struct", (12, ALWAYS), tag=0, struct=EpochEndOffset),
        Field("current_leader", "struct", (12, ALWAYS), tag=1, struct=LeaderIdAndEpoch),
        Field("snapshot_id", "struct", (12, ALWAYS), tag=2, struct=SnapshotId),
        Field(
            "aborted_transactions",
            "struct",
            (4, ALWAYS),
            array=True,
            nullable=(4, ALWAYS),
            struct=AbortedTransaction,
        ),
        Field("preferred_read_replica", "int32", (11, ALWAYS), default=-1),
        Field("records", "records", (4, ALWAYS), nullable=(4, ALWAYS), default=b""),
    )

    def __init__(
        self,
        partition_index: int = 0,
        error_code: int = 0,
        high_watermark: int = 0,
        last_stable_offset: int = -1,
        log_start_offset: int = -1,
        diverging_epoch: EpochEndOffset | None = None,
        current_leader: LeaderIdAndEpoch | None = None,
        snapshot_id: SnapshotId | None = None,
        aborted_transactions: list[AbortedTransaction] | None = None,
        preferred_read_replica: int = -1,
        records: bytes | None = b"",
    ) -> None:
        self.partition_index = partition_index
        self.error_code = error_code
        self.high_watermark = high_watermark
        self.last_stable_offset = last_stable_offset
        self.log_start_offset = log_start_offset
        self.diverging_epoch = EpochEndOffset() if diverging_epoch is None else diverging_epoch
        self.current_leader = LeaderIdAndEpoch() if current_leader is None else current_leader
        self.snapshot_id = SnapshotId() if snapshot_id is None else snapshot_id
        self.aborted_transactions = aborted_transactions
        self.preferred_read_replica = preferred_read_replica
        self.records = records


class FetchableTopicResponse(Message):
    __slots__ = ("partitions", "topic", "topic_id")
    FLEXIBLE = 12
    FIELDS = (
        Field("topic", "string", (4, 12), default=""),
        Field("topic_id", "uuid", (13, ALWAYS), default=ZERO_UUID),
        Field("partitions", "struct", (4, ALWAYS), array=True, struct=PartitionData),
    )

    def __init__(
        self,
        topic: str = "",
        topic_id: uuid.UUID = ZERO_UUID,
        partitions: list[PartitionData] | None = None,
    ) -> None:
        self.topic = topic
        self.topic_id = topic_id
        self.partitions = [] if partitions is None else partitions


class NodeEndpoint(Message):
    __slots__ = ("host", "node_id", "port", "rack")
    FLEXIBLE = 16
    FIELDS = (
        Field("node_id", "int32", (16, ALWAYS), default=0),
        Field("host", "string", (16, ALWAYS), default=""),
        Field("port", "int32", (16, ALWAYS), default=0),
        Field("rack", "string", (16, ALWAYS), nullable=(16, ALWAYS)),
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


class FetchResponse(Response):
    __slots__ = ("error_code", "node_endpoints", "responses", "session_id", "throttle_time_ms")
    API_KEY = 1
    FLEXIBLE = 12
    FIELDS = (
        Field("throttle_time_ms", "int32", (4, ALWAYS), default=0),
        Field("error_code", "int16", (7, ALWAYS), default=0),
        Field("session_id", "int32", (7, ALWAYS), default=0),
        Field("responses", "struct", (4, ALWAYS), array=True, struct=FetchableTopicResponse),
        Field("node_endpoints", "struct", (16, ALWAYS), array=True, tag=0, struct=NodeEndpoint),
    )

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        session_id: int = 0,
        responses: list[FetchableTopicResponse] | None = None,
        node_endpoints: list[NodeEndpoint] | None = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.session_id = session_id
        self.responses = [] if responses is None else responses
        self.node_endpoints = [] if node_endpoints is None else node_endpoints
