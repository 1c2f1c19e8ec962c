"""JSON objects, one per record. Unknown fields are ignored, absent ones are NULL, a wrong type is an error."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

from headrace.pipelines.formats.ddl import struct_of

_BAD = "_malformed"


class Json:
    def __init__(self, schema: object, topic: str) -> None:
        self._schema = struct_of(schema, topic)

    @property
    def schema(self) -> StructType | None:
        return self._schema

    def decode(self, value: Column, schema: StructType) -> Column:
        wide = StructType([*schema.fields, StructField(_BAD, StringType())])
        text = value.cast("string")
        parsed = F.from_json(text, wide, {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": _BAD})
        fields = [parsed.getField(name).alias(name) for name in schema.names]
        is_object = F.ltrim(text).startswith("{")
        error = (
            F.when(value.isNull(), F.lit("the value is null"))
            .when(~is_object, F.lit("the value is not a JSON object"))
            .when(
                parsed.isNull() | parsed.getField(_BAD).isNotNull(),
                F.lit(f"the value is not JSON of {schema.simpleString()}"),
            )
        )
        return F.struct(F.struct(*fields).alias("value"), error.alias("error"))

    def encode(self, row: Column, schema: Callable[[], StructType]) -> Column:
        return F.to_json(row).cast("binary")
