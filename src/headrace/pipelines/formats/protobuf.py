"""Protobuf messages, described by their generated class. Its description travels to the workers, not the class.

Field presence is kept: what is not set is NULL, except proto3 fields without presence, which have their default.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from pyspark.sql import Column
from pyspark.sql import types as T

from headrace.client.errors import require
from headrace.pipelines.errors import PipelineError
from headrace.pipelines.formats import rows

if TYPE_CHECKING:
    from google.protobuf.descriptor import Descriptor, FieldDescriptor, FileDescriptor
    from google.protobuf.message import Message

_TYPES: dict[str, T.DataType] = {
    "int32": T.IntegerType(),
    "int64": T.LongType(),
    "uint32": T.LongType(),
    "uint64": T.DecimalType(20, 0),
    "double": T.DoubleType(),
    "float": T.FloatType(),
    "bool": T.BooleanType(),
    "enum": T.StringType(),
    "string": T.StringType(),
    "bytes": T.BinaryType(),
}
_CPP = ("", "int32", "int64", "uint32", "uint64", "double", "float", "bool", "enum", "string", "message")
_BYTES_TYPE = 12  # of FieldDescriptor.type; its cpp_type is string


class Protobuf:
    """``schema`` is a message class that protoc has generated."""

    def __init__(self, schema: object, topic: str) -> None:
        require("google.protobuf", "protobuf", f"topic '{topic}'")
        descriptor = getattr(schema, "DESCRIPTOR", None)
        if descriptor is None:
            raise PipelineError(
                f"Topic '{topic}' is of format protobuf: give the generated message class as its schema."
            )
        self._name: str = descriptor.full_name
        self._files = _files_of(descriptor.file)
        self._schema = _struct_of(descriptor)

    @property
    def schema(self) -> T.StructType:
        return self._schema

    def decode(self, value: Column, schema: T.StructType) -> Column:
        name, files = self._name, self._files

        def decoder() -> Callable[[bytes], Mapping[str, object]]:
            message = _class_of(name, files)
            return lambda data: _to_row(message.FromString(data))

        return rows.decoded(value, schema, decoder)

    def encode(self, row: Column, schema: Callable[[], T.StructType]) -> Column:
        name, files = self._name, self._files

        def encoder() -> Callable[[Mapping[str, object]], bytes]:
            message = _class_of(name, files)

            def encode(values: Mapping[str, object]) -> bytes:
                filled = message()
                _fill(filled, values)
                data: bytes = filled.SerializeToString()
                return data

            return encode

        return rows.encoded(row, encoder)


def _files_of(file: FileDescriptor) -> list[bytes]:
    """The description of a file and of all it imports, those first."""
    found: dict[str, bytes] = {}

    def visit(each: FileDescriptor) -> None:
        if each.name not in found:
            for needed in each.dependencies:
                visit(needed)
            found[each.name] = each.serialized_pb

    visit(file)
    return list(found.values())


def _class_of(name: str, files: list[bytes]) -> type[Message]:
    from google.protobuf import descriptor_pool, message_factory

    pool = descriptor_pool.DescriptorPool()
    for serialized in files:
        pool.AddSerializedFile(serialized)
    made: type[Message] = message_factory.GetMessageClass(pool.FindMessageTypeByName(name))
    return made


def _kind(field: FieldDescriptor) -> str:
    return "bytes" if field.type == _BYTES_TYPE else _CPP[field.cpp_type]


def _is_map(field: FieldDescriptor) -> bool:
    return field.message_type is not None and field.message_type.GetOptions().map_entry


def _struct_of(descriptor: Descriptor, above: tuple[str, ...] = ()) -> T.StructType:
    if descriptor.full_name in above:
        raise PipelineError(
            f"The Protobuf message {descriptor.full_name} contains itself, which Spark's columns cannot."
        )
    path = (*above, descriptor.full_name)
    return T.StructType([T.StructField(field.name, _type_of(field, path)) for field in descriptor.fields])


def _type_of(field: FieldDescriptor, path: tuple[str, ...]) -> T.DataType:
    if _is_map(field):
        entry = field.message_type.fields_by_name
        return T.MapType(_type_of(entry["key"], path), _type_of(entry["value"], path))
    one = _struct_of(field.message_type, path) if field.message_type is not None else _TYPES[_kind(field)]
    return T.ArrayType(one) if field.is_repeated else one


def _to_row(message: Any) -> dict[str, object]:
    return {field.name: _value_of(message, field) for field in message.DESCRIPTOR.fields}


def _value_of(message: Any, field: FieldDescriptor) -> object:
    value = getattr(message, field.name)
    if _is_map(field):
        inner = field.message_type.fields_by_name["value"]
        return [(key, _one(item, inner)) for key, item in value.items()]
    if field.is_repeated:
        return [_one(item, field) for item in value]
    if field.has_presence and not message.HasField(field.name):
        return None
    return _one(value, field)


def _one(value: Any, field: FieldDescriptor) -> object:
    if field.message_type is not None:
        return _to_row(value)
    if field.enum_type is not None:
        known = field.enum_type.values_by_number.get(value)
        return str(value) if known is None else known.name
    return value


def _fill(message: Any, values: Mapping[str, object]) -> None:
    for field in message.DESCRIPTOR.fields:
        value = values.get(field.name)
        if value is None:
            continue
        target = getattr(message, field.name)
        if _is_map(field):
            inner = field.message_type.fields_by_name["value"]
            for key, item in dict(value).items():  # type: ignore[call-overload]  # Arrow gives maps as pairs
                if inner.message_type is not None:
                    _fill(target[key], item)
                else:
                    target[key] = _scalar(item, inner)
        elif field.is_repeated:
            for item in value:  # type: ignore[attr-defined]  # a list, by the schema
                if field.message_type is not None:
                    _fill(target.add(), item)
                else:
                    target.append(_scalar(item, field))
        elif field.message_type is not None:
            target.SetInParent()
            _fill(target, value)  # type: ignore[arg-type]  # a struct, by the schema
        else:
            setattr(message, field.name, _scalar(value, field))


def _scalar(value: Any, field: FieldDescriptor) -> Any:
    if field.enum_type is not None:
        known = field.enum_type.values_by_name.get(value)
        return (
            int(value) if known is None else known.number
        )  # a number that has no name here was read as it is
    return int(value) if _kind(field) == "uint64" else value
