"""Streaming reads: which offsets the next micro-batch covers, decided on the driver; tasks read them as a batch does.

Offsets have the official connector's form, {"topic": {"0": 42}}, so a checkpoint can be read by anyone.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    ReadMinRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from headrace.spark.cluster import Cluster
from headrace.spark.offsets import Offsets, TopicPartition
from headrace.spark.options import ReadOptions
from headrace.spark.plan import Range, divide
from headrace.spark.read import read_range, report_data_loss
from headrace.spark.subscription import Partitions, Subscription

if TYPE_CHECKING:
    import pyarrow as pa

Position = dict[str, dict[str, int]]


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    def __init__(self, options: ReadOptions, schema: StructType) -> None:
        self._options = options
        self._schema = schema
        self._driver: _Driver | None = None

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, "_driver": None}  # connections stay on the driver

    @property
    def driver(self) -> _Driver:
        if self._driver is None:
            self._driver = _Driver(self._options)
        return self._driver

    def initialOffset(self) -> Position:
        return _written(self.driver.initial())

    def getDefaultReadLimit(self) -> ReadLimit:
        options = self._options
        if options.min_offsets is not None:
            return ReadMinRows(options.min_offsets)
        if options.max_offsets is not None:
            return ReadMaxRows(options.max_offsets)
        return ReadAllAvailable()

    def latestOffset(self, start: Position, limit: ReadLimit) -> Position:
        return _written(self.driver.next(_read(start), limit)) or start

    def reportLatestOffset(self) -> Position | None:
        return _written(self.driver.latest) or None

    def prepareForTriggerAvailableNow(self) -> None:
        self.driver.stop_at_the_end_of_now()

    def partitions(self, start: Position, end: Position) -> list[InputPartition]:
        ranges = self.driver.ranges(_read(start), _read(end))
        return list(divide(ranges, self._options.min_partitions, self._options.max_records))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, Range)
        return read_range(self._options, partition, to_arrow_schema(self._schema, timezone="UTC"))

    def stop(self) -> None:
        if self._driver is not None:
            self._driver.close()


class _Driver:
    """The state of one running query: what was seen last, and what AvailableNow stops at."""

    def __init__(self, options: ReadOptions) -> None:
        self._options = options
        self._cluster = Cluster(options.kafka)
        self._subscription = Subscription(self._cluster, options)
        self._ids: Partitions = {}
        self._target: Offsets | None = None
        self._available_now = False
        self._last_trigger = 0.0
        self.latest: Offsets = {}

    def close(self) -> None:
        self._cluster.close()

    def initial(self) -> Offsets:
        partitions = self._subscription.must_exist()
        return self._subscription.resolve(self._options.start, partitions, starting=True)

    def stop_at_the_end_of_now(self) -> None:
        self._available_now = True

    def next(self, start: Offsets, limit: ReadLimit) -> Offsets:
        """Where the next micro-batch ends; `start` itself when it is to wait."""
        if self._target is None or not self._available_now:
            self._target = self._look()
        self.latest = self._target
        if isinstance(limit, ReadAllAvailable):
            return self.latest
        known = {**self._subscription.earliest(self.latest.keys() - start.keys()), **start}
        if isinstance(limit, ReadMinRows) and self._wait_for_more(known, limit.min_rows):
            return start
        maximum = limit.max_rows if isinstance(limit, ReadMaxRows) else self._options.max_offsets
        return self.latest if maximum is None else share_out(known, self.latest, maximum)

    def _look(self) -> Offsets:
        self._ids = self._subscription.partitions()
        return self._subscription.latest(self._ids)

    def _wait_for_more(self, start: Offsets, minimum: int) -> bool:
        """Whether fewer than `minimum` records are there and maxTriggerDelay has not passed since the last batch."""
        if self._available_now:
            return False
        now = time.monotonic()
        there = sum(max(0, end - start[partition]) for partition, end in self.latest.items())
        if there < minimum and now - self._last_trigger < self._options.max_delay:
            return True
        self._last_trigger = now
        return False

    def ranges(self, start: Offsets, end: Offsets) -> list[Range]:
        options = self._options
        if not end.keys() <= self._ids.keys():
            self._ids = self._subscription.partitions()
        added = end.keys() - start.keys()
        first = self._subscription.earliest(added & self._ids.keys())
        for partition, offset in sorted(first.items()):
            if offset:
                report_data_loss(options, f"Added partition {partition} starts from {offset} instead of 0.")
        gone = (start.keys() - end.keys()) | (end.keys() - self._ids.keys())
        if gone:
            report_data_loss(options, f"Partitions {', '.join(map(str, sorted(gone)))} have been deleted.")
        ranges = []
        for partition in sorted(end.keys() & self._ids.keys()):
            low, high = start.get(partition, first.get(partition, 0)), end[partition]
            if high < low:
                report_data_loss(
                    options,
                    f"Partition {partition} offset was changed from {low} to {high}.",
                )
            ranges.append(Range(*partition, low, high, self._ids[partition]))
        return ranges


def share_out(start: Offsets, end: Offsets, limit: int) -> Offsets:
    """Ends such that about `limit` records are read, each partition giving in proportion, none starved."""
    sizes = {partition: max(0, last - start[partition]) for partition, last in end.items()}
    total = sum(sizes.values())
    if total <= limit:
        return dict(end)
    return {
        partition: min(last, start[partition] + max(1, limit * sizes[partition] // total))
        if sizes[partition]
        else last
        for partition, last in end.items()
    }


def _read(position: Mapping[str, Mapping[str, int]]) -> Offsets:
    return {
        TopicPartition(topic, int(number)): offset
        for topic, partitions in position.items()
        for number, offset in partitions.items()
    }


def _written(offsets: Offsets) -> Position:
    position: Position = {}
    for partition in sorted(offsets):
        position.setdefault(partition.topic, {})[str(partition.partition)] = offsets[partition]
    return position
