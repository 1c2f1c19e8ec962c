"""CreateAcls (API key 30). Made by tools/generate_messages.py: change that."""

from __future__ import annotations

from headrace.wire.schema import ALWAYS, Field, Message, Request, Response


class AclCreation(Message):
    __slots__ = (
        "host",
        "operation",
        "permission_type",
        "principal",
        "resource_name",
        "resource_pattern_type",
        "resource_type",
    )
    FLEXIBLE = 2
    FIELDS = (
        Field("resource_type", "int8", (1, ALWAYS), default=0),
        Field("resource_name", "string", (1, ALWAYS), default=""),
        Field("resource_pattern_type", "int8", (1, ALWAYS), default=3),
        Field("principal", "string", (1, ALWAYS), default=""),
        Field("host", "string", (1, ALWAYS), default=""),
        Field("operation", "int8", (1, ALWAYS), default=0),
        Field("permission_type", "int8", (1, ALWAYS), default=0),
    )

    def __init__(
        self,
        resource_type: int = 0,
        resource_name: str = "",
        resource_pattern_type: int = 3,
        principal: str = "",
        host: str = "",
        operation: int = 0,
        permission_type: int = 0,
    ) -> None:
        self.resource_type = resource_type
        self.resource_name = resource_name
        self.resource_pattern_type = resource_pattern_type
        self.principal = principal
        self.host = host
        self.operation = operation
        self.permission_type = permission_type


class CreateAclsRequest(Request["CreateAclsResponse"]):
    __slots__ = ("creations",)
    API_KEY = 30
    VERSIONS = (1, 3)
    FLEXIBLE = 2
    FIELDS = (Field("creations", "struct", (1, ALWAYS), array=True, struct=AclCreation),)

    def __init__(
        self,
        creations: list[AclCreation] | None = None,
    ) -> None:
        self.creations = [] if creations is None else creations

    @classmethod
    def reply_type(cls) -> type[CreateAclsResponse]:
        return CreateAclsResponse


class AclCreationResult(Message):
    __slots__ = ("error_code", "error_message")
    FLEXIBLE = 2
    FIELDS = (
        Field("error_code", "int16", (1, ALWAYS), default=0),
        Field("error_message", "string", (1, ALWAYS), nullable=(1, ALWAYS), default=""),
    )

    def __init__(
        self,
        error_code: int = 0,
        error_message: str | None = "",
    ) -> None:
        self.error_code = error_code
        self.error_message = error_message


class CreateAclsResponse(Response):
    __slots__ = ("results", "throttle_time_ms")
    API_KEY = 30
    FLEXIBLE = 2
    FIELDS = (
        Field("throttle_time_ms", "int32", (1, ALWAYS), default=0),
        Field("results", "struct", (1, ALWAYS), array=True, struct=AclCreationResult),
    )

    def __init__(
        self,
        throttle_time_ms: int = 0,
        results: list[AclCreationResult] | None = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.results = [] if results is None else results
