"""ListGroups (API key 16). Made by tools/generate_messages.py: change that."""

from __future__ import annotations

from headrace.wire.schema import ALWAYS, Field, Message, Request, Response


class ListGroupsRequest(Request["ListGroupsResponse"]):
    __slots__ = ("states_filter", "types_filter")
    API_KEY = 16
    VERSIONS = (0, 5)
    FLEXIBLE = 3
    FIELDS = (
        Field("states_filter", "string", (4, ALWAYS), array=True),
        Field("types_filter", "string", (5, ALWAYS), array=True),
    )

    def __init__(
        self,
        states_filter: list[str] | None = None,
        types_filter: list[str] | None = None,
    ) -> None:
        self.states_filter = [] if states_filter is None else states_filter
        self.types_filter = [] if types_filter is None else types_filter

    @classmethod
    def reply_type(cls) -> type[ListGroupsResponse]:
        return ListGroupsResponse


class ListedGroup(Message):
    __slots__ = ("group_id", "group_state", "group_type", "protocol_type")
    FLEXIBLE = 3
    FIELDS = (
        Field("group_id", "string", (0, ALWAYS), default=""),
        Field("protocol_type", "string", (0, ALWAYS), default=""),
        Field("group_state", "string", (4, ALWAYS), default=""),
        Field("group_type", "string", (5, ALWAYS), default=""),
    )

    def __init__(
        self,
        group_id: str = "",
        protocol_type: str = "",
        group_state: str = "",
        group_type: str = "",
    ) -> None:
        self.group_id = group_id
        self.protocol_type = protocol_type
        self.group_state = group_state
        self.group_type = group_type


class ListGroupsResponse(Response):
    __slots__ = ("error_code", "groups", "throttle_time_ms")
    API_KEY = 16
    FLEXIBLE = 3
    FIELDS = (
        Field("throttle_time_ms", "int32", (1, ALWAYS), default=0),
        Field("error_code", "int16", (0, ALWAYS), default=0),
        Field("groups", "struct", (0, ALWAYS), array=True, struct=ListedGroup),
    )

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        groups: list[ListedGroup] | None = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.groups = [] if groups is None else groups
