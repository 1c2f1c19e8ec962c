"""Batch reads: the ranges are fixed when the query is planned, so every look at the data frame sees the same rows."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceReader, Filter, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from headrace.link.cluster import shared_cluster
from headrace.link.settings import SettingsError
from headrace.spark.filters import Bounds
from headrace.spark.offsets import Offsets
from headrace.spark.options import ReadOptions
from headrace.spark.plan import Range, divide
from headrace.spark.read import read_range
from headrace.spark.subscription import Subscription

if TYPE_CHECKING:
    import pyarrow as pa

_PUSHDOWN = "pyspark.sql.worker.data_source_pushdown_filters"


def batch_reader(options: ReadOptions, schema: StructType) -> BatchReader:
    """The reader for this query. Spark refuses one that takes filters unless it is about to push some down
    (spark.sql.python.filterPushdown.enabled), which it does in a worker of its own: that is how to tell.
    """
    main = getattr(sys.modules.get("__main__"), "__spec__", None)
    pushes = _PUSHDOWN in sys.modules or getattr(main, "name", None) == _PUSHDOWN
    return FilteringBatchReader(options, schema) if pushes else BatchReader(options, schema)


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
        for partition in sorted(partitions):
            if start[partition] > end[partition]:
                raise SettingsError(
                    f"The resolved start offset {start[partition]} is greater than the resolved end offset "
                    f"{end[partition]} for topic {partition.topic} partition {partition.partition}."
                )
        self.narrow(subscription, start, end)
        return [
            Range(*partition, start[partition], end[partition], partitions[partition])
            for partition in sorted(partitions)
        ]

    def narrow(self, subscription: Subscription, start: Offsets, end: Offsets) -> None:
        """Nothing is known of the query's filters here."""

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if not isinstance(partition, Range):
            return iter(())  # Spark's stand-in for "no partitions": there is nothing to read
        return read_range(self._options, partition, to_arrow_schema(self._schema, timezone="UTC"))


class FilteringBatchReader(BatchReader):
    """Looks only where rows can be that pass the query's filters."""

    _bounds = Bounds()

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        self._bounds = Bounds.of(filters)
        return filters

    def narrow(self, subscription: Subscription, start: Offsets, end: Offsets) -> None:
        bounds = self._bounds
        for partition in start:
            start[partition] = max(start[partition], bounds.first_offset)
            if bounds.end_offset is not None:
                end[partition] = min(end[partition], bounds.end_offset)
            if not bounds.allows(partition):
                end[partition] = start[partition]
        if bounds.first_timestamp is not None:
            left = [partition for partition in start if start[partition] < end[partition]]
            for partition, offset in subscription.ask(dict.fromkeys(left, bounds.first_timestamp)).items():
                start[partition] = max(start[partition], offset) if offset >= 0 else end[partition]
