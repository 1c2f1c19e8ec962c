"""LeaveGroup (API key 13). Made by tools/generate_messages.py: change that."""

from __future__ import annotations

from headrace.wire.schema import ALWAYS, Field, Message, Request, Response


class MemberIdentity(Message):
    __slots__ = ("group_instance_id", "member_id", "reason")
    FLEXIBLE = 4
    FIELDS = (
        Field("member_id", "string", (3, ALWAYS), default=""),
        Field("group_instance_id", "string", (3, ALWAYS), nullable=(3, ALWAYS)),
        Field("reason", "string", (5, ALWAYS), nullable=(5, ALWAYS)),
    )

    def __init__(
        self,
        member_id: str = "",
        group_instance_id: str | None = None,
        reason: str | None = None,
    ) -> None:
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.reason = reason


class LeaveGroupRequest(Request["LeaveGroupResponse"]):
    __slots__ = ("group_id", "member_id", "members")
    API_KEY = 13
    VERSIONS = (0, 5)
    FLEXIBLE = 4
    FIELDS = (
        Field("group_id", "string", (0, ALWAYS), default=""),
        Field("member_id", "string", (0, 2), default=""),
        Field("members", "struct", (3, ALWAYS), array=True, struct=MemberIdentity),
    )

    def __init__(
        self,
        group_id: str = "",
        member_id: str = "",
        members: list[MemberIdentity] | None = None,
    ) -> None:
        self.group_id = group_id
        self.member_id = member_id
        self.members = [] if members is None else members

    @classmethod
    def reply_type(cls) -> type[LeaveGroupResponse]:
        return LeaveGroupResponse


class MemberResponse(Message):
    __slots__ = ("error_code", "group_instance_id", "member_id")
    FLEXIBLE = 4
    FIELDS = (
        Field("member_id", "string", (3, ALWAYS), default=""),
        Field("group_instance_id", "string", (3, ALWAYS), nullable=(3, ALWAYS), default=""),
        Field("error_code", "int16", (3, ALWAYS), default=0),
    )

    def __init__(
        self,
        member_id: str = "",
        group_instance_id: str | None = "",
        error_code: int = 0,
    ) -> None:
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.error_code = error_code


class LeaveGroupResponse(Response):
    __slots__ = ("error_code", "members", "throttle_time_ms")
    API_KEY = 13
    FLEXIBLE = 4
    FIELDS = (
        Field("throttle_time_ms", "int32", (1, ALWAYS), default=0),
        Field("error_code", "int16", (0, ALWAYS), default=0),
        Field("members", "struct", (3, ALWAYS), array=True, struct=MemberResponse),
    )

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        members: list[MemberResponse] | None = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.members = [] if members is None else members
