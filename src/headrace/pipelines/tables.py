"""The tables of a project, streaming tables and materialized views, kept under its storage.

They are declared anew in Spark's catalog for every run, over the same directories, so that a project needs no
metastore and still finds its tables again.
"""

from __future__ import annotations

from pyspark.pipelines.output import Table as TableOutput
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from headrace.pipelines.formats.ddl import struct_of


class Tables:
    def __init__(self, spark: SparkSession, storage: str) -> None:
        self._spark = spark
        self._storage = storage

    def location(self, output: TableOutput) -> str:
        return f"{self._storage}/tables/{output.name}"

    def declare(self, output: TableOutput, found: StructType) -> None:
        """Have the table in the catalog, with its declared columns or those of the flow that fills it."""
        schema = struct_of(output.schema, output.name) or found
        columns = ", ".join(f"{_quoted(each.name)} {each.dataType.simpleString()}" for each in schema.fields)
        partitions = ", ".join(_quoted(name) for name in output.partition_cols or [])
        location = self.location(output).replace("'", "\\'")
        self._spark.sql(
            f"CREATE TABLE IF NOT EXISTS {quoted_name(output.name)} ({columns}) USING {output.format or 'parquet'}"
            + (f" PARTITIONED BY ({partitions})" if partitions else "")
            + f" LOCATION '{location}'"
        )


def quoted_name(name: str) -> str:
    return ".".join(_quoted(part) for part in name.replace("`", "").split("."))


def _quoted(name: str) -> str:
    escaped = name.replace("`", "``")
    return f"`{escaped}`"
