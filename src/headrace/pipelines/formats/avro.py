"""Avro's binary encoding without a header, through fastavro: both ends know the schema, as headrace.client does.

Spark's own Avro functions need a jar; these are Arrow functions in Python and need none.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from pyspark.sql import Column
from pyspark.sql import types as T

from headrace.client.errors import require
from headrace.pipelines.errors import PipelineError
from headrace.pipelines.formats import rows

_PRIMITIVES: dict[str, T.DataType] = {
    "null": T.NullType(),
    "boolean": T.BooleanType(),
    "int": T.IntegerType(),
    "long": T.LongType(),
    "float": T.FloatType(),
    "double": T.DoubleType(),
    "bytes": T.BinaryType(),
    "string": T.StringType(),
}
_LOGICAL: dict[str, T.DataType] = {
    "date": T.DateType(),
    "timestamp-millis": T.TimestampType(),
    "timestamp-micros": T.TimestampType(),
    "local-timestamp-millis": T.TimestampNTZType(),
    "local-timestamp-micros": T.TimestampNTZType(),
}
_AVRO: dict[type[T.DataType], Any] = {
    T.BooleanType: "boolean",
    T.ByteType: "int",
    T.ShortType: "int",
    T.IntegerType: "int",
    T.LongType: "long",
    T.FloatType: "float",
    T.DoubleType: "double",
    T.BinaryType: "bytes",
    T.StringType: "string",
    T.DateType: {"type": "int", "logicalType": "date"},
    T.TimestampType: {"type": "long", "logicalType": "timestamp-micros"},
    T.TimestampNTZType: {"type": "long", "logicalType": "local-timestamp-micros"},
}


class Avro:
    """``schema`` is a mapping, JSON text, or the name of an .avsc file."""

    def __init__(self, schema: object, topic: str) -> None:
        require("fastavro", "avro", f"topic '{topic}'")
        self._topic = topic
        self._avro = None if schema is None else _parsed(schema, topic)
        self._schema = None if self._avro is None else _struct_of(self._avro, topic)

    @property
    def schema(self) -> T.StructType | None:
        return self._schema

    def decode(self, value: Column, schema: T.StructType) -> Column:
        written = self._avro if self._avro is not None else avro_of(schema, self._topic)

        def decoder() -> Callable[[bytes], Mapping[str, object]]:
            import fastavro

            parsed = fastavro.parse_schema(written)

            def decode(data: bytes) -> Mapping[str, object]:
                stream = io.BytesIO(data)
                row = fastavro.schemaless_reader(stream, parsed, None)
                if stream.tell() != len(data):
                    raise ValueError(
                        f"{len(data) - stream.tell()} bytes are left over; the schema is not the writer's"
                    )
                return row  # type: ignore[return-value]  # a record, as _struct_of has made sure

            return decode

        return rows.decoded(value, schema, decoder)

    def encode(self, row: Column, schema: Callable[[], T.StructType]) -> Column:
        written = self._avro if self._avro is not None else avro_of(schema(), self._topic)

        def encoder() -> Callable[[Mapping[str, object]], bytes]:
            import fastavro

            parsed = fastavro.parse_schema(written)
            has_maps = '"map"' in json.dumps(written)

            def encode(values: Mapping[str, object]) -> bytes:
                out = io.BytesIO()
                fastavro.schemaless_writer(out, parsed, _with_maps(values, written) if has_maps else values)
                return out.getvalue()

            return encode

        return rows.encoded(row, encoder)


def avro_of(schema: T.StructType, topic: str) -> dict[str, Any]:
    """The Avro schema of a flow's rows: every column may be null."""
    name = "".join(letter if letter.isalnum() else "_" for letter in topic)
    return _avro_record(schema, name)


def _avro_record(schema: T.StructType, name: str) -> dict[str, Any]:
    fields = [
        {
            "name": each.name,
            "type": ["null", _avro_type(each.dataType, f"{name}_{each.name}")],
            "default": None,
        }
        for each in schema.fields
    ]
    return {"type": "record", "name": name, "fields": fields}


def _avro_type(kind: T.DataType, name: str) -> Any:
    if isinstance(kind, T.StructType):
        return _avro_record(kind, name)
    if isinstance(kind, T.ArrayType):
        return {"type": "array", "items": ["null", _avro_type(kind.elementType, name)]}
    if isinstance(kind, T.MapType) and isinstance(kind.keyType, T.StringType):
        return {"type": "map", "values": ["null", _avro_type(kind.valueType, name)]}
    if isinstance(kind, T.DecimalType):
        return {"type": "bytes", "logicalType": "decimal", "precision": kind.precision, "scale": kind.scale}
    if type(kind) in _AVRO:
        return _AVRO[type(kind)]
    raise PipelineError(f"Avro has no type for {kind.simpleString()} ({name}); cast the column.")


def _parsed(schema: object, topic: str) -> dict[str, Any]:
    try:
        if isinstance(schema, str | Path) and str(schema).endswith(".avsc"):
            schema = Path(schema).read_text()
        found = json.loads(schema) if isinstance(schema, str) else schema
        from fastavro import parse_schema

        parse_schema(found)  # type: ignore[arg-type]  # anything may come from a user; it says what is wrong
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise PipelineError(f"The Avro schema of topic '{topic}' is not valid: {error}.") from error
    except Exception as error:
        if "fastavro" not in type(error).__module__:
            raise
        raise PipelineError(f"The Avro schema of topic '{topic}' is not valid: {error}.") from error
    if not isinstance(found, dict) or found.get("type") != "record":
        raise PipelineError(
            f"The Avro schema of topic '{topic}' must be a record, whose fields become columns."
        )
    plain: dict[str, Any] = _plain(found)
    return plain


def _plain(kind: Any) -> Any:
    """A schema without the logical types that Spark has no column for, such as uuid and time-millis: fastavro would give
    objects for them that fit no column, and what they are written as does."""
    if isinstance(kind, list):
        return [_plain(each) for each in kind]
    if not isinstance(kind, dict):
        return kind
    kept = {
        name: [_plain(each) for each in value]
        if name == "fields"
        else _plain(value)
        if name in ("type", "items", "values")
        else value
        for name, value in kind.items()
    }
    if kept.get("logicalType") not in (None, "decimal", *_LOGICAL):
        del kept["logicalType"]
    return kept


def _with_maps(value: Any, kind: Any) -> Any:
    """A value as Arrow gives it, its maps as dictionaries in the place of pairs."""
    if value is None or isinstance(kind, str):
        return value
    if isinstance(kind, list):
        return _with_maps(value, next(each for each in kind if each != "null"))
    match kind["type"]:
        case "record":
            return {each["name"]: _with_maps(value[each["name"]], each["type"]) for each in kind["fields"]}
        case "array":
            return [_with_maps(each, kind["items"]) for each in value]
        case "map":
            return {key: _with_maps(each, kind["values"]) for key, each in value}
        case dict() | list() as inner:
            return _with_maps(value, inner)
    return value


def _struct_of(record: Mapping[str, Any], topic: str) -> T.StructType:
    return T.StructType(
        [T.StructField(each["name"], _spark_type(each["type"], topic)) for each in record["fields"]]
    )


def _spark_type(kind: Any, topic: str) -> T.DataType:
    if isinstance(kind, list):
        return _spark_type(_the_one_beside_null(kind, topic), topic)
    if isinstance(kind, str):
        if kind in _PRIMITIVES:
            return _PRIMITIVES[kind]
        raise PipelineError(
            f"The Avro schema of topic '{topic}' names the type '{kind}' again; write it out where it is used."
        )
    if (logical := kind.get("logicalType")) == "decimal":
        return T.DecimalType(kind["precision"], kind.get("scale", 0))
    if logical in _LOGICAL:
        return _LOGICAL[logical]
    match kind["type"]:
        case "record":
            return _struct_of(kind, topic)
        case "array":
            return T.ArrayType(_spark_type(kind["items"], topic))
        case "map":
            return T.MapType(T.StringType(), _spark_type(kind["values"], topic))
        case "enum":
            return T.StringType()
        case "fixed":
            return T.BinaryType()
    return _spark_type(kind["type"], topic)


def _the_one_beside_null(kinds: Iterable[Any], topic: str) -> Any:
    others = [kind for kind in kinds if kind != "null"]
    if len(others) != 1:
        raise PipelineError(
            f"The Avro schema of topic '{topic}' has a union of {len(others)} types; Spark's columns have one, or null."
        )
    return others[0]
