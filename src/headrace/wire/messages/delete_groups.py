"""DeleteGroups (API key 42). Made by tools/generate_messages.py: change that."""

from __future__ import annotations

from headrace.wire.schema import ALWAYS, Field, Message, Request, Response


class DeleteGroupsRequest(Request["DeleteGroupsResponse"]):
    __slots__ = ("groups_names",)
    API_KEY = 42
    VERSIONS = (0, 3)
    FLEXIBLE = 2
    FIELDS = (Field("groups_names", "string", (0, ALWAYS), array=True),)

    def __init__(
        self,
        groups_names: list[str] | None = None,
    ) -> None:
        self.groups_names = [] if groups_names is None else groups_names

    @classmethod
    def reply_type(cls) -> type[DeleteGroupsResponse]:
        return DeleteGroupsResponse


class DeletableGroupResult(Message):
    __slots__ = ("error_code", "error_message", "group_id")
    FLEXIBLE = 2
    FIELDS = (
        Field("group_id", "string", (0, ALWAYS), default=""),
        Field("error_code", "int16", (0, ALWAYS), default=0),
        Field("error_message", "string", (3, ALWAYS), nullable=(3, ALWAYS)),
    )

    def __init__(
        self,
        group_id: str = "",
        error_code: int = 0,
        error_message: str | None = None,
    ) -> None:
        self.group_id = group_id
        self.error_code = error_code
        self.error_message = error_message


class DeleteGroupsResponse(Response):
    __slots__ = ("results", "throttle_time_ms")
    API_KEY = 42
    FLEXIBLE = 2
    FIELDS = (
        Field("throttle_time_ms", "int32", (0, ALWAYS), default=0),
        Field("results", "struct", (0, ALWAYS), array=True, struct=DeletableGroupResult),
    )

    def __init__(
        self,
        throttle_time_ms: int = 0,
        results: list[DeletableGroupResult] | None = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.results = [] if results is None else results
