"""IncrementalAlterConfigs (API key 44). Made by tools/generate_messages.py: change that."""

from __future__ import annotations

from headrace.wire.schema import ALWAYS, Field, Message, Request, Response


class AlterableConfig(Message):
    __slots__ = ("config_operation", "name", "value")
    FLEXIBLE = 1
    FIELDS = (
        Field("name", "string", (0, ALWAYS), default=""),
        Field("config_operation", "int8", (0, ALWAYS), default=0),
        Field("value", "string", (0, ALWAYS), nullable=(0, ALWAYS), default=""),
    )

    def __init__(
        self,
        name: str = "",
        config_operation: int = 0,
        value: str | None = "",
    ) -> None:
        self.name = name
        self.config_operation = config_operation
        self.value = value


class AlterConfigsResource(Message):
    __slots__ = ("configs", "resource_name", "resource_type")
    FLEXIBLE = 1
    FIELDS = (
        Field("resource_type", "int8", (0, ALWAYS), default=0),
        Field("resource_name", "string", (0, ALWAYS), default=""),
        Field("configs", "struct", (0, ALWAYS), array=True, struct=AlterableConfig),
    )

    def __init__(
        self,
        resource_type: int = 0,
        resource_name: str = "",
        configs: list[AlterableConfig] | None = None,
    ) -> None:
        self.resource_type = resource_type
        self.resource_name = resource_name
        self.configs = [] if configs is None else configs


class IncrementalAlterConfigsRequest(Request["IncrementalAlterConfigsResponse"]):
    __slots__ = ("resources", "validate_only")
    API_KEY = 44
    VERSIONS = (0, 1)
    FLEXIBLE = 1
    FIELDS = (
        Field("resources", "struct", (0, ALWAYS), array=True, struct=AlterConfigsResource),
        Field("validate_only", "bool", (0, ALWAYS), default=False),
    )

    def __init__(
        self,
        resources: list[AlterConfigsResource] | None = None,
        validate_only: bool = False,
    ) -> None:
        self.resources = [] if resources is None else resources
        self.validate_only = validate_only

    @classmethod
    def reply_type(cls) -> type[IncrementalAlterConfigsResponse]:
        return IncrementalAlterConfigsResponse


class AlterConfigsResourceResponse(Message):
    __slots__ = ("error_code", "error_message", "resource_name", "resource_type")
    FLEXIBLE = 1
    FIELDS = (
        Field("error_code", "int16", (0, ALWAYS), default=0),
        Field("error_message", "string", (0, ALWAYS), nullable=(0, ALWAYS), default=""),
        Field("resource_type", "int8", (0, ALWAYS), default=0),
        Field("resource_name", "string", (0, ALWAYS), default=""),
    )

    def __init__(
        self,
        error_code: int = 0,
        error_message: str | None = "",
        resource_type: int = 0,
        resource_name: str = "",
    ) -> None:
        self.error_code = error_code
        self.error_message = error_message
        self.resource_type = resource_type
        self.resource_name = resource_name


class IncrementalAlterConfigsResponse(Response):
    __slots__ = ("responses", "throttle_time_ms")
    API_KEY = 44
    FLEXIBLE = 1
    FIELDS = (
        Field("throttle_time_ms", "int32", (0, ALWAYS), default=0),
        Field("responses", "struct", (0, ALWAYS), array=True, struct=AlterConfigsResourceResponse),
    )

    def __init__(
        self,
        throttle_time_ms: int = 0,
        responses: list[AlterConfigsResourceResponse] | None = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.responses = [] if responses is None else responses
