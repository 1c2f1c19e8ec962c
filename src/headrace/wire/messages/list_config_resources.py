"""ListConfigResources (API key 74). Made by tools/generate_messages.py: change that."""

from __future__ import annotations

from headrace.wire.schema import ALWAYS, Field, Message, Request, Response


class ListConfigResourcesRequest(Request["ListConfigResourcesResponse"]):
    __slots__ = ("resource_types",)
    API_KEY = 74
    VERSIONS = (0, 1)
    FLEXIBLE = 0
    FIELDS = (Field("resource_types", "int8", (1, ALWAYS), array=True),)

    def __init__(
        self,
        resource_types: list[int] | None = None,
    ) -> None:
        self.resource_types = [] if resource_types is None else resource_types

    @classmethod
    def reply_type(cls) -> type[ListConfigResourcesResponse]:
        return ListConfigResourcesResponse


class ConfigResource(Message):
    __slots__ = ("resource_name", "resource_type")
    FLEXIBLE = 0
    FIELDS = (
        Field("resource_name", "string", (0, ALWAYS), default=""),
        Field("resource_type", "int8", (1, ALWAYS), default=16),
    )

    def __init__(
        self,
        resource_name: str = "",
        resource_type: int = 16,
    ) -> None:
        self.resource_name = resource_name
        self.resource_type = resource_type


class ListConfigResourcesResponse(Response):
    __slots__ = ("config_resources", "error_code", "throttle_time_ms")
    API_KEY = 74
    FLEXIBLE = 0
    FIELDS = (
        Field("throttle_time_ms", "int32", (0, ALWAYS), default=0),
        Field("error_code", "int16", (0, ALWAYS), default=0),
        Field("config_resources", "struct", (0, ALWAYS), array=True, struct=ConfigResource),
    )

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        config_resources: list[ConfigResource] | None = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.config_resources = [] if config_resources is None else config_resources
