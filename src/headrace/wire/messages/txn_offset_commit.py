"""TxnOffsetCommit (API key 28). Made by tools/generate_messages.py: change that."""

from __future__ import annotations

import uuid

from headrace.wire.schema import ALWAYS, ZERO_UUID, Field, Message, Request, Response


class TxnOffsetCommitRequestPartition(Message):
    __slots__ = ("committed_leader_epoch", "committed_metadata", "committed_offset", "partition_index")
    FLEXIBLE = 3
    FIELDS = (
        Field("partition_index", "int32", (0, ALWAYS), default=0),
        Field("committed_offset", "int64", (0, ALWAYS), default=0),
        Field("committed_leader_epoch", "int32", (2, ALWAYS), default=-1),
        Field("committed_metadata", "string", (0, ALWAYS), nullable=(0, ALWAYS), default=""),
    )

    def __init__(
        self,
        partition_index: int = 0,
        committed_offset: int = 0,
        committed_leader_epoch: int = -1,
        committed_metadata: str | None = "",
    ) -> None:
        self.partition_index = partition_index
        self.committed_offset = committed_offset
        self.committed_leader_epoch = committed_leader_epoch
        self.committed_metadata = committed_metadata


class TxnOffsetCommitRequestTopic(Message):
    __slots__ = ("name", "partitions", "topic_id")
    FLEXIBLE = 3
    FIELDS = (
        Field("name", "string", (0, 5), default=""),
        Field("topic_id", "uuid", (6, ALWAYS), default=ZERO_UUID),
        Field("partitions", "struct", (0, ALWAYS), array=True, struct=TxnOffsetCommitRequestPartition),
    )

    def __init__(
        self,
        name: str = "",
        partitions: list[TxnOffsetCommitRequestPartition] | None = None,
        topic_id: uuid.UUID = ZERO_UUID,
    ) -> None:
        self.name = name
        self.partitions = [] if partitions is None else partitions
        self.topic_id = topic_id


class TxnOffsetCommitRequest(Request["TxnOffsetCommitResponse"]):
    __slots__ = (
        "generation_id_or_member_epoch",
        "group_id",
        "group_instance_id",
        "member_id",
        "producer_epoch",
        "producer_id",
        "topics",
        "transactional_id",
    )
    API_KEY = 28
    VERSIONS = (0, 6)
    FLEXIBLE = 3
    FIELDS = (
        Field("transactional_id", "string", (0, ALWAYS), default=""),
        Field("group_id", "string", (0, ALWAYS), default=""),
        Field("producer_id", "int64", (0, ALWAYS), default=0),
        Field("producer_epoch", "int16", (0, ALWAYS), default=0),
        Field("generation_id_or_member_epoch", "int32", (3, ALWAYS), default=-1),
        Field("member_id", "string", (3, ALWAYS), default=""),
        Field("group_instance_id", "string", (3, ALWAYS), nullable=(3, ALWAYS)),
        Field("topics", "struct", (0, ALWAYS), array=True, struct=TxnOffsetCommitRequestTopic),
    )

    def __init__(
        self,
        transactional_id: str = "",
        group_id: str = "",
        producer_id: int = 0,
        producer_epoch: int = 0,
        generation_id_or_member_epoch: int = -1,
        member_id: str = "",
        group_instance_id: str | None = None,
        topics: list[TxnOffsetCommitRequestTopic] | None = None,
    ) -> None:
        self.transactional_id = transactional_id
        self.group_id = group_id
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.generation_id_or_member_epoch = generation_id_or_member_epoch
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.topics = [] if topics is None else topics

    @classmethod
    def reply_type(cls) -> type[TxnOffsetCommitResponse]:
        return TxnOffsetCommitResponse


class TxnOffsetCommitResponsePartition(Message):
    __slots__ = ("error_code", "partition_index")
    FLEXIBLE = 3
    FIELDS = (
        Field("partition_index", "int32", (0, ALWAYS), default=0),
        Field("error_code", "int16", (0, ALWAYS), default=0),
    )

    def __init__(
        self,
        partition_index: int = 0,
        error_code: int = 0,
    ) -> None:
        self.partition_index = partition_index
        self.error_code = error_code


class TxnOffsetCommitResponseTopic(Message):
    __slots__ = ("name", "partitions", "topic_id")
    FLEXIBLE = 3
    FIELDS = (
        Field("name", "string", (0, 5), default=""),
        Field("topic_id", "uuid", (6, ALWAYS), default=ZERO_UUID),
        Field("partitions", "struct", (0, ALWAYS), array=True, struct=TxnOffsetCommitResponsePartition),
    )

    def __init__(
        self,
        name: str = "",
        partitions: list[TxnOffsetCommitResponsePartition] | None = None,
        topic_id: uuid.UUID = ZERO_UUID,
    ) -> None:
        self.name = name
        self.partitions = [] if partitions is None else partitions
        self.topic_id = topic_id


class TxnOffsetCommitResponse(Response):
    __slots__ = ("throttle_time_ms", "topics")
    API_KEY = 28
    FLEXIBLE = 3
    FIELDS = (
        Field("throttle_time_ms", "int32", (0, ALWAYS), default=0),
        Field("topics", "struct", (0, ALWAYS), array=True, struct=TxnOffsetCommitResponseTopic),
    )

    def __init__(
        self,
        throttle_time_ms: int = 0,
        topics: list[TxnOffsetCommitResponseTopic] | None = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.topics = [] if topics is None else topics
