"""ShareGroupDescribe (API key 77). Made by tools/generate_messages.py: change that."""

from __future__ import annotations

import uuid

from headrace.wire.schema import ALWAYS, ZERO_UUID, Field, Message, Request, Response


class ShareGroupDescribeRequest(Request["ShareGroupDescribeResponse"]):
    __slots__ = ("group_ids", "include_authorized_operations")
    API_KEY = 77
    VERSIONS = (1, 1)
    FLEXIBLE = 1
    FIELDS = (
        Field("group_ids", "string", (1, ALWAYS), array=True),
        Field("include_authorized_operations", "bool", (1, ALWAYS), default=False),
    )

    def __init__(
        self,
        group_ids: list[str] | None = None,
        include_authorized_operations: bool = False,
    ) -> None:
        self.group_ids = [] if group_ids is None else group_ids
        self.include_authorized_operations = include_authorized_operations

    @classmethod
    def reply_type(cls) -> type[ShareGroupDescribeResponse]:
        return ShareGroupDescribeResponse


class TopicPartitions(Message):
    __slots__ = ("partitions", "topic_id", "topic_name")
    FLEXIBLE = 1
    FIELDS = (
        Field("topic_id", "uuid", (1, ALWAYS), default=ZERO_UUID),
        Field("topic_name", "string", (1, ALWAYS), default=""),
        Field("partitions", "int32", (1, ALWAYS), array=True),
    )

    def __init__(
        self,
        topic_id: uuid.UUID = ZERO_UUID,
        topic_name: str = "",
        partitions: list[int] | None = None,
    ) -> None:
        self.topic_id = topic_id
        self.topic_name = topic_name
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


class Member(Message):
    __slots__ = (
        "assignment",
        "client_host",
        "client_id",
        "member_epoch",
        "member_id",
        "rack_id",
        "subscribed_topic_names",
    )
    FLEXIBLE = 1
    FIELDS = (
        Field("member_id", "string", (1, ALWAYS), default=""),
        Field("rack_id", "string", (1, ALWAYS), nullable=(1, ALWAYS)),
        Field("member_epoch", "int32", (1, ALWAYS), default=0),
        Field("client_id", "string", (1, ALWAYS), default=""),
        Field("client_host", "string", (1, ALWAYS), default=""),
        Field("subscribed_topic_names", "string", (1, ALWAYS), array=True),
        Field("assignment", "struct", (1, ALWAYS), struct=Assignment),
    )

    def __init__(
        self,
        member_id: str = "",
        rack_id: str | None = None,
        member_epoch: int = 0,
        client_id: str = "",
        client_host: str = "",
        subscribed_topic_names: list[str] | None = None,
        assignment: Assignment | None = None,
    ) -> None:
        self.member_id = member_id
        self.rack_id = rack_id
        self.member_epoch = member_epoch
        self.client_id = client_id
        self.client_host = client_host
        self.subscribed_topic_names = [] if subscribed_topic_names is None else subscribed_topic_names
        self.assignment = Assignment() if assignment is None else assignment


class DescribedGroup(Message):
    __slots__ = (
        "assignment_epoch",
        "assignor_name",
        "authorized_operations",
        "error_code",
        "error_message",
        "group_epoch",
        "group_id",
        "group_state",
        "members",
    )
    FLEXIBLE = 1
    FIELDS = (
        Field("error_code", "int16", (1, ALWAYS), default=0),
        Field("error_message", "string", (1, ALWAYS), nullable=(1, ALWAYS)),
        Field("group_id", "string", (1, ALWAYS), default=""),
        Field("group_state", "string", (1, ALWAYS), default=""),
        Field("group_epoch", "int32", (1, ALWAYS), default=0),
        Field("assignment_epoch", "int32", (1, ALWAYS), default=0),
        Field("assignor_name", "string", (1, ALWAYS), default=""),
        Field("members", "struct", (1, ALWAYS), array=True, struct=Member),
        Field("authorized_operations", "int32", (1, ALWAYS), default=-2147483648),
    )

    def __init__(
        self,
        error_code: int = 0,
        error_message: str | None = None,
        group_id: str = "",
        group_state: str = "",
        group_epoch: int = 0,
        assignment_epoch: int = 0,
        assignor_name: str = "",
        members: list[Member] | None = None,
        authorized_operations: int = -2147483648,
    ) -> None:
        self.error_code = error_code
        self.error_message = error_message
        self.group_id = group_id
        self.group_state = group_state
        self.group_epoch = group_epoch
        self.assignment_epoch = assignment_epoch
        self.assignor_name = assignor_name
        self.members = [] if members is None else members
        self.authorized_operations = authorized_operations


class ShareGroupDescribeResponse(Response):
    __slots__ = ("groups", "throttle_time_ms")
    API_KEY = 77
    FLEXIBLE = 1
    FIELDS = (
        Field("throttle_time_ms", "int32", (1, ALWAYS), default=0),
        Field("groups", "struct", (1, ALWAYS), array=True, struct=DescribedGroup),
    )

    def __init__(
        self,
        throttle_time_ms: int = 0,
        groups: list[DescribedGroup] | None = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.groups = [] if groups is None else groups
