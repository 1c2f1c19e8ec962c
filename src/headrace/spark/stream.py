"""Streaming reads as Spark asks for them; what each micro-batch covers is decided in `query.py`, on the driver.

Offsets have the official connector's form, {"topic": {"0": 42}}, with the topic's id under "topic@id", where brokers
have ids. The first micro-batch also says where it began, under "topic@start": a query that stops before its first
batch is done must find the same beginning again, though "latest" is somewhere else by then.
"""

from __future__ import annotations

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

from headrace.spark.offsets import Offsets, TopicPartition
from headrace.spark.options import ReadOptions
from headrace.spark.plan import Range, divide
from headrace.spark.query import StreamQuery
from headrace.spark.read import read_range
from headrace.spark.topic_ids import Ids, differ

if TYPE_CHECKING:
    import pyarrow as pa

Position = dict[str, dict[str, int] | str]

_START, _ID = "@start", "@id"
"""No topic's name can hold an @."""


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    def __init__(self, options: ReadOptions, schema: StructType) -> None:
        self._options = options
        self._schema = schema
        self._initial: Offsets | None = None
        self._running: StreamQuery | None = None

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, "_running": None}  # connections stay on the driver

    @property
    def _query(self) -> StreamQuery:
        if self._running is None:
            self._running = StreamQuery(self._options)
        return self._running

    def initialOffset(self) -> Position:
        self._initial = self._query.initial()
        return written(self._initial) | written_ids(self._query.ids, self._initial)

    def getDefaultReadLimit(self) -> ReadLimit:
        options = self._options
        if options.min_offsets is not None:
            return ReadMinRows(options.min_offsets)
        if options.max_offsets is not None:
            return ReadMaxRows(options.max_offsets)
        return ReadAllAvailable()

    def latestOffset(self, start: Position, limit: ReadLimit) -> Position:
        begin = read_position(start)
        minimum = limit.min_rows if isinstance(limit, ReadMinRows) else None
        maximum = limit.max_rows if isinstance(limit, ReadMaxRows) else self._options.max_offsets
        maximum = None if isinstance(limit, ReadAllAvailable) else maximum
        end = self._query.next(begin, read_ids(start), minimum, maximum)
        if begin != self._initial:
            return start if end is None else written(end) | written_ids(self._query.ids, end)
        # Even when there is nothing yet: Spark runs a first batch all the same, and asks again where it begins.
        position = start if end is None else written(end) | written_ids(self._query.ids, end)
        # Of a topic that was made again before anything was read, everything is read.
        same = {p: at for p, at in begin.items() if not differ(read_ids(start), self._query.ids, p.topic)}
        return position | (written(same, _START) or {_START: {}})

    def reportLatestOffset(self) -> Position | None:
        return written(self._query.latest) or None

    def prepareForTriggerAvailableNow(self) -> None:
        self._query.stop_at_what_is_there_now()

    def partitions(self, start: Position, end: Position) -> list[InputPartition]:
        if start == end:
            return []
        begin, ids = read_position(start), read_ids(start)
        if _says_where_it_began(end):
            begin, ids = read_position(end, _START), read_ids(end)
        ranges = self._query.ranges(begin, read_position(end), ids, read_ids(end))
        return list(divide(ranges, self._options.min_partitions, self._options.max_records))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, Range)
        return read_range(self._options, partition, to_arrow_schema(self._schema, timezone="UTC"))

    def stop(self) -> None:
        if self._running is not None:
            self._running.close()


def _says_where_it_began(position: Position) -> bool:
    return any(name.endswith(_START) for name in position)


def read_position(position: Mapping[str, Mapping[str, int] | str], suffix: str = "") -> Offsets:
    """The offsets in a position that Spark kept; with a suffix, those written with it."""
    return {
        TopicPartition(topic.removesuffix(suffix), int(number)): offset
        for topic, partitions in position.items()
        if not isinstance(partitions, str) and (topic.endswith(suffix) if suffix else "@" not in topic)
        for number, offset in partitions.items()
    }


def written(offsets: Offsets, suffix: str = "") -> Position:
    position: dict[str, dict[str, int]] = {}
    for partition in sorted(offsets):
        position.setdefault(partition.topic + suffix, {})[str(partition.partition)] = offsets[partition]
    return dict(position)


def read_ids(position: Mapping[str, Mapping[str, int] | str]) -> Ids:
    return {name.removesuffix(_ID): value for name, value in position.items() if isinstance(value, str)}


def written_ids(ids: Ids, offsets: Offsets) -> Position:
    """The ids of the topics that have offsets."""
    topics = {partition.topic for partition in offsets}
    return {topic + _ID: ids[topic] for topic in sorted(topics & ids.keys())}
