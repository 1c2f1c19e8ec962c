"""ReadShareGroupState (API key 84). Made by tools/generate_messages.py: change that."""

from __future__ import annotations

import uuid

from headrace.wire.schema import ALWAYS, ZERO_UUID, Field, Message, Request, Response


class PartitionData(Message):
    __slots__ = ("leader_epoch", "partition")
    FLEXIBLE = 0
    FIELDS = (
        Field("partition", "int32", (0, ALWAYS), default=0),
        Field("leader_epoch", "int32", (0, ALWAYS), default=0),
    )

    def __init__(
        self,
        partition: int = 0,
        leader_epoch: int = 0,
    ) -> None:
        self.partition = partition
        self.leader_epoch = leader_epoch


class ReadStateData(Message):
    __slots__ = ("partitions", "topic_id")
    FLEXIBLE = 0
    FIELDS = (
        Field("topic_id", "uuid", (0, ALWAYS), default=ZERO_UUID),
        Field("partitions", "struct", (0, ALWAYS), array=True, struct=PartitionData),
    )

    def __init__(
        self,
        topic_id: uuid.UUID = ZERO_UUID,
        partitions: list[PartitionData] | None = None,
    ) -> None:
        self.topic_id = topic_id
        self.partitions = [] if partitions is None else partitions


class ReadShareGroupStateRequest(Request["ReadShareGroupStateResponse"]):
    __slots__ = ("group_id", "topics")
    API_KEY = 84
    VERSIONS = (0, 0)
    FLEXIBLE = 0
    FIELDS = (
        Field("group_id", "string", (0, ALWAYS), default=""),
        Field("topics", "struct", (0, ALWAYS), array=True, struct=ReadStateData),
    )

    def __init__(
        self,
        group_id: str = "",
        topics: list[ReadStateData] | None = None,
    ) -> None:
        self.group_id = group_id
        self.topics = [] if topics is None else topics

    @classmethod
    def reply_type(cls) -> type[ReadShareGroupStateResponse]:
        return ReadShareGroupStateResponse


class StateBatch(Message):
    __slots__ = ("delivery_count", "delivery_state", "first_offset", "last_offset")
    FLEXIBLE = 0
    FIELDS = (
        Field("first_offset", "int64", (0, ALWAYS), default=0),
        Field("last_offset", "int64", (0, ALWAYS), default=0),
        Field("delivery_state", "int8", (0, ALWAYS), default=0),
        Field("delivery_count", "int16", (0, ALWAYS), default=0),
    )

    def __init__(
        self,
        first_offset: int = 0,
        last_offset: int = 0,
        delivery_state: int = 0,
        delivery_count: int = 0,
    ) -> None:
        self.first_offset = first_offset
        self.last_offset = last_offset
        self.delivery_state = delivery_state
        self.delivery_count = delivery_count


class PartitionResult(Message):
    __slots__ = ("error_code", "error_message", "partition", "start_offset", "state_batches", "state_epoch")
    FLEXIBLE = 0
    FIELDS = (
        Field("partition", "int32", (0, ALWAYS), default=0),
        Field("error_code", "int16", (0, ALWAYS), default=0),
        Field("error_message", "string", (0, ALWAYS), nullable=(0, ALWAYS)),
        Field("state_epoch", "int32", (0, ALWAYS), default=0),
        Field("start_offset", "int64", (0, ALWAYS), default=0),
        Field("state_batches", "struct", (0, ALWAYS), array=True, struct=StateBatch),
    )

    def __init__(
        self,
        partition: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        state_epoch: int = 0,
        start_offset: int = 0,
        state_batches: list[StateBatch] | None = None,
    ) -> None:
        self.partition = partition
        self.error_code = error_code
        self.error_message = error_message
        self.state_epoch = state_epoch
        self.start_offset = start_offset
        self.state_batches = [] if state_batches is None else state_batches


class ReadStateResult(Message):
    __slots__ = ("partitions", "topic_id")
    FLEXIBLE = 0
    FIELDS = (
        Field("topic_id", "uuid", (0, ALWAYS), default=ZERO_UUID),
        Field("partitions", "struct", (0, ALWAYS), array=True, struct=PartitionResult),
    )

    def __init__(
        self,
        topic_id: uuid.UUID = ZERO_UUID,
        partitions: list[PartitionResult] | None = None,
    ) -> None:
        self.topic_id = topic_id
        self.partitions = [] if partitions is None else partitions


class ReadShareGroupStateResponse(Response):
    __slots__ = ("results",)
    API_KEY = 84
    FLEXIBLE = 0
    FIELDS = (Field("results", "struct", (0, ALWAYS), array=True, struct=ReadStateResult),)

    def __init__(
        self,
        results: list[ReadStateResult] | None = None,
    ) -> None:
        self.results = [] if results is None else results
