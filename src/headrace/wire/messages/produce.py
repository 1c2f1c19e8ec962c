"""Produce (API key 0). Made by tools/generate_messages.py: change that."""

from __future__ import annotations

import uuid

from headrace.wire.schema import ALWAYS, ZERO_UUID, Field, Message, Request, Response


class PartitionProduceData(Message):
    __slots__ = ("index", "records")
    FLEXIBLE = 9
    FIELDS = (
        Field("index", "int32", (3, ALWAYS), default=0),
        Field("records", "records", (3, ALWAYS), nullable=(3, ALWAYS), default=b""),
    )

    def __init__(
        self,
        index: int = 0,
        records: bytes | None = b"",
    ) -> None:
        self.index = index
        self.records = records


class TopicProduceData(Message):
    __slots__ = ("name", "partition_data", "topic_id")
    FLEXIBLE = 9
    FIELDS = (
        Field("name", "string", (3, 12), default=""),
        Field("topic_id", "uuid", (13, ALWAYS), default=ZERO_UUID),
        Field("partition_data", "struct", (3, ALWAYS), array=True, struct=PartitionProduceData),
    )

    def __init__(
        self,
        name: str = "",
        topic_id: uuid.UUID = ZERO_UUID,
        partition_data: list[PartitionProduceData] | None = None,
    ) -> None:
        self.name = name
        self.topic_id = topic_id
        self.partition_data = [] if partition_data is None else partition_data


class ProduceRequest(Request["ProduceResponse"]):
    __slots__ = ("acks", "timeout_ms", "topic_data", "transactional_id")
    API_KEY = 0
    VERSIONS = (3, 13)
    FLEXIBLE = 9
    FIELDS = (
        Field("transactional_id", "string", (3, ALWAYS), nullable=(3, ALWAYS)),
        Field("acks", "int16", (3, ALWAYS), default=0),
        Field("timeout_ms", "int32", (3, ALWAYS), default=0),
        Field("topic_data", "struct", (3, ALWAYS), array=True, struct=TopicProduceData),
    )

    def __init__(
        self,
        transactional_id: str | None = None,
        acks: int = 0,
        timeout_ms: int = 0,
        topic_data: list[TopicProduceData] | None = None,
    ) -> None:
        self.transactional_id = transactional_id
        self.acks = acks
        self.timeout_ms = timeout_ms
        self.topic_data = [] if topic_data is None else topic_data

    @classmethod
    def reply_type(cls) -> type[ProduceResponse]:
        return ProduceResponse


class BatchIndexAndErrorMessage(Message):
    __slots__ = ("batch_index", "batch_index_error_message")
    FLEXIBLE = 9
    FIELDS = (
        Field("batch_index", "int32", (8, ALWAYS), default=0),
        Field("batch_index_error_message", "string", (8, ALWAYS), nullable=(8, ALWAYS)),
    )

    def __init__(
        self,
        batch_index: int = 0,
        batch_index_error_message: str | None = None,
    ) -> None:
        self.batch_index = batch_index
        self.batch_index_error_message = batch_index_error_message


class LeaderIdAndEpoch(Message):
    __slots__ = ("leader_epoch", "leader_id")
    FLEXIBLE = 10
    FIELDS = (
        Field("leader_id", "int32", (10, ALWAYS), default=-1),
        Field("leader_epoch", "int32", (10, ALWAYS), default=-1),
    )

    def __init__(
        self,
        leader_id: int = -1,
        leader_epoch: int = -1,
    ) -> None:
        self.leader_id = leader_id
        self.leader_epoch = leader_epoch


class PartitionProduceResponse(Message):
    __slots__ = (
        "base_offset",
        "current_leader",
        "error_code",
        "error_message",
        "index",
        "log_append_time_ms",
        "log_start_offset",
        "record_errors",
    )
    FLEXIBLE = 9
    FIELDS = (
        Field("index", "int32", (3, ALWAYS), default=0),
        Field("error_code", "int16", (3, ALWAYS), default=0),
        Field("base_offset", "int64", (3, ALWAYS), default=0),
        Field("log_append_time_ms", "int64", (3, ALWAYS), default=-1),
        Field("log_start_offset", "int64", (5, ALWAYS), default=-1),
        Field("record_errors", "struct", (8, ALWAYS), array=True, struct=BatchIndexAndErrorMessage),
        Field("error_message", "string", (8, ALWAYS), nullable=(8, ALWAYS)),
        Field("current_leader", "struct", (10, ALWAYS), tag=0, struct=LeaderIdAndEpoch),
    )

    def __init__(
        self,
        index: int = 0,
        error_code: int = 0,
        base_offset: int = 0,
        log_append_time_ms: int = -1,
        log_start_offset: int = -1,
        record_errors: list[BatchIndexAndErrorMessage] | None = None,
        error_message: str | None = None,
        current_leader: LeaderIdAndEpoch | None = None,
    ) -> None:
        self.index = index
        self.error_code = error_code
        self.base_offset = base_offset
        self.log_append_time_ms = log_append_time_ms
        self.log_start_offset = log_start_offset
        self.record_errors = [] if record_errors is None else record_errors
        self.error_message = error_message
        self.current_leader = LeaderIdAndEpoch() if current_leader is None else current_leader


class TopicProduceResponse(Message):
    __slots__ = ("name", "partition_responses", "topic_id")
    FLEXIBLE = 9
    FIELDS = (
        Field("name", "string", (3, 12), default=""),
        Field("topic_id", "uuid", (13, ALWAYS), default=ZERO_UUID),
        Field("partition_responses", "struct", (3, ALWAYS), array=True, struct=PartitionProduceResponse),
    )

    def __init__(
        self,
        name: str = "",
        topic_id: uuid.UUID = ZERO_UUID,
        partition_responses: list[PartitionProduceResponse] | None = None,
    ) -> None:
        self.name = name
        self.topic_id = topic_id
        self.partition_responses = [] if partition_responses is None else partition_responses


class NodeEndpoint(Message):
    __slots__ = ("host", "node_id", "port", "rack")
    FLEXIBLE = 10
    FIELDS = (
        Field("node_id", "int32", (10, ALWAYS), default=0),
        Field("host", "string", (10, ALWAYS), default=""),
        Field("port", "int32", (10, ALWAYS), default=0),
        Field("rack", "string", (10, ALWAYS), nullable=(10, ALWAYS)),
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


class ProduceResponse(Response):
    __slots__ = ("node_endpoints", "responses", "throttle_time_ms")
    API_KEY = 0
    FLEXIBLE = 9
    FIELDS = (
        Field("responses", "struct", (3, ALWAYS), array=True, struct=TopicProduceResponse),
        Field("throttle_time_ms", "int32", (3, ALWAYS), default=0),
        Field("node_endpoints", "struct", (10, ALWAYS), array=True, tag=0, struct=NodeEndpoint),
    )

    def __init__(
        self,
        responses: list[TopicProduceResponse] | None = None,
        throttle_time_ms: int = 0,
        node_endpoints: list[NodeEndpoint] | None = None,
    ) -> None:
        self.responses = [] if responses is None else responses
        self.throttle_time_ms = throttle_time_ms
        self.node_endpoints = [] if node_endpoints is None else node_endpoints
