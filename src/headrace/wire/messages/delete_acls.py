"""DeleteAcls (API key 31). Made by tools/generate_messages.py: change that."""

from __future__ import annotations

from headrace.wire.schema import ALWAYS, Field, Message, Request, Response


class DeleteAclsFilter(Message):
    __slots__ = (
        "host_filter",
        "operation",
        "pattern_type_filter",
        "permission_type",
        "principal_filter",
        "resource_name_filter",
        "resource_type_filter",
    )
    FLEXIBLE = 2
    FIELDS = (
        Field("resource_type_filter", "int8", (1, ALWAYS), default=0),
        Field("resource_name_filter", "string", (1, ALWAYS), nullable=(1, ALWAYS), default=""),
        Field("pattern_type_filter", "int8", (1, ALWAYS), default=3),
        Field("principal_filter", "string", (1, ALWAYS), nullable=(1, ALWAYS), default=""),
        Field("host_filter", "string", (1, ALWAYS), nullable=(1, ALWAYS), default=""),
        Field("operation", "int8", (1, ALWAYS), default=0),
        Field("permission_type", "int8", (1, ALWAYS), default=0),
    )

    def __init__(
        self,
        resource_type_filter: int = 0,
        resource_name_filter: str | None = "",
        pattern_type_filter: int = 3,
        principal_filter: str | None = "",
        host_filter: str | None = "",
        operation: int = 0,
        permission_type: int = 0,
    ) -> None:
        self.resource_type_filter = resource_type_filter
        self.resource_name_filter = resource_name_filter
        self.pattern_type_filter = pattern_type_filter
        self.principal_filter = principal_filter
        self.host_filter = host_filter
        self.operation = operation
        self.permission_type = permission_type


class DeleteAclsRequest(Request["DeleteAclsResponse"]):
    __slots__ = ("filters",)
    API_KEY = 31
    VERSIONS = (1, 3)
    FLEXIBLE = 2
    FIELDS = (Field("filters", "struct", (1, ALWAYS), array=True, struct=DeleteAclsFilter),)

    def __init__(
        self,
        filters: list[DeleteAclsFilter] | None = None,
    ) -> None:
        self.filters = [] if filters is None else filters

    @classmethod
    def reply_type(cls) -> type[DeleteAclsResponse]:
        return DeleteAclsResponse


class DeleteAclsMatchingAcl(Message):
    __slots__ = (
        "error_code",
        "error_message",
        "host",
        "operation",
        "pattern_type",
        "permission_type",
        "principal",
        "resource_name",
        "resource_type",
    )
    FLEXIBLE = 2
    FIELDS = (
        Field("error_code", "int16", (1, ALWAYS), default=0),
        Field("error_message", "string", (1, ALWAYS), nullable=(1, ALWAYS), default=""),
        Field("resource_type", "int8", (1, ALWAYS), default=0),
        Field("resource_name", "string", (1, ALWAYS), default=""),
        Field("pattern_type", "int8", (1, ALWAYS), default=3),
        Field("principal", "string", (1, ALWAYS), default=""),
        Field("host", "string", (1, ALWAYS), default=""),
        Field("operation", "int8", (1, ALWAYS), default=0),
        Field("permission_type", "int8", (1, ALWAYS), default=0),
    )

    def __init__(
        self,
        error_code: int = 0,
        error_message: str | None = "",
        resource_type: int = 0,
        resource_name: str = "",
        pattern_type: int = 3,
        principal: str = "",
        host: str = "",
        operation: int = 0,
        permission_type: int = 0,
    ) -> None:
        self.error_code = error_code
        self.error_message = error_message
        self.resource_type = resource_type
        self.resource_name = resource_name
        self.pattern_type = pattern_type
        self.principal = principal
        self.host = host
        self.operation = operation
        self.permission_type = permission_type


class DeleteAclsFilterResult(Message):
    __slots__ = ("error_code", "error_message", "matching_acls")
    FLEXIBLE = 2
    FIELDS = (
        Field("error_code", "int16", (1, ALWAYS), default=0),
        Field("error_message", "string", (1, ALWAYS), nullable=(1, ALWAYS), default=""),
        Field("matching_acls", "struct", (1, ALWAYS), array=True, struct=DeleteAclsMatchingAcl),
    )

    def __init__(
        self,
        error_code: int = 0,
        error_message: str | None = "",
        matching_acls: list[DeleteAclsMatchingAcl] | None = None,
    ) -> None:
        self.error_code = error_code
        self.error_message = error_message
        self.matching_acls = [] if matching_acls is None else matching_acls


class DeleteAclsResponse(Response):
    __slots__ = ("filter_results", "throttle_time_ms")
    API_KEY = 31
    FLEXIBLE = 2
    FIELDS = (
        Field("throttle_time_ms", "int32", (1, ALWAYS), default=0),
        Field("filter_results", "struct", (1, ALWAYS), array=True, struct=DeleteAclsFilterResult),
    )

    def __init__(
        self,
        throttle_time_ms: int = 0,
        filter_results: list[DeleteAclsFilterResult] | None = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.filter_results = [] if filter_results is None else filter_results
