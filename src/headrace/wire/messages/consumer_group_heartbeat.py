"""ConsumerGroupHeartbeat (API key 68). Made by tools/generate_messages.py: change that."""

from __future__ import annotations

import uuid

from headrace.wire.schema import ALWAYS, ZERO_UUID, Field, Message, Request, Response


class TopicPartitions(Message):
    __slots__ = ("partitions", "topic_id")
    FLEXIBLE = 0
    FIELDS = (
        Field("topic_id", "uuid", (0, ALWAYS), default=ZERO_UUID),
        Field("partitions", "int32", (0, ALWAYS), array=True),
    )

    def __init__(
        self,
        topic_id: uuid.UUID = ZERO_UUID,
        partitions: list[int] | None = None,
    ) -> None:
        self.topic_id = topic_id
        self.partitions = [] if partitions is None else partitions


class ConsumerGroupHeartbeatRequest(Request["ConsumerGroupHeartbeatResponse"]):
    __slots__ = (
        "group_id",
        "instance_id",
        "member_epoch",
        "member_id",
        "rack_id",
        "rebalance_timeout_ms",
        "server_assignor",
        "subscribed_topic_names",
        "subscribed_topic_regex",
        "topic_partitions",
    )
    API_KEY = 68
    VERSIONS = (0, 1)
    FLEXIBLE = 0
    FIELDS = (
        Field("group_id", "string", (0, ALWAYS), default=""),
        Field("member_id", "string", (0, ALWAYS), default=""),
        Field("member_epoch", "int32", (0, ALWAYS), default=0),
        Field("instance_id", "string", (0, ALWAYS), nullable=(0, ALWAYS)),
        Field("rack_id", "string", (0, ALWAYS), nullable=(0, ALWAYS)),
        Field("rebalance_timeout_ms", "int32", (0, ALWAYS), default=-1),
        Field("subscribed_topic_names", "string", (0, ALWAYS), array=True, nullable=(0, ALWAYS)),
        Field("subscribed_topic_regex", "string", (1, ALWAYS), nullable=(1, ALWAYS)),
        Field("server_assignor", "string", (0, ALWAYS), nullable=(0, ALWAYS)),
        Field(
            "topic_partitions",
            "struct",
            (0, ALWAYS),
            array=True,
            nullable=(0, ALWAYS),
            struct=TopicPartitions,
        ),
    )

    def __init__(
        self,
        group_id: str = "",
        member_id: str = "",
        member_epoch: int = 0,
        instance_id: str | None = None,
        rack_id: str | None = None,
        rebalance_timeout_ms: int = -1,
        subscribed_topic_names: list[str] | None = None,
        subscribed_topic_regex: str | None = None,
        server_assignor: str | None = None,
        topic_partitions: list[TopicPartitions] | None = None,
    ) -> None:
        self.group_id = group_id
        self.member_id = member_id
        self.member_epoch = member_epoch
        self.instance_id = instance_id
        self.rack_id = rack_id
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.subscribed_topic_names = subscribed_topic_names
        self.subscribed_topic_regex = subscribed_topic_regex
        self.server_assignor = server_assignor
        self.topic_partitions = topic_partitions

    @classmethod
    def reply_type(cls) -> type[ConsumerGroupHeartbeatResponse]:
        return ConsumerGroupHeartbeatResponse


class ResponseTopicPartitions(Message):
    __slots__ = ("partitions", "topic_id")
    FLEXIBLE = 0
    FIELDS = (
        Field("topic_id", "uuid", (0, ALWAYS), default=ZERO_UUID),
        Field("partitions", "int32", (0, ALWAYS), array=True),
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
    FLEXIBLE = 0
    FIELDS = (Field("topic_partitions", "struct", (0, ALWAYS), array=True, struct=ResponseTopicPartitions),)

    def __init__(
        self,
        topic_partitions: list[ResponseTopicPartitions] | None = None,
    ) -> None:
        self.topic_partitions = [] if topic_partitions is None else topic_partitions


class ConsumerGroupHeartbeatResponse(Response):
    __slots__ = (
        "assignment",
        "error_code",
        "error_message",
        "heartbeat_interval_ms",
        "member_epoch",
        "member_id",
        "throttle_time_ms",
    )
    API_KEY = 68
    FLEXIBLE = 0
    FIELDS = (
        Field("throttle_time_ms", "int32", (0, ALWAYS), default=0),
        Field("error_code", "int16", (0, ALWAYS), default=0),
        Field("error_message", "string", (0, ALWAYS), nullable=(0, ALWAYS)),
        Field("member_id", "string", (0, ALWAYS), nullable=(0, ALWAYS)),
        Field("member_epoch", "int32", (0, ALWAYS), default=0),
        Field("heartbeat_interval_ms", "int32", (0, ALWAYS), default=0),
        Field("assignment", "struct", (0, ALWAYS), nullable=(0, ALWAYS), struct=Assignment),
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
