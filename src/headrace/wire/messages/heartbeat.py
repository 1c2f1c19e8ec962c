"""Heartbeat (API key 12). Made by tools/generate_messages.py: change that."""

from __future__ import annotations

from headrace.wire.schema import ALWAYS, Field, Request, Response


class HeartbeatRequest(Request["HeartbeatResponse"]):
    __slots__ = ("generation_id", "group_id", "group_instance_id", "member_id")
    API_KEY = 12
    VERSIONS = (0, 4)
    FLEXIBLE = 4
    FIELDS = (
        Field("group_id", "string", (0, ALWAYS), default=""),
        Field("generation_id", "int32", (0, ALWAYS), default=0),
        Field("member_id", "string", (0, ALWAYS), default=""),
        Field("group_instance_id", "string", (3, ALWAYS), nullable=(3, ALWAYS)),
    )

    def __init__(
        self,
        group_id: str = "",
        generation_id: int = 0,
        member_id: str = "",
        group_instance_id: str | None = None,
    ) -> None:
        self.group_id = group_id
        self.generation_id = generation_id
        self.member_id = member_id
        self.group_instance_id = group_instance_id

    @classmethod
    def reply_type(cls) -> type[HeartbeatResponse]:
        return HeartbeatResponse


class HeartbeatResponse(Response):
    __slots__ = ("error_code", "throttle_time_ms")
    API_KEY = 12
    FLEXIBLE = 4
    FIELDS = (
        Field("throttle_time_ms", "int32", (1, ALWAYS), default=0),
        Field("error_code", "int16", (0, ALWAYS), default=0),
    )

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
