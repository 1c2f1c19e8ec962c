"""Serializers with a schema registry: dictionaries, dataclasses and pydantic models in and out, confluent-kafka's serializers underneath.

A serializer stands for one subject, `orders-value` say. What it writes has the id of its schema in front; reading takes each record by
the schema that it was written with, and gives it the shape of the reader's.
"""

from __future__ import annotations

import dataclasses
import enum
import json as json_
from collections.abc import Callable, Mapping
from typing import Any, TypeVar, overload

from headrace.client.avro_types import avro_schema_of
from headrace.client.errors import SerializationError, require
from headrace.client.serializers import ProtobufMessage, Serializer, _Pair

T = TypeVar("T")
P = TypeVar("P", bound=ProtobufMessage)
Registry = str | Mapping[str, object]
"""The registry's URL, or settings of confluent-kafka's SchemaRegistryClient."""

_EXTRA, _PURPOSE = "schemas", "A serializer with a schema registry"


@overload
def avro(
    registry: Registry, subject: str, schema: str | Mapping[str, object], **settings: object
) -> Serializer[Any]: ...
@overload
def avro(registry: Registry, subject: str, schema: type[T], **settings: object) -> Serializer[T]: ...
def avro(registry: Registry, subject: str, schema: Any, **settings: object) -> Serializer[Any]:
    """Avro: by a schema as text or mapping, or by that of a dataclass or a pydantic model.

    ``settings`` are confluent-kafka's, with underscores: ``auto_register_schemas=False``.

    >>> Producer("localhost:9092", value_serializer=registered.avro("http://localhost:8081", "orders-value", Order))
    """
    module = require("confluent_kafka.schema_registry.avro", _EXTRA, _PURPOSE)
    typed = isinstance(schema, type)
    text = _text(avro_schema_of(schema) if typed else schema)
    client = _client(registry)
    into, out_of = _conversions(schema, json=False) if typed else (None, None)
    write = module.AvroSerializer(client, text, into, _settings(subject, settings))
    read = module.AvroDeserializer(client, text, out_of, conf=_strategy(subject))
    return _pair(subject, write, read)


@overload
def json(
    registry: Registry, subject: str, schema: str | Mapping[str, object], **settings: object
) -> Serializer[Any]: ...
@overload
def json(registry: Registry, subject: str, schema: type[T], **settings: object) -> Serializer[T]: ...
def json(registry: Registry, subject: str, schema: Any, **settings: object) -> Serializer[Any]:
    """JSON that fits a JSON schema, both ways."""
    module = require("confluent_kafka.schema_registry.json_schema", _EXTRA, _PURPOSE)
    typed = isinstance(schema, type)
    text = _text(_json_schema_of(schema) if typed else schema)
    client = _client(registry)
    into, out_of = _conversions(schema, json=True) if typed else (None, None)
    write = module.JSONSerializer(text, client, into, _settings(subject, settings))
    read = module.JSONDeserializer(
        text, from_dict=out_of, schema_registry_client=client, conf=_strategy(subject)
    )
    return _pair(subject, write, read)


def protobuf(registry: Registry, subject: str, message: type[P], **settings: object) -> Serializer[P]:
    """A class that protoc has made."""
    module = require("confluent_kafka.schema_registry.protobuf", _EXTRA, _PURPOSE)
    client = _client(registry)
    plain = {"use.deprecated.format": False}
    write = module.ProtobufSerializer(message, client, {**_settings(subject, settings), **plain})
    read = module.ProtobufDeserializer(message, {**_strategy(subject), **plain}, client)
    return _pair(subject, write, read)


def _client(registry: Registry) -> Any:
    module = require("confluent_kafka.schema_registry", _EXTRA, _PURPOSE)
    return module.SchemaRegistryClient({"url": registry} if isinstance(registry, str) else dict(registry))


def _strategy(subject: str) -> dict[str, object]:
    return {"subject.name.strategy": lambda context, name: subject}


def _settings(subject: str, settings: Mapping[str, object]) -> dict[str, object]:
    return {**_strategy(subject), **{name.replace("_", "."): value for name, value in settings.items()}}


def _text(schema: str | Mapping[str, object]) -> str:
    return schema if isinstance(schema, str) else json_.dumps(schema)


def _json_schema_of(kind: Any) -> dict[str, Any]:
    if hasattr(kind, "model_json_schema"):
        found: dict[str, Any] = kind.model_json_schema()
        return found
    msgspec = require("msgspec", "json", "JSON")
    return {"title": kind.__name__, **msgspec.json.schema(kind)}


def _conversions(kind: Any, *, json: bool) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """From a value to a dictionary, and back. For JSON every value is one of JSON's; Avro takes times and ids as they are."""
    if hasattr(kind, "model_validate"):
        mode = "json" if json else "python"
        return (
            lambda value, _: _without_enums(value.model_dump(mode=mode)),
            lambda found, _: kind.model_validate(found),
        )
    msgspec = require("msgspec", "json", "JSON")
    return (
        lambda value, _: msgspec.to_builtins(value) if json else _without_enums(dataclasses.asdict(value)),
        lambda found, _: msgspec.convert(found, kind, strict=False),
    )


def _without_enums(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_enums(each) for name, each in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_without_enums(each) for each in value]
    return value.value if isinstance(value, enum.Enum) else value


def _pair(subject: str, write: Callable[..., Any], read: Callable[..., Any]) -> Serializer[Any]:
    module = require("confluent_kafka.serialization", _EXTRA, _PURPOSE)
    context = module.SerializationContext(subject, module.MessageField.VALUE)

    def serialize(value: Any) -> bytes:
        data = write(value, context)
        if data is None:
            raise SerializationError("nothing was written")
        return bytes(data)

    return _Pair(serialize, lambda data: read(data, context))
