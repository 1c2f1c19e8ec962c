"""InitializeShareGroupState (API key 83). Made by tools/generate_messages.py: change that."""

from __future__ import annotations

import uuid

from headrace.wire.schema import ALWAYS, ZERO_UUID, Field, Message, Request, Response


class PartitionData(Message):
    __slots__ = ("partition", "start_offset", "state_epoch")
    FLEXIBLE = 0
    FIELDS = (
        Field("partition", "int32", (0, ALWAYS), default=0),
        Field("state_epoch", "int32", (0, ALWAYS), default=0),
        Field("start_offset", "int64", (0, ALWAYS), default=0),
    )

    def __init__(
        self,
        partition: int = 0,
        state_epoch: int = 0,
        start_offset: int = 0,
    ) -> None:
        self.partition = partition
        self.state_epoch = state_epoch
        self.start_offset = start_offset


class InitializeStateData(Message):
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


class InitializeShareGroupStateRequest(Request["InitializeShareGroupStateResponse"]):
    __slots__ = ("group_id", "topics")
    API_KEY = 83
    VERSIONS = (0, 0)
    FLEXIBLE = 0
    FIELDS = (
        Field("group_id", "string", (0, ALWAYS), default=""),
        Field("topics", "struct", (0, ALWAYS), array=True, struct=InitializeStateData),
    )

    def __init__(
        self,
        group_id: str = "",
        topics: list[InitializeStateData] | None = None,
    ) -> None:
        self.group_id = group_id
        self.topics = [] if topics is None else topics

    @classmethod
    def reply_type(cls) -> type[InitializeShareGroupStateResponse]:
        return InitializeShareGroupStateResponse


class PartitionResult(Message):
    __slots__ = ("error_code", "error_message", "partition")
    FLEXIBLE = 0
    FIELDS = (
        Field("partition", "int32", (0, ALWAYS), default=0),
        Field("error_code", "int16", (0, ALWAYS), default=0),
        Field("error_message", "string", (0, ALWAYS), nullable=(0, ALWAYS)),
    )

    def __init__(
        self,
        partition: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
    ) -> None:
        self.partition = partition
        self.error_code = error_code
        self.error_message = error_message


class InitializeStateResult(Message):
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


class InitializeShareGroupStateResponse(Response):
    __slots__ = ("results",)
    API_KEY = 83
    FLEXIBLE = 0
    FIELDS = (Field("results", "struct", (0, ALWAYS), array=True, struct=InitializeStateResult),)

    def __init__(
        self,
        results: list[InitializeStateResult] | None = None,
    ) -> None:
        self.results = [] if results is None else results
