"""Values that are one text or just bytes, in a column named ``value``."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import BinaryType, StringType, StructField, StructType

from headrace.pipelines.errors import PipelineError


class Plain:
    def __init__(self, name: str, schema: object, topic: str) -> None:
        if schema is not None:
            raise PipelineError(
                f"Topic '{topic}' is of format {name}, whose only column is 'value': leave the schema out."
            )
        self._text = name == "string"
        self._schema = StructType([StructField("value", StringType() if self._text else BinaryType())])

    @property
    def schema(self) -> StructType:
        return self._schema

    def decode(self, value: Column, schema: StructType) -> Column:
        error = F.when(value.isNull(), F.lit("the value is null"))
        if self._text:
            error = error.when(
                ~F.is_valid_utf8(value.cast("string")), F.lit("the value is not text in UTF-8")
            )
            value = value.cast("string")
        return F.struct(F.struct(value.alias("value")).alias("value"), error.alias("error"))

    def encode(self, row: Column, schema: Callable[[], StructType]) -> Column:
        return row.getField("value").cast("binary")
