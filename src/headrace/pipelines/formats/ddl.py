"""A schema as users write it: a DDL string or a StructType."""

from __future__ import annotations

from pyspark.errors import PySparkException
from pyspark.sql.types import StructType

from headrace.pipelines.errors import PipelineError


def struct_of(schema: object, topic: str) -> StructType | None:
    if schema is None or isinstance(schema, StructType):
        return schema
    if not isinstance(schema, str):
        raise PipelineError(
            f"The schema of '{topic}' is a {type(schema).__name__}; give a DDL string such as "
            "'id BIGINT, at TIMESTAMP', or a StructType."
        )
    try:
        parsed = StructType.fromDDL(schema)
    except PySparkException as error:
        from headrace.pipelines.spark_errors import sentence

        raise PipelineError(
            f"The schema of '{topic}' is not valid ({sentence(error).rstrip('.')}); it reads like 'id BIGINT, at TIMESTAMP'."
        ) from error
    if not isinstance(parsed, StructType):
        raise PipelineError(
            f"The schema of '{topic}' has no columns; it reads like 'id BIGINT, at TIMESTAMP'."
        )
    return parsed
