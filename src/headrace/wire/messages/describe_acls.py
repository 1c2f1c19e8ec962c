"""DescribeAcls (API key 29). Made by tools/generate_messages.py: change that."""

from __future__ import annotations

from headrace.wire.schema import ALWAYS, Field, Message, Request, Response


class DescribeAclsRequest(Request["DescribeAclsResponse"]):
    __slots__ = (
        "host_filter",
        "operation",
        "pattern_type_filter",
        "permission_type",
        "principal_filter",
        "resource_name_filter",
        "resource_type_filter",
    )
    API_KEY = 29
    VERSIONS = (1, 3)
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

    @classmethod
    def reply_type(cls) -> type[DescribeAclsResponse]:
        return DescribeAclsResponse


class AclDescription(Message):
    __slots__ = ("host", "operation", "permission_type", "principal")
    FLEXIBLE = 2
    FIELDS = (
        Field("principal", "string", (1, ALWAYS), default=""),
        Field("host", "string", (1, ALWAYS), default=""),
        Field("operation", "int8", (1, ALWAYS), default=0),
        Field("permission_type", "int8", (1, ALWAYS), default=0),
    )

    def __init__(
        self,
        principal: str = "",
        host: str = "",
        operation: int = 0,
        permission_type: int = 0,
    ) -> None:
        self.principal = principal
        self.host = host
        self.operation = operation
        self.permission_type = permission_type


class DescribeAclsResource(Message):
    __slots__ = ("acls", "pattern_type", "resource_name", "resource_type")
    FLEXIBLE = 2
    FIELDS = (
        Field("resource_type", "int8", (1, ALWAYS), default=0),
        Field("resource_name", "string", (1, ALWAYS), default=""),
        Field("pattern_type", "int8", (1, ALWAYS), default=3),
        Field("acls", "struct", (1, ALWAYS), array=True, struct=AclDescription),
    )

    def __init__(
        self,
        resource_type: int = 0,
        resource_name: str = "",
        pattern_type: int = 3,
        acls: list[AclDescription] | None = None,
    ) -> None:
        self.resource_type = resource_type
        self.resource_name = resource_name
        self.pattern_type = pattern_type
        self.acls = [] if acls is None else acls


class DescribeAclsResponse(Response):
    __slots__ = ("error_code", "error_message", "resources", "throttle_time_ms")
    API_KEY = 29
    FLEXIBLE = 2
    FIELDS = (
        Field("throttle_time_ms", "int32", (1, ALWAYS), default=0),
        Field("error_code", "int16", (1, ALWAYS), default=0),
        Field("error_message", "string", (1, ALWAYS), nullable=(1, ALWAYS), default=""),
        Field("resources", "struct", (1, ALWAYS), array=True, struct=DescribeAclsResource),
    )

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
        resources: list[DescribeAclsResource] | None = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.resources = [] if resources is None else resources
