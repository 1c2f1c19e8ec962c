"""DescribeConfigs (API key 32). Made by tools/generate_messages.py: change that."""

from __future__ import annotations

from headrace.wire.schema import ALWAYS, Field, Message, Request, Response


class DescribeConfigsResource(Message):
    __slots__ = ("configuration_keys", "resource_name", "resource_type")
    FLEXIBLE = 4
    FIELDS = (
        Field("resource_type", "int8", (1, ALWAYS), default=0),
        Field("resource_name", "string", (1, ALWAYS), default=""),
        Field("configuration_keys", "string", (1, ALWAYS), array=True, nullable=(1, ALWAYS)),
    )

    def __init__(
        self,
        resource_type: int = 0,
        resource_name: str = "",
        configuration_keys: list[str] | None = None,
    ) -> None:
        self.resource_type = resource_type
        self.resource_name = resource_name
        self.configuration_keys = configuration_keys


class DescribeConfigsRequest(Request["DescribeConfigsResponse"]):
    __slots__ = ("include_documentation", "include_synonyms", "resources")
    API_KEY = 32
    VERSIONS = (1, 4)
    FLEXIBLE = 4
    FIELDS = (
        Field("resources", "struct", (1, ALWAYS), array=True, struct=DescribeConfigsResource),
        Field("include_synonyms", "bool", (1, ALWAYS), default=False),
        Field("include_documentation", "bool", (3, ALWAYS), default=False),
    )

    def __init__(
        self,
        resources: list[DescribeConfigsResource] | None = None,
        include_synonyms: bool = False,
        include_documentation: bool = False,
    ) -> None:
        self.resources = [] if resources is None else resources
        self.include_synonyms = include_synonyms
        self.include_documentation = include_documentation

    @classmethod
    def reply_type(cls) -> type[DescribeConfigsResponse]:
        return DescribeConfigsResponse


class DescribeConfigsSynonym(Message):
    __slots__ = ("name", "source", "value")
    FLEXIBLE = 4
    FIELDS = (
        Field("name", "string", (1, ALWAYS), default=""),
        Field("value", "string", (1, ALWAYS), nullable=(1, ALWAYS), default=""),
        Field("source", "int8", (1, ALWAYS), default=0),
    )

    def __init__(
        self,
        name: str = "",
        value: str | None = "",
        source: int = 0,
    ) -> None:
        self.name = name
        self.value = value
        self.source = source


class DescribeConfigsResourceResult(Message):
    __slots__ = (
        "config_source",
        "config_type",
        "documentation",
        "is_sensitive",
        "name",
        "read_only",
        "synonyms",
        "value",
    )
    FLEXIBLE = 4
    FIELDS = (
        Field("name", "string", (1, ALWAYS), default=""),
        Field("value", "string", (1, ALWAYS), nullable=(1, ALWAYS), default=""),
        Field("read_only", "bool", (1, ALWAYS), default=False),
        Field("config_source", "int8", (1, ALWAYS), default=-1),
        Field("is_sensitive", "bool", (1, ALWAYS), default=False),
        Field("synonyms", "struct", (1, ALWAYS), array=True, struct=DescribeConfigsSynonym),
        Field("config_type", "int8", (3, ALWAYS), default=0),
        Field("documentation", "string", (3, ALWAYS), nullable=(3, ALWAYS), default=""),
    )

    def __init__(
        self,
        name: str = "",
        value: str | None = "",
        read_only: bool = False,
        config_source: int = -1,
        is_sensitive: bool = False,
        synonyms: list[DescribeConfigsSynonym] | None = None,
        config_type: int = 0,
        documentation: str | None = "",
    ) -> None:
        self.name = name
        self.value = value
        self.read_only = read_only
        self.config_source = config_source
        self.is_sensitive = is_sensitive
        self.synonyms = [] if synonyms is None else synonyms
        self.config_type = config_type
        self.documentation = documentation


class DescribeConfigsResult(Message):
    __slots__ = ("configs", "error_code", "error_message", "resource_name", "resource_type")
    FLEXIBLE = 4
    FIELDS = (
        Field("error_code", "int16", (1, ALWAYS), default=0),
        Field("error_message", "string", (1, ALWAYS), nullable=(1, ALWAYS), default=""),
        Field("resource_type", "int8", (1, ALWAYS), default=0),
        Field("resource_name", "string", (1, ALWAYS), default=""),
        Field("configs", "struct", (1, ALWAYS), array=True, struct=DescribeConfigsResourceResult),
    )

    def __init__(
        self,
        error_code: int = 0,
        error_message: str | None = "",
        resource_type: int = 0,
        resource_name: str = "",
        configs: list[DescribeConfigsResourceResult] | None = None,
    ) -> None:
        self.error_code = error_code
        self.error_message = error_message
        self.resource_type = resource_type
        self.resource_name = resource_name
        self.configs = [] if configs is None else configs


class DescribeConfigsResponse(Response):
    __slots__ = ("results", "throttle_time_ms")
    API_KEY = 32
    FLEXIBLE = 4
    FIELDS = (
        Field("throttle_time_ms", "int32", (1, ALWAYS), default=0),
        Field("results", "struct", (1, ALWAYS), array=True, struct=DescribeConfigsResult),
    )

    def __init__(
        self,
        throttle_time_ms: int = 0,
        results: list[DescribeConfigsResult] | None = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.results = [] if results is None else results
