"""Which writer Spark gets: for a batch, for a batch inside `foreachBatch`, or for a stream."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql.datasource import DataSourceArrowWriter
from pyspark.sql.types import StructType

from headrace.link.settings import SettingsError
from headrace.spark.sink import BatchWriter, StreamWriter
from headrace.spark.sink_foreach import ForeachBatchWriter
from headrace.spark.sink_options import WriteOptions


def batch_writer(options: Mapping[str, str], schema: StructType, overwrite: bool) -> DataSourceArrowWriter:
    if overwrite:
        raise SettingsError(
            "Save mode Overwrite not allowed for Kafka: a topic is only ever appended to. Use mode('append')."
        )
    if str({name.lower(): value for name, value in options.items()}.get("exactlyonce")).lower() == "true":
        return ForeachBatchWriter(stream_writer(options, schema, overwrite, None))
    return BatchWriter(WriteOptions.of(options, schema, streaming=False))


def stream_writer(
    options: Mapping[str, str], schema: StructType, overwrite: bool, instance: str | None
) -> StreamWriter:
    """`overwrite` is Spark's word for output mode complete: each batch appends the whole result.

    `instance` is the same for all commits and aborts of one start of a query, and for nothing else; None where there is
    a new one for every batch.
    """
    return StreamWriter(WriteOptions.of(options, schema, streaming=True), instance)
