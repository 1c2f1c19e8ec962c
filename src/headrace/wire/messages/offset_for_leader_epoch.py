"""OffsetForLeaderEpoch (API key 23). Made by tools/generate_messages.py: change that."""

from __future__ import annotations

from headrace.wire.schema import ALWAYS, Field, Message, Request, Response


class OffsetForLeaderPartition(Message):
    __slots__ = ("current_leader_epoch", "leader_epoch", "partition")
    FLEXIBLE = 4
    FIELDS = (
        Field("partition", "int32", (2, ALWAYS), default=0),
        Field("current_leader_epoch", "int32", (2, ALWAYS), default=-1),
        Field("leader_epoch", "int32", (2, ALWAYS), default=0),
    )

    def __init__(
        self,
        partition: int = 0,
        current_leader_epoch: int = -1,
        leader_epoch: int = 0,
    ) -> None:
        self.partition = partition
        self.current_leader_epoch = current_leader_epoch
        self.leader_epoch = leader_epoch


class OffsetForLeaderTopic(Message):
    __slots__ = ("partitions", "topic")
    FLEXIBLE = 4
    FIELDS = (
        Field("topic", "string", (2, ALWAYS), default=""),
        Field("partitions", "struct", (2, ALWAYS), array=True, struct=OffsetForLeaderPartition),
    )

    def __init__(
        self,
        topic: str = "",
        partitions: list[OffsetForLeaderPartition] | None = None,
    ) -> None:
        self.topic = topic
        self.partitions = [] if partitions is None else partitions


class OffsetForLeaderEpochRequest(Request["OffsetForLeaderEpochResponse"]):
    __slots__ = ("replica_id", "topics")
    API_KEY = 23
    VERSIONS = (2, 4)
    FLEXIBLE = 4
    FIELDS = (
        Field("replica_id", "int32", (3, ALWAYS), default=-2),
        Field("topics", "struct", (2, ALWAYS), array=True, struct=OffsetForLeaderTopic),
    )

    def __init__(
        self,
        replica_id: int = -2,
        topics: list[OffsetForLeaderTopic] | None = None,
    ) -> None:
        self.replica_id = replica_id
        self.topics = [] if topics is None else topics

    @classmethod
    def reply_type(cls) -> type[OffsetForLeaderEpochResponse]:
        return OffsetForLeaderEpochResponse


class EpochEndOffset(Message):
    __slots__ = ("end_offset", "error_code", "leader_epoch", "partition")
    FLEXIBLE = 4
    FIELDS = (
        Field("error_code", "int16", (2, ALWAYS), default=0),
        Field("partition", "int32", (2, ALWAYS), default=0),
        Field("leader_epoch", "int32", (2, ALWAYS), default=-1),
        Field("end_offset", "int64", (2, ALWAYS), default=-1),
    )

    def __init__(
        self,
        error_code: int = 0,
        partition: int = 0,
        leader_epoch: int = -1,
        end_offset: int = -1,
    ) -> None:
        self.error_code = error_code
        self.partition = partition
        self.leader_epoch = leader_epoch
        self.end_offset = end_offset


class OffsetForLeaderTopicResult(Message):
    __slots__ = ("partitions", "topic")
    FLEXIBLE = 4
    FIELDS = (
        Field("topic", "string", (2, ALWAYS), default=""),
        Field("partitions", "struct", (2, ALWAYS), array=True, struct=EpochEndOffset),
    )

    def __init__(
        self,
        topic: str = "",
        partitions: list[EpochEndOffset] | None = None,
    ) -> None:
        self.topic = topic
        self.partitions = [] if partitions is None else partitions


class OffsetForLeaderEpochResponse(Response):
    __slots__ = ("throttle_time_ms", "topics")
    API_KEY = 23
    FLEXIBLE = 4
    FIELDS = (
        Field("throttle_time_ms", "int32", (2, ALWAYS), default=0),
        Field("topics", "struct", (2, ALWAYS), array=True, struct=OffsetForLeaderTopicResult),
    )

    def __init__(
        self,
        throttle_time_ms: int = 0,
        topics: list[OffsetForLeaderTopicResult] | None = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.topics = [] if topics is None else topics
