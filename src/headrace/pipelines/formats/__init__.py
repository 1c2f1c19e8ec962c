"""What the bytes of a topic mean: one module per format, each turning values into columns and back.

A format decodes to a struct of the decoded ``value`` and an ``error`` that is NULL unless the bytes could not be
understood; it never fails a query.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, Protocol, get_args

from pyspark.sql import Column
from pyspark.sql.types import StructType

from headrace.pipelines.errors import PipelineError

FormatName = Literal["json", "avro", "protobuf", "string", "bytes"]


class Format(Protocol):
    @property
    def schema(self) -> StructType | None:
        """The columns of a value; None when only the flow that writes the topic knows them."""

    def decode(self, value: Column, schema: StructType) -> Column:
        """A struct of ``value`` (of the schema) and ``error`` from the bytes."""

    def encode(self, row: Column, schema: Callable[[], StructType]) -> Column:
        """The bytes of a struct; asking for its schema costs an analysis."""


def format_named(name: str, schema: object, topic: str) -> Format:
    """The format of a topic, with whatever describes its values: Spark's DDL, an Avro schema, a Protobuf class."""
    if name == "json":
        from headrace.pipelines.formats.json import Json

        return Json(schema, topic)
    if name == "avro":
        from headrace.pipelines.formats.avro import Avro

        return Avro(schema, topic)
    if name == "protobuf":
        from headrace.pipelines.formats.protobuf import Protobuf

        return Protobuf(schema, topic)
    if name in ("string", "bytes"):
        from headrace.pipelines.formats.plain import Plain

        return Plain(name, schema, topic)
    known = ", ".join(get_args(FormatName))
    raise PipelineError(f"Topic '{topic}' has format='{name}', which is none of {known}.")
