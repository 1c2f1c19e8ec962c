"""Polled sources as a Spark data source: the driver asks how far to read, tasks read and encode records.

Records leave as topic, key, value and headers, so that a row that cannot be read goes to the dead letters in
the same transaction as the good rows.
"""

from __future__ import annotations

import base64
import logging
import pickle
from collections.abc import Iterator, MutableMapping, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from headrace.client.dead_letters import REASON, default_name
from headrace.connectors.base import BadRow, Offset, PolledSource, Raw, Row
from headrace.connectors.errors import ConnectorError, Unavailable
from headrace.connectors.topic import TopicOut, key_of, to_json
from headrace.connectors.waiting import Waiting

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

log = logging.getLogger("headrace.connectors")
FORMAT = "headrace-connector"
_SECRET = (
    "connector.secret"  # Spark hides options with this word from its plans, and settings may hold passwords
)
_DDL = "topic STRING, key BINARY, value BINARY, headers ARRAY<STRUCT<key: STRING, value: BINARY>>"
_HEADER = pa.struct([("key", pa.string()), ("value", pa.binary())])
_ARROW = pa.schema(
    [("topic", pa.string()), ("key", pa.binary()), ("value", pa.binary()), ("headers", pa.list_(_HEADER))]
)
_ROWS, _BYTES = 5_000, 4 << 20


def stream(
    spark: SparkSession, source: PolledSource, topic: TopicOut, start: Offset, waiting: Waiting, every: float
) -> DataFrame:
    """A streaming DataFrame of encoded records; ``start`` is where the source began when it was first run, ``every`` the
    seconds after which it is asked again."""
    spark.dataSource.register(PolledDataSource)
    packed = base64.b64encode(pickle.dumps((source, topic, start, waiting, every))).decode()
    return spark.readStream.format(FORMAT).option(_SECRET, packed).load()


class PolledDataSource(DataSource):
    def __init__(self, options: MutableMapping[str, str]) -> None:
        super().__init__(options)
        self._packed = options[_SECRET]

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> str:
        return _DDL

    def streamReader(self, schema: StructType) -> PolledReader:
        return PolledReader(*pickle.loads(base64.b64decode(self._packed)))


class Stretch(InputPartition):
    def __init__(self, after: Offset, until: Offset) -> None:
        super().__init__(None)
        self.after = after
        self.until = until


class PolledReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    def __init__(
        self, source: PolledSource, topic: TopicOut, start: Offset, waiting: Waiting, every: float
    ) -> None:
        self._source = source
        self._waiting = waiting
        self._every = every
        self._topic = topic
        self._start = start
        self._until_now = False

    def initialOffset(self) -> Offset:
        return self._start

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:
        try:
            latest = self._source.latest(start)
        except Unavailable as error:
            if self._until_now:
                raise
            log.warning("%s: %s; looking again at the next turn", self._source.name, error)
            self._waiting.begin(str(error), self._every)
            return start
        self._waiting.end()
        return latest

    def prepareForTriggerAvailableNow(self) -> None:
        self._until_now = True
        self._source.until_now()

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        return (
            [] if start == end else [Stretch(after, until) for after, until in self._source.split(start, end)]
        )

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, Stretch)
        batch: list[_Encoded] = []
        size = 0
        for row in self._source.rows(partition.after, partition.until):
            encoded = self._encode(row)
            if encoded is None:
                continue
            batch.append(encoded)
            size += len(encoded[2])
            if len(batch) >= _ROWS or size >= _BYTES:
                yield _arrow(batch)
                batch, size = [], 0
        if batch:
            yield _arrow(batch)

    def _encode(self, row: Row) -> _Encoded | None:
        topic = self._topic
        if isinstance(row, Raw):
            return topic.name, key_of(row.fields, topic.key), row.value, None
        if not isinstance(row, BadRow):
            return topic.name, key_of(row, topic.key), to_json(row), None
        if topic.on_error == "fail":
            raise ConnectorError(
                f"{self._source.name} met a row that cannot be read: {row.reason}; fix it, or set topic.on_error to "
                '"dead-letter" or "drop"'
            )
        if topic.on_error == "drop":
            return None
        return default_name(topic.name), None, row.raw, [{"key": REASON, "value": row.reason.encode()}]


_Encoded = tuple[str, bytes | None, bytes, list[dict[str, str | bytes]] | None]


def _arrow(rows: list[_Encoded]) -> pa.RecordBatch:
    columns = [
        pa.array(column, kind) for column, kind in zip(zip(*rows, strict=True), _ARROW.types, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=_ARROW)
