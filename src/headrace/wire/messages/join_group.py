"""JoinGroup (API key 11). Made by tools/generate_messages.py: change that."""

from __future__ import annotations

from headrace.wire.schema import ALWAYS, Field, Message, Request, Response


class JoinGroupRequestProtocol(Message):
    __slots__ = ("metadata", "name")
    FLEXIBLE = 6
    FIELDS = (
        Field("name", "string", (0, ALWAYS), default=""),
        Field("metadata", "bytes", (0, ALWAYS), default=b""),
    )

    def __init__(
        self,
        name: str = "",
        metadata: bytes = b"",
    ) -> None:
        self.name = name
        self.metadata = metadata


class JoinGroupRequest(Request["JoinGroupResponse"]):
    __slots__ = (
        "group_id",
        "group_instance_id",
        "member_id",
        "protocol_type",
        "protocols",
        "reason",
        "rebalance_timeout_ms",
        "session_timeout_ms",
    )
    API_KEY = 11
    VERSIONS = (0, 9)
    FLEXIBLE = 6
    FIELDS = (
        Field("group_id", "string", (0, ALWAYS), default=""),
        Field("session_timeout_ms", "int32", (0, ALWAYS), default=0),
        Field("rebalance_timeout_ms", "int32", (1, ALWAYS), default=-1),
        Field("member_id", "string", (0, ALWAYS), default=""),
        Field("group_instance_id", "string", (5, ALWAYS), nullable=(5, ALWAYS)),
        Field("protocol_type", "string", (0, ALWAYS), default=""),
        Field("protocols", "struct", (0, ALWAYS), array=True, struct=JoinGroupRequestProtocol),
        Field("reason", "string", (8, ALWAYS), nullable=(8, ALWAYS)),
    )

    def __init__(
        self,
        group_id: str = "",
        session_timeout_ms: int = 0,
        rebalance_timeout_ms: int = -1,
        member_id: str = "",
        group_instance_id: str | None = None,
        protocol_type: str = "",
        protocols: list[JoinGroupRequestProtocol] | None = None,
        reason: str | None = None,
    ) -> None:
        self.group_id = group_id
        self.session_timeout_ms = session_timeout_ms
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.protocol_type = protocol_type
        self.protocols = [] if protocols is None else protocols
        self.reason = reason

    @classmethod
    def reply_type(cls) -> type[JoinGroupResponse]:
        return JoinGroupResponse


class JoinGroupResponseMember(Message):
    __slots__ = ("group_instance_id", "member_id", "metadata")
    FLEXIBLE = 6
    FIELDS = (
        Field("member_id", "string", (0, ALWAYS), default=""),
        Field("group_instance_id", "string", (5, ALWAYS), nullable=(5, ALWAYS)),
        Field("metadata", "bytes", (0, ALWAYS), default=b""),
    )

    def __init__(
        self,
        member_id: str = "",
        group_instance_id: str | None = None,
        metadata: bytes = b"",
    ) -> None:
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.metadata = metadata


class JoinGroupResponse(Response):
    __slots__ = (
        "error_code",
        "generation_id",
        "leader",
        "member_id",
        "members",
        "protocol_name",
        "protocol_type",
        "skip_assignment",
        "throttle_time_ms",
    )
    API_KEY = 11
    FLEXIBLE = 6
    FIELDS = (
        Field("throttle_time_ms", "int32", (2, ALWAYS), default=0),
        Field("error_code", "int16", (0, ALWAYS), default=0),
        Field("generation_id", "int32", (0, ALWAYS), default=-1),
        Field("protocol_type", "string", (7, ALWAYS), nullable=(7, ALWAYS)),
        Field("protocol_name", "string", (0, ALWAYS), nullable=(7, ALWAYS), default=""),
        Field("leader", "string", (0, ALWAYS), default=""),
        Field("skip_assignment", "bool", (9, ALWAYS), default=False),
        Field("member_id", "string", (0, ALWAYS), default=""),
        Field("members", "struct", (0, ALWAYS), array=True, struct=JoinGroupResponseMember),
    )

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        generation_id: int = -1,
        protocol_type: str | None = None,
        protocol_name: str | None = "",
        leader: str = "",
        skip_assignment: bool = False,
        member_id: str = "",
        members: list[JoinGroupResponseMember] | None = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.generation_id = generation_id
        self.protocol_type = protocol_type
        self.protocol_name = protocol_name
        self.leader = leader
        self.skip_assignment = skip_assignment
        self.member_id = member_id
        self.members = [] if members is None else members
