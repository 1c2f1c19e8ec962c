"""ShareGroupHeartbeat (API key 76). Made by tools/generate_messages.py: change that."""

from __future__ import annotations

import uuid

from headrace.wire.schema import ALWAYS, ZERO_UUID, Field, Message, Request, Response


class ShareGroupHeartbeatRequest(Request["ShareGroupHeartbeatResponse"]):
    __slots__ = ("group_id", "member_epoch", "member_id", "rack_id", "subscribed_topic_names")
    API_KEY = 76
    VERSIONS = (1, 1)
    FLEXIBLE = 1
    FIELDS = (
        Field("group_id", "string", (1, ALWAYS), default=""),
        Field("member_id", "string", (1, ALWAYS), default=""),
        Field("member_epoch", "int32", (1, ALWAYS), default=0),
        Field("rack_id", "string", (1, ALWAYS), nullable=(1, ALWAYS)),
        Field("subscribed_topic_names", "string", (1, ALWAYS), array=True, nullable=(1, ALWAYS)),
    )

    def __init__(
        self,
        group_id: str = "",
        member_id: str = "",
        member_epoch: int = 0,
        rack_id: str | None = None,
        subscribed_topic_names: list[str] | None = None,
    ) -> None:
        self.group_id = group_id
        self.member_id = member_id
        self.member_epoch = member_epoch
        self.rack_id = rack_id
        self.subscribed_topic_names = subscribed_topic_names

    @classmethod
    def reply_type(cls) -> type[ShareGroupHeartbeatResponse]:
        return ShareGroupHeartbeatResponse


class TopicPartitions(Message):
    __slots__ = ("partitions", "topic_id")
    FLEXIBLE = 1
    FIELDS = (
        Field("topic_id", "uuid", (1, ALWAYS), default=ZERO_UUID),
        Field("partitions", "int32", (1, ALWAYS), array=True),
    )

    def __init__(
        self,
        topic_id: uuid.UUID = ZERO_UUID,
        partitions: list[int] | None = None,
    ) -> None:
        self.topic_id = topic_id
        self.partitions = [] if partitions is None else partitions


class Assignment(Message):
    __slots__ = ("topic_partitions",)
    FLEXIBLE = 1
    FIELDS = (Field("topic_partitions", "struct", (1, ALWAYS), array=True, struct=TopicPartitions),)

    def __init__(
        self,
        topic_partitions: list[TopicPartitions] | None = None,
    ) -> None:
        self.topic_partitions = [] if topic_partitions is None else topic_partitions


class ShareGroupHeartbeatResponse(Response):
    __slots__ = (
        "assignment",
        "error_code",
        "error_message",
        "heartbeat_interval_ms",
        "member_epoch",
        "member_id",
        "throttle_time_ms",
    )
    API_KEY = 76
    FLEXIBLE = 1
    FIELDS = (
        Field("throttle_time_ms", "int32", (1, ALWAYS), default=0),
        Field("error_code", "int16", (1, ALWAYS), default=0),
        Field("error_message", "string", (1, ALWAYS), nullable=(1, ALWAYS)),
        Field("member_id", "string", (1, ALWAYS), nullable=(1, ALWAYS)),
        Field("member_epoch", "int32", (1, ALWAYS), default=0),
        Field("heartbeat_interval_ms", "int32", (1, ALWAYS), default=0),
        Field("assignment", "struct", (1, ALWAYS), nullable=(1, ALWAYS), struct=Assignment),
    )

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        member_id: str | None = None,
        member_epoch: int = 0,
        heartbeat_interval_ms: int = 0,
        assignment: Assignment | None = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.member_id = member_id
        self.member_epoch = member_epoch
        self.heartbeat_interval_ms = heartbeat_interval_ms
        self.assignment = assignment
