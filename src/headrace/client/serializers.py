"""Keys and values to bytes and back: raw, text, JSON, pydantic, Avro and Protobuf.

A serializer does both directions, so producers and consumers share one. None is never serialized: it is
Kafka's null. The libraries behind JSON, pydantic, Avro and Protobuf are optional and imported when asked for.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar, overload, runtime_checkable

from headrace.client.errors import SerializationError, require

if TYPE_CHECKING:
    from pydantic import BaseModel

    M = TypeVar("M", bound=BaseModel)

T = TypeVar("T")


class ProtobufMessage(Protocol):
    """The part of google.protobuf.message.Message that is used."""

    def SerializeToString(self) -> bytes: ...

    def ParseFromString(self, data: bytes, /) -> int: ...


P = TypeVar("P", bound=ProtobufMessage)


@runtime_checkable
class Serializer(Protocol[T]):
    """Anything with these two methods; errors of either may be of any class."""

    def serialize(self, value: T) -> bytes: ...

    def deserialize(self, data: bytes) -> T: ...


class _Pair(Generic[T]):
    """A serializer made of two functions."""

    __slots__ = ("deserialize", "serialize")

    def __init__(self, serialize: Callable[[T], bytes], deserialize: Callable[[bytes], T]) -> None:
        self.serialize = serialize
        self.deserialize = deserialize


def raw() -> Serializer[bytes]:
    """Bytes as they are."""
    return _Pair(bytes, bytes)


def text(encoding: str = "utf-8") -> Serializer[str]:
    """Text, in UTF-8 unless another encoding is given.

    >>> Consumer("localhost:9092", key_deserializer=serializers.text())
    """
    return _Pair(lambda value: value.encode(encoding), lambda data: data.decode(encoding))


@overload
def json() -> Serializer[Any]: ...
@overload
def json(type: type[T]) -> Serializer[T]: ...
def json(type: Any = Any) -> Serializer[Any]:
    """JSON through msgspec; with a type (dataclass, msgspec.Struct, TypedDict, …) decoding also validates.

    >>> Consumer("localhost:9092", value_deserializer=serializers.json(Order))
    """
    msgspec = require("msgspec", "json", "JSON")
    return _Pair(msgspec.json.Encoder().encode, msgspec.json.Decoder(type).decode)


def pydantic(model: type[M]) -> Serializer[M]:
    """A pydantic model as JSON.

    >>> Producer("localhost:9092", value_serializer=serializers.pydantic(Order))
    """
    require("pydantic", "pydantic", "a pydantic model")
    return _Pair(lambda value: value.model_dump_json().encode(), model.model_validate_json)


def avro(
    schema: Mapping[str, object] | str, *, reader_schema: Mapping[str, object] | str | None = None
) -> Serializer[Any]:
    """Avro's binary encoding without a header; both ends know the schema (a mapping or JSON text).

    ``reader_schema`` decodes records written with ``schema`` into a newer shape, by Avro's resolution rules.
    """
    fastavro = require("fastavro", "avro", "Avro")
    writer = fastavro.parse_schema(_avro_schema(schema))
    reader = None if reader_schema is None else fastavro.parse_schema(_avro_schema(reader_schema))

    def serialize(value: object) -> bytes:
        out = io.BytesIO()
        fastavro.schemaless_writer(out, writer, value)
        return out.getvalue()

    def deserialize(data: bytes) -> object:
        stream = io.BytesIO(data)
        value: object = fastavro.schemaless_reader(stream, writer, reader)
        if stream.tell() != len(data):
            raise ValueError(
                f"{len(data) - stream.tell()} bytes are left over; the schema is not the writer's"
            )
        return value

    return _Pair(serialize, deserialize)


def protobuf(message: type[P]) -> Serializer[P]:
    """A class that protoc has made.

    >>> Producer("localhost:9092", value_serializer=serializers.protobuf(Order))
    """
    require("google.protobuf", "protobuf", "Protobuf")

    def deserialize(data: bytes) -> P:
        decoded = message()
        decoded.ParseFromString(data)
        return decoded

    return _Pair(lambda value: value.SerializeToString(), deserialize)


def as_serializer(
    given: Serializer[T] | Callable[[T], bytes] | None, part: str
) -> Callable[[object], bytes | None]:
    """The function a producer calls for every key or value. Without a serializer, bytes and str are taken."""
    if given is None:
        convert: Callable[[Any], object] = _bytes_or_text
    else:
        convert = given.serialize if isinstance(given, Serializer) else given

    def serialize(value: object) -> bytes | None:
        if value is None:
            return None
        try:
            data = convert(value)
        except Exception as error:
            kind = type(value).__name__
            raise SerializationError(f"a {part} of type {kind} cannot be serialized: {error}") from error
        if isinstance(data, bytes):
            return data
        if isinstance(data, str):  # from json.dumps, say
            return data.encode()
        raise SerializationError(f"the serializer of a {part} returned {type(data).__name__}, not bytes")

    return serialize


def as_deserializer(given: Serializer[T] | Callable[[bytes], T] | None) -> Callable[[bytes], T] | None:
    return given.deserialize if isinstance(given, Serializer) else given


def _bytes_or_text(value: object) -> bytes:
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value)
    raise TypeError(
        "without a serializer only bytes and str are taken; choose one from headrace.client.serializers"
    )


def _avro_schema(schema: Mapping[str, object] | str | Sequence[object]) -> object:
    if isinstance(schema, str):
        import json as json_text

        return json_text.loads(schema)
    return schema
