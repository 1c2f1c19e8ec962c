"""SyncGroup (API key 14). Made by tools/generate_messages.py: change that."""

from __future__ import annotations

from headrace.wire.schema import ALWAYS, Field, Message, Request, Response


class SyncGroupRequestAssignment(Message):
    __slots__ = ("assignment", "member_id")
    FLEXIBLE = 4
    FIELDS = (
        Field("member_id", "string", (0, ALWAYS), default=""),
        Field("assignment", "bytes", (0, ALWAYS), default=b""),
    )

    def __init__(
        self,
        member_id: str = "",
        assignment: bytes = b"",
    ) -> None:
        self.member_id = member_id
        self.assignment = assignment


class SyncGroupRequest(Request["SyncGroupResponse"]):
    __slots__ = (
        "assignments",
        "generation_id",
        "group_id",
        "group_instance_id",
        "member_id",
        "protocol_name",
        "protocol_type",
    )
    API_KEY = 14
    VERSIONS = (0, 5)
    FLEXIBLE = 4
    FIELDS = (
        Field("group_id", "string", (0, ALWAYS), default=""),
        Field("generation_id", "int32", (0, ALWAYS), default=0),
        Field("member_id", "string", (0, ALWAYS), default=""),
        Field("group_instance_id", "string", (3, ALWAYS), nullable=(3, ALWAYS)),
        Field("protocol_type", "string", (5, ALWAYS), nullable=(5, ALWAYS)),
        Field("protocol_name", "string", (5, ALWAYS), nullable=(5, ALWAYS)),
        Field("assignments", "struct", (0, ALWAYS), array=True, struct=SyncGroupRequestAssignment),
    )

    def __init__(
        self,
        group_id: str = "",
        generation_id: int = 0,
        member_id: str = "",
        group_instance_id: str | None = None,
        protocol_type: str | None = None,
        protocol_name: str | None = None,
        assignments: list[SyncGroupRequestAssignment] | None = None,
    ) -> None:
        self.group_id = group_id
        self.generation_id = generation_id
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.protocol_type = protocol_type
        self.protocol_name = protocol_name
        self.assignments = [] if assignments is None else assignments

    @classmethod
    def reply_type(cls) -> type[SyncGroupResponse]:
        return SyncGroupResponse


class SyncGroupResponse(Response):
    __slots__ = ("assignment", "error_code", "protocol_name", "protocol_type", "throttle_time_ms")
    API_KEY = 14
    FLEXIBLE = 4
    FIELDS = (
        Field("throttle_time_ms", "int32", (1, ALWAYS), default=0),
        Field("error_code", "int16", (0, ALWAYS), default=0),
        Field("protocol_type", "string", (5, ALWAYS), nullable=(5, ALWAYS)),
        Field("protocol_name", "string", (5, ALWAYS), nullable=(5, ALWAYS)),
        Field("assignment", "bytes", (0, ALWAYS), default=b""),
    )

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        protocol_type: str | None = None,
        protocol_name: str | None = None,
        assignment: bytes = b"",
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.protocol_type = protocol_type
        self.protocol_name = protocol_name
        self.assignment = assignment
