"""ShareAcknowledge (API key 79). Made by tools/generate_messages.py: change that."""

from __future__ import annotations

import uuid

from headrace.wire.schema import ALWAYS, ZERO_UUID, Field, Message, Request, Response


class AcknowledgementBatch(Message):
    __slots__ = ("acknowledge_types", "first_offset", "last_offset")
    FLEXIBLE = 1
    FIELDS = (
        Field("first_offset", "int64", (1, ALWAYS), default=0),
        Field("last_offset", "int64", (1, ALWAYS), default=0),
        Field("acknowledge_types", "int8", (1, ALWAYS), array=True),
    )

    def __init__(
        self,
        first_offset: int = 0,
        last_offset: int = 0,
        acknowledge_types: list[int] | None = None,
    ) -> None:
        self.first_offset = first_offset
        self.last_offset = last_offset
        self.acknowledge_types = [] if acknowledge_types is None else acknowledge_types


class AcknowledgePartition(Message):
    __slots__ = ("acknowledgement_batches", "partition_index")
    FLEXIBLE = 1
    FIELDS = (
        Field("partition_index", "int32", (1, ALWAYS), default=0),
        Field("acknowledgement_batches", "struct", (1, ALWAYS), array=True, struct=AcknowledgementBatch),
    )

    def __init__(
        self,
        partition_index: int = 0,
        acknowledgement_batches: list[AcknowledgementBatch] | None = None,
    ) -> None:
        self.partition_index = partition_index
        self.acknowledgement_batches = [] if acknowledgement_batches is None else acknowledgement_batches


class AcknowledgeTopic(Message):
    __slots__ = ("partitions", "topic_id")
    FLEXIBLE = 1
    FIELDS = (
        Field("topic_id", "uuid", (1, ALWAYS), default=ZERO_UUID),
        Field("partitions", "struct", (1, ALWAYS), array=True, struct=AcknowledgePartition),
    )

    def __init__(
        self,
        topic_id: uuid.UUID = ZERO_UUID,
        partitions: list[AcknowledgePartition] | None = None,
    ) -> None:
        self.topic_id = topic_id
        self.partitions = [] if partitions is None else partitions


class ShareAcknowledgeRequest(Request["ShareAcknowledgeResponse"]):
    __slots__ = ("group_id", "is_renew_ack", "member_id", "share_session_epoch", "topics")
    API_KEY = 79
    VERSIONS = (1, 2)
    FLEXIBLE = 1
    FIELDS = (
        Field("group_id", "string", (1, ALWAYS), nullable=(1, ALWAYS)),
        Field("member_id", "string", (1, ALWAYS), nullable=(1, ALWAYS), default=""),
        Field("share_session_epoch", "int32", (1, ALWAYS), default=0),
        Field("is_renew_ack", "bool", (2, ALWAYS), default=False),
        Field("topics", "struct", (1, ALWAYS), array=True, struct=AcknowledgeTopic),
    )

    def __init__(
        self,
        group_id: str | None = None,
        member_id: str | None = "",
        share_session_epoch: int = 0,
        is_renew_ack: bool = False,
        topics: list[AcknowledgeTopic] | None = None,
    ) -> None:
        self.group_id = group_id
        self.member_id = member_id
        self.share_session_epoch = share_session_epoch
        self.is_renew_ack = is_renew_ack
        self.topics = [] if topics is None else topics

    @classmethod
    def reply_type(cls) -> type[ShareAcknowledgeResponse]:
        return ShareAcknowledgeResponse


class LeaderIdAndEpoch(Message):
    __slots__ = ("leader_epoch", "leader_id")
    FLEXIBLE = 1
    FIELDS = (
        Field("leader_id", "int32", (1, ALWAYS), default=0),
        Field("leader_epoch", "int32", (1, ALWAYS), default=0),
    )

    def __init__(
        self,
        leader_id: int = 0,
        leader_epoch: int = 0,
    ) -> None:
        self.leader_id = leader_id
        self.leader_epoch = leader_epoch


class PartitionData(Message):
    __slots__ = ("current_leader", "error_code", "error_message", "partition_index")
    FLEXIBLE = 1
    FIELDS = (
        Field("partition_index", "int32", (1, ALWAYS), default=0),
        Field("error_code", "int16", (1, ALWAYS), default=0),
        Field("error_message", "string", (1, ALWAYS), nullable=(1, ALWAYS)),
        Field("current_leader", "struct", (1, ALWAYS), struct=LeaderIdAndEpoch),
    )

    def __init__(
        self,
        partition_index: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        current_leader: LeaderIdAndEpoch | None = None,
    ) -> None:
        self.partition_index = partition_index
        self.error_code = error_code
        self.error_message = error_message
        self.current_leader = LeaderIdAndEpoch() if current_leader is None else current_leader


class ShareAcknowledgeTopicResponse(Message):
    __slots__ = ("partitions", "topic_id")
    FLEXIBLE = 1
    FIELDS = (
        Field("topic_id", "uuid", (1, ALWAYS), default=ZERO_UUID),
        Field("partitions", "struct", (1, ALWAYS), array=True, struct=PartitionData),
    )

    def __init__(
        self,
        topic_id: uuid.UUID = ZERO_UUID,
        partitions: list[PartitionData] | None = None,
    ) -> None:
        self.topic_id = topic_id
        self.partitions = [] if partitions is None else partitions


class NodeEndpoint(Message):
    __slots__ = ("host", "node_id", "port", "rack")
    FLEXIBLE = 1
    FIELDS = (
        Field("node_id", "int32", (1, ALWAYS), default=0),
        Field("host", "string", (1, ALWAYS), default=""),
        Field("port", "int32", (1, ALWAYS), default=0),
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


class ShareAcknowledgeResponse(Response):
    __slots__ = (
        "acquisition_lock_timeout_ms",
        "error_code",
        "error_message",
        "node_endpoints",
        "responses",
        "throttle_time_ms",
    )
    API_KEY = 79
    FLEXIBLE = 1
    FIELDS = (
        Field("throttle_time_ms", "int32", (1, ALWAYS), default=0),
        Field("error_code", "int16", (1, ALWAYS), default=0),
        Field("error_message", "string", (1, ALWAYS), nullable=(1, ALWAYS)),
        Field("acquisition_lock_timeout_ms", "int32", (2, ALWAYS), default=0),
        Field("responses", "struct", (1, ALWAYS), array=True, struct=ShareAcknowledgeTopicResponse),
        Field("node_endpoints", "struct", (1, ALWAYS), array=True, struct=NodeEndpoint),
    )

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        acquisition_lock_timeout_ms: int = 0,
        responses: list[ShareAcknowledgeTopicResponse] | None = None,
        node_endpoints: list[NodeEndpoint] | None = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.acquisition_lock_timeout_ms = acquisition_lock_timeout_ms
        self.responses = [] if responses is None else responses
        self.node_endpoints = [] if node_endpoints is None else node_endpoints
