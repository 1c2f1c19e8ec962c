"""DescribeClientQuotas (API key 48). Made by tools/generate_messages.py: change that."""

from __future__ import annotations

from headrace.wire.schema import ALWAYS, Field, Message, Request, Response


class ComponentData(Message):
    __slots__ = ("entity_type", "match", "match_type")
    FLEXIBLE = 1
    FIELDS = (
        Field("entity_type", "string", (0, ALWAYS), default=""),
        Field("match_type", "int8", (0, ALWAYS), default=0),
        Field("match", "string", (0, ALWAYS), nullable=(0, ALWAYS), default=""),
    )

    def __init__(
        self,
        entity_type: str = "",
        match_type: int = 0,
        match: str | None = "",
    ) -> None:
        self.entity_type = entity_type
        self.match_type = match_type
        self.match = match


class DescribeClientQuotasRequest(Request["DescribeClientQuotasResponse"]):
    __slots__ = ("components", "strict")
    API_KEY = 48
    VERSIONS = (0, 1)
    FLEXIBLE = 1
    FIELDS = (
        Field("components", "struct", (0, ALWAYS), array=True, struct=ComponentData),
        Field("strict", "bool", (0, ALWAYS), default=False),
    )

    def __init__(
        self,
        components: list[ComponentData] | None = None,
        strict: bool = False,
    ) -> None:
        self.components = [] if components is None else components
        self.strict = strict

    @classmethod
    def reply_type(cls) -> type[DescribeClientQuotasResponse]:
        return DescribeClientQuotasResponse


class EntityData(Message):
    __slots__ = ("entity_name", "entity_type")
    FLEXIBLE = 1
    FIELDS = (
        Field("entity_type", "string", (0, ALWAYS), default=""),
        Field("entity_name", "string", (0, ALWAYS), nullable=(0, ALWAYS), default=""),
    )

    def __init__(
        self,
        entity_type: str = "",
        entity_name: str | None = "",
    ) -> None:
        self.entity_type = entity_type
        self.entity_name = entity_name


class ValueData(Message):
    __slots__ = ("key", "value")
    FLEXIBLE = 1
    FIELDS = (
        Field("key", "string", (0, ALWAYS), default=""),
        Field("value", "float64", (0, ALWAYS), default=0.0),
    )

    def __init__(
        self,
        key: str = "",
        value: float = 0.0,
    ) -> None:
        self.key = key
        self.value = value


class EntryData(Message):
    __slots__ = ("entity", "values")
    FLEXIBLE = 1
    FIELDS = (
        Field("entity", "struct", (0, ALWAYS), array=True, struct=EntityData),
        Field("values", "struct", (0, ALWAYS), array=True, struct=ValueData),
    )

    def __init__(
        self,
        entity: list[EntityData] | None = None,
        values: list[ValueData] | None = None,
    ) -> None:
        self.entity = [] if entity is None else entity
        self.values = [] if values is None else values


class DescribeClientQuotasResponse(Response):
    __slots__ = ("entries", "error_code", "error_message", "throttle_time_ms")
    API_KEY = 48
    FLEXIBLE = 1
    FIELDS = (
        Field("throttle_time_ms", "int32", (0, ALWAYS), default=0),
        Field("error_code", "int16", (0, ALWAYS), default=0),
        Field("error_message", "string", (0, ALWAYS), nullable=(0, ALWAYS), default=""),
        Field("entries", "struct", (0, ALWAYS), array=True, nullable=(0, ALWAYS), struct=EntryData),
    )

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
        entries: list[EntryData] | None = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.entries = entries
