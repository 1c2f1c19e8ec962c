"""AlterClientQuotas (API key 49). Made by tools/generate_messages.py: change that."""

from __future__ import annotations

from headrace.wire.schema import ALWAYS, Field, Message, Request, Response


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


class OpData(Message):
    __slots__ = ("key", "remove", "value")
    FLEXIBLE = 1
    FIELDS = (
        Field("key", "string", (0, ALWAYS), default=""),
        Field("value", "float64", (0, ALWAYS), default=0.0),
        Field("remove", "bool", (0, ALWAYS), default=False),
    )

    def __init__(
        self,
        key: str = "",
        value: float = 0.0,
        remove: bool = False,
    ) -> None:
        self.key = key
        self.value = value
        self.remove = remove


class EntryData(Message):
    __slots__ = ("entity", "ops")
    FLEXIBLE = 1
    FIELDS = (
        Field("entity", "struct", (0, ALWAYS), array=True, struct=EntityData),
        Field("ops", "struct", (0, ALWAYS), array=True, struct=OpData),
    )

    def __init__(
        self,
        entity: list[EntityData] | None = None,
        ops: list[OpData] | None = None,
    ) -> None:
        self.entity = [] if entity is None else entity
        self.ops = [] if ops is None else ops


class AlterClientQuotasRequest(Request["AlterClientQuotasResponse"]):
    __slots__ = ("entries", "validate_only")
    API_KEY = 49
    VERSIONS = (0, 1)
    FLEXIBLE = 1
    FIELDS = (
        Field("entries", "struct", (0, ALWAYS), array=True, struct=EntryData),
        Field("validate_only", "bool", (0, ALWAYS), default=False),
    )

    def __init__(
        self,
        entries: list[EntryData] | None = None,
        validate_only: bool = False,
    ) -> None:
        self.entries = [] if entries is None else entries
        self.validate_only = validate_only

    @classmethod
    def reply_type(cls) -> type[AlterClientQuotasResponse]:
        return AlterClientQuotasResponse


class ResponseEntityData(Message):
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


class ResponseEntryData(Message):
    __slots__ = ("entity", "error_code", "error_message")
    FLEXIBLE = 1
    FIELDS = (
        Field("error_code", "int16", (0, ALWAYS), default=0),
        Field("error_message", "string", (0, ALWAYS), nullable=(0, ALWAYS), default=""),
        Field("entity", "struct", (0, ALWAYS), array=True, struct=ResponseEntityData),
    )

    def __init__(
        self,
        error_code: int = 0,
        error_message: str | None = "",
        entity: list[ResponseEntityData] | None = None,
    ) -> None:
        self.error_code = error_code
        self.error_message = error_message
        self.entity = [] if entity is None else entity


class AlterClientQuotasResponse(Response):
    __slots__ = ("entries", "throttle_time_ms")
    API_KEY = 49
    FLEXIBLE = 1
    FIELDS = (
        Field("throttle_time_ms", "int32", (0, ALWAYS), default=0),
        Field("entries", "struct", (0, ALWAYS), array=True, struct=ResponseEntryData),
    )

    def __init__(
        self,
        throttle_time_ms: int = 0,
        entries: list[ResponseEntryData] | None = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.entries = [] if entries is None else entries
