"""Batch reads: the ranges are fixed when the query is planned, so every look at the data frame sees the same rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from headrace.spark.cluster import shared_cluster
from headrace.spark.options import ReadOptions
from headrace.spark.plan import Range, divide
from headrace.spark.read import read_range
from headrace.spark.settings import SettingsError
from headrace.spark.subscription import Subscription

if TYPE_CHECKING:
    import pyarrow as pa


class BatchReader(DataSourceReader):
    def __init__(self, options: ReadOptions, schema: StructType) -> None:
        self._options = options
        self._schema = schema

    def partitions(self) -> list[InputPartition]:
        return list(divide(self.ranges(), self._options.min_partitions, self._options.max_records))

    def ranges(self) -> list[Range]:
        options = self._options
        subscription = Subscription(shared_cluster(options.kafka), options)
        partitions = subscription.must_exist()
        start = subscription.resolve(options.start, partitions, starting=True)
        end = subscription.resolve(options.end, partitions, starting=False)
        ranges = []
        for partition in sorted(partitions):
            first, last = start[partition], end[partition]
            if first > last:
                raise SettingsError(
                    f"The resolved start offset {first} is greater than the resolved end offset {last} for topic "
                    f"{partition.topic} partition {partition.partition}."
                )
            ranges.append(Range(*partition, first, last, partitions[partition]))
        return ranges

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if not isinstance(partition, Range):
            return iter(())  # Spark's stand-in for "no partitions": there is nothing to read
        return read_range(self._options, partition, to_arrow_schema(self._schema, timezone="UTC"))
