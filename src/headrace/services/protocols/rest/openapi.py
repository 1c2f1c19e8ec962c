"""The OpenAPI 3.1 description of the services behind a port, made from their annotations."""

from __future__ import annotations

import datetime
import decimal
import enum
import types
import typing
import uuid
from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Annotated, Any, Union

from headrace.services.hessian2 import DEFAULT_CLASSES
from headrace.services.interface import MethodModel
from headrace.services.invoker import Invoker
from headrace.services.javatypes import is_bean, java_name

Schema = dict[str, Any]

_SCALARS: dict[type, Schema] = {
    bool: {"type": "boolean"},
    int: {"type": "integer"},
    float: {"type": "number"},
    str: {"type": "string"},
    bytes: {"type": "string", "contentEncoding": "base64"},
    decimal.Decimal: {"type": "string", "format": "decimal"},
    datetime.datetime: {"type": "string", "format": "date-time"},
    datetime.date: {"type": "string", "format": "date"},
    datetime.time: {"type": "string", "format": "time"},
    uuid.UUID: {"type": "string", "format": "uuid"},
    type(None): {"type": "null"},
}
_ERROR: Schema = {
    "type": "object",
    "properties": {
        "error": {
            "type": "object",
            "properties": {"type": {"type": "string"}, "message": {"type": "string"}},
            "required": ["type", "message"],
        }
    },
}


def describe(invokers: Iterable[Invoker]) -> Schema:
    """The whole document."""
    components: dict[str, Schema] = {"Error": _ERROR}
    paths: dict[str, Schema] = {}
    for invoker in invokers:
        for method in invoker.interface.methods.values():
            operation = _operation(method, components)
            operation["tags"] = [invoker.interface.name]
            operation["operationId"] = f"{invoker.interface.name}.{method.name}"
            paths[f"/{invoker.url.path}/{method.name}"] = {"post": operation}
    return {
        "openapi": "3.1.0",
        "info": {"title": "Services", "version": "1"},
        "paths": paths,
        "components": {"schemas": components},
    }


def _operation(method: MethodModel, components: dict[str, Schema]) -> Schema:
    body = {
        "type": "object",
        "properties": {p.name: schema_of(p.annotation, components) for p in method.parameters},
        "required": [p.name for p in method.parameters if p.required],
    }
    failure = {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}}
    return {
        "summary": method.summary,
        "requestBody": {"content": {"application/json": {"schema": body}}},
        "responses": {
            "200": {
                "description": "What the method returned",
                "content": {"application/json": {"schema": schema_of(method.returns, components)}},
            },
            "default": {"description": "Why it did not", **failure},
        },
    }


def schema_of(annotation: Any, components: dict[str, Schema]) -> Schema:
    """The JSON schema of values with this annotation; beans go to `components` once."""
    origin = typing.get_origin(annotation)
    arguments = typing.get_args(annotation)
    if origin is Annotated:
        return schema_of(arguments[0], components)
    if origin in (Union, types.UnionType):
        return {"anyOf": [schema_of(argument, components) for argument in arguments]}
    cls = origin or annotation
    if not isinstance(cls, type):
        return {}
    for scalar, schema in _SCALARS.items():
        if issubclass(cls, scalar) and not issubclass(cls, enum.Enum):
            return dict(schema)
    if issubclass(cls, Mapping):
        return {
            "type": "object",
            "additionalProperties": schema_of(arguments[1], components) if arguments else {},
        }
    if issubclass(cls, Set | Sequence):
        return {"type": "array", "items": schema_of(arguments[0], components) if arguments else {}}
    if is_bean(cls):
        return _reference(cls, components)
    return {}


def _reference(cls: type, components: dict[str, Schema]) -> Schema:
    name = java_name(cls)
    if name not in components:
        schema: Schema = {}
        components[name] = schema  # before its fields, which may refer to it
        if issubclass(cls, enum.Enum):
            schema |= {"type": "string", "enum": list(cls.__members__)}
        else:
            fields = DEFAULT_CLASSES.by_name[name].fields
            schema["type"] = "object"
            schema["properties"] = {f.java_name: schema_of(f.annotation, components) for f in fields}
            schema["required"] = [f.java_name for f in fields if f.required]
    return {"$ref": f"#/components/schemas/{name}"}
