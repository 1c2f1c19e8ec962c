"""DescribeGroups (API key 15). Made by tools/generate_messages.py: change that."""

from __future__ import annotations

from headrace.wire.schema import ALWAYS, Field, Message, Request, Response


class DescribeGroupsRequest(Request["DescribeGroupsResponse"]):
    __slots__ = ("groups", "include_authorized_operations")
    API_KEY = 15
    VERSIONS = (0, 6)
    FLEXIBLE = 5
    FIELDS = (
        Field("groups", "string", (0, ALWAYS), array=True),
        Field("include_authorized_operations", "bool", (3, ALWAYS), default=False),
    )

    def __init__(
        self,
        groups: list[str] | None = None,
        include_authorized_operations: bool = False,
    ) -> None:
        self.groups = [] if groups is None else groups
        self.include_authorized_operations = include_authorized_operations

    @classmethod
    def reply_type(cls) -> type[DescribeGroupsResponse]:
        return DescribeGroupsResponse


class DescribedGroupMember(Message):
    __slots__ = (
        "client_host",
        "client_id",
        "group_instance_id",
        "member_assignment",
        "member_id",
        "member_metadata",
    )
    FLEXIBLE = 5
    FIELDS = (
        Field("member_id", "string", (0, ALWAYS), default=""),
        Field("group_instance_id", "string", (4, ALWAYS), nullable=(4, ALWAYS)),
        Field("client_id", "string", (0, ALWAYS), default=""),
        Field("client_host", "string", (0, ALWAYS), default=""),
        Field("member_metadata", "bytes", (0, ALWAYS), default=b""),
        Field("member_assignment", "bytes", (0, ALWAYS), default=b""),
    )

    def __init__(
        self,
        member_id: str = "",
        group_instance_id: str | None = None,
        client_id: str = "",
        client_host: str = "",
        member_metadata: bytes = b"",
        member_assignment: bytes = b"",
    ) -> None:
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.client_id = client_id
        self.client_host = client_host
        self.member_metadata = member_metadata
        self.member_assignment = member_assignment


class DescribedGroup(Message):
    __slots__ = (
        "authorized_operations",
        "error_code",
        "error_message",
        "group_id",
        "group_state",
        "members",
        "protocol_data",
        "protocol_type",
    )
    FLEXIBLE = 5
    FIELDS = (
        Field("error_code", "int16", (0, ALWAYS), default=0),
        Field("error_message", "string", (6, ALWAYS), nullable=(6, ALWAYS)),
        Field("group_id", "string", (0, ALWAYS), default=""),
        Field("group_state", "string", (0, ALWAYS), default=""),
        Field("protocol_type", "string", (0, ALWAYS), default=""),
        Field("protocol_data", "string", (0, ALWAYS), default=""),
        Field("members", "struct", (0, ALWAYS), array=True, struct=DescribedGroupMember),
        Field("authorized_operations", "int32", (3, ALWAYS), default=-2147483648),
    )

    def __init__(
        self,
        error_code: int = 0,
        error_message: str | None = None,
        group_id: str = "",
        group_state: str = "",
        protocol_type: str = "",
        protocol_data: str = "",
        members: list[DescribedGroupMember] | None = None,
        authorized_operations: int = -2147483648,
    ) -> None:
        self.error_code = error_code
        self.error_message = error_message
        self.group_id = group_id
        self.group_state = group_state
        self.protocol_type = protocol_type
        self.protocol_data = protocol_data
        self.members = [] if members is None else members
        self.authorized_operations = authorized_operations


class DescribeGroupsResponse(Response):
    __slots__ = ("groups", "throttle_time_ms")
    API_KEY = 15
    FLEXIBLE = 5
    FIELDS = (
        Field("throttle_time_ms", "int32", (1, ALWAYS), default=0),
        Field("groups", "struct", (0, ALWAYS), array=True, struct=DescribedGroup),
    )

    def __init__(
        self,
        throttle_time_ms: int = 0,
        groups: list[DescribedGroup] | None = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.groups = [] if groups is None else groups
