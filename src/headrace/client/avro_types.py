"""Avro schemas of Python types: dataclasses and pydantic models, field by field."""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import enum
import types
import typing
import uuid
from typing import Any

from headrace.client.errors import ConfigError

_PLAIN: dict[Any, Any] = {
    bool: "boolean",
    int: "long",
    float: "double",
    str: "string",
    bytes: "bytes",
    type(None): "null",
    datetime.datetime: {"type": "long", "logicalType": "timestamp-micros"},
    datetime.date: {"type": "int", "logicalType": "date"},
    uuid.UUID: {"type": "string", "logicalType": "uuid"},
}


def avro_schema_of(kind: type) -> dict[str, Any]:
    """The schema of a record; ConfigError for a field that Avro has nothing for."""
    schema = _schema(kind, set())
    if not isinstance(schema, dict) or schema.get("type") != "record":
        raise ConfigError(f"{kind.__name__} is neither a dataclass nor a pydantic model")
    return schema


def _schema(kind: Any, known: set[str]) -> Any:
    if kind in _PLAIN:
        return _PLAIN[kind]
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is typing.Annotated:
        return _schema(arguments[0], known)
    if origin in (typing.Union, types.UnionType):
        return [_schema(each, known) for each in sorted(arguments, key=lambda each: each is not type(None))]
    if (
        origin in (list, tuple, set, frozenset)
        and arguments
        and (origin is not tuple or arguments[1:] == (...,))
    ):
        return {"type": "array", "items": _schema(arguments[0], known)}
    if origin is dict and arguments[0] is str:
        return {"type": "map", "values": _schema(arguments[1], known)}
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        return _named(kind, known, {"type": "enum", "symbols": [str(each.value) for each in kind]})
    if dataclasses.is_dataclass(kind) and isinstance(kind, type):
        return _record(kind, _dataclass_fields(kind), known)
    if hasattr(kind, "model_fields"):
        fields = [(name, each.annotation, _default_of(each)) for name, each in kind.model_fields.items()]
        return _record(kind, fields, known)
    hint = " (give the schema as text for its scale and precision)" if kind is decimal.Decimal else ""
    raise ConfigError(f"Avro has no type for {kind!r}{hint}")


_MISSING = object()


def _dataclass_fields(kind: type) -> list[tuple[str, Any, Any]]:
    hints = typing.get_type_hints(kind, include_extras=True)
    return [
        (field.name, hints[field.name], _MISSING if field.default is dataclasses.MISSING else field.default)
        for field in dataclasses.fields(kind)
    ]


def _default_of(field: Any) -> Any:
    return _MISSING if field.is_required() or field.default_factory is not None else field.default


def _record(kind: type, fields: list[tuple[str, Any, Any]], known: set[str]) -> Any:
    if kind.__name__ in known:
        return kind.__name__
    known.add(kind.__name__)
    listed = []
    for name, each, default in fields:
        field: dict[str, Any] = {"name": name, "type": _schema(each, known)}
        if default is None or isinstance(default, bool | int | float | str):
            value = default.value if isinstance(default, enum.Enum) else default
            if isinstance(field["type"], list) and value is not None:
                # A default belongs to the first of several types.
                field["type"] = sorted(field["type"], key=lambda one: one == "null")
            field["default"] = value
        listed.append(field)
    return {"type": "record", "name": kind.__name__, "fields": listed}


def _named(kind: type, known: set[str], schema: dict[str, Any]) -> Any:
    if kind.__name__ in known:
        return kind.__name__
    known.add(kind.__name__)
    return {**schema, "name": kind.__name__}
