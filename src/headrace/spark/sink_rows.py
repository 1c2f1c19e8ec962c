"""One task's rows on their way: Arrow batches in, each row placed in its partition, record batches out.

Rows are gathered until a few megabytes have come together, so that each partition gets batches worth sending, and
never more than that are held.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headrace.link.cluster import Cluster, TopicMetadata
from headrace.spark.sink_options import WriteOptions
from headrace.spark.sink_partitions import Spread, place
from headrace.spark.sink_producer import SinkProducer
from headrace.spark.sink_records import (
    Destination,
    Numbers,
    Rows,
    as_binary,
    as_indices,
    encode,
    numbers_of,
    valid,
)
from headrace.wire.errors import ErrorCode, KafkaError
from headrace.wire.messages.metadata import MetadataRequest, MetadataRequestTopic

GATHERED_BYTES = 4 * 1024 * 1024

_CREATION_PAUSES = (0.1, 0.2, 0.4, 0.8, 1.6)


class RowWriter:
    def __init__(self, cluster: Cluster, options: WriteOptions, producer: SinkProducer) -> None:
        self._cluster = cluster
        self._options = options
        self._producer = producer
        self._spread = Spread(options.batch_bytes)
        self._topics: dict[str, TopicMetadata] = {}
        self.rows = 0

    def write(self, batches: Iterable[pa.RecordBatch]) -> None:
        """Send all rows and wait until the brokers have them."""
        for table in _gathered(batches, self._options.columns):
            self._send(table)
            self.rows += table.num_rows
        self._producer.flush()

    def _send(self, batch: pa.RecordBatch) -> None:
        columns = dict(zip(batch.schema.names, batch.columns, strict=True))
        timestamp = columns.get("timestamp")
        now = time.time_ns() // 1_000_000
        rows = Rows(
            value=as_binary(columns["value"]),
            key=as_binary(columns["key"]) if "key" in columns else None,
            headers=columns.get("headers"),
            timestamp=None if timestamp is None else _milliseconds(timestamp, now),
        )
        sizes = rows.sizes()
        order, destinations = self._place(rows, sizes, columns.get("topic"), columns.get("partition"))
        options = self._options
        drafts = encode(
            rows, sizes, order, destinations, options.batch_bytes, options.codec, options.level, now
        )
        self._producer.send(drafts)

    def _place(
        self, rows: Rows, sizes: Numbers, topics: pa.Array | None, named: pa.Array | None
    ) -> tuple[Numbers | None, list[Destination]]:
        """The order in which rows of one partition lie together, and where each such run goes."""
        names, code = self._names(topics, len(rows))
        slots = np.empty(len(rows), np.int64)
        places: list[tuple[str, int]] = []
        for index, name in enumerate(names):
            here = None if code is None else np.flatnonzero(code == index)
            where = self._place_in(name, rows, sizes, named, here)
            if here is None:
                slots = where + len(places)
            else:
                slots[here] = where + len(places)
            places += [(name, partition) for partition in range(len(self._topic(name).leaders))]
        # Sixteen bits are sorted by counting, which is faster, and there are seldom more partitions than that.
        narrow: Numbers = slots.astype(np.int16) if len(places) < 2**15 else slots
        order: Numbers | None = None
        if np.any(narrow[1:] < narrow[:-1]):
            order = np.argsort(narrow, kind="stable")
            narrow = narrow[order]
        used, starts = np.unique(narrow, return_index=True)
        ends = [*starts[1:].tolist(), len(rows)]
        return order, [
            Destination(places[slot][0], places[slot][1], start, end)
            for slot, start, end in zip(used.tolist(), starts.tolist(), ends, strict=True)
        ]

    def _place_in(
        self, name: str, rows: Rows, sizes: Numbers, named: pa.Array | None, here: Numbers | None
    ) -> Numbers:
        topic = self._topic(name)
        key = rows.key
        if here is not None:
            chosen = as_indices(here)
            key = None if key is None else key.take(chosen)
            named = None if named is None else named.take(chosen)
            sizes = sizes[here]
        available = [partition for partition in topic.partitions if topic.leaders[partition] >= 0]
        return place(name, topic.partitions, available or topic.partitions, key, named, sizes, self._spread)

    def _names(self, topics: pa.Array | None, count: int) -> tuple[list[str], Numbers | None]:
        """The topics of these rows and which of them each row goes to."""
        if self._options.topic is not None:
            return [self._options.topic], None
        assert topics is not None
        if topics.null_count:
            raise KafkaError(
                ErrorCode.INVALID_TOPIC_EXCEPTION,
                "null topic present in the data. Use the topic option for setting a default topic.",
            )
        coded = pc.dictionary_encode(topics)
        names = coded.dictionary.to_pylist()
        if len(names) == 1:
            return names, None
        return names, numbers_of(coded.indices, -1)

    def _topic(self, name: str) -> TopicMetadata:
        """Asked anew by every task, because partitions may have been added."""
        found = self._topics.get(name)
        if found is None:
            found = self._cluster.topics([name]).get(name) or self._create(name)
            self._topics[name] = found
        return found

    def _create(self, name: str) -> TopicMetadata:
        """Where brokers create topics on first use, this is it. Some answer before they have made it."""
        request = MetadataRequest([MetadataRequestTopic(name=name)], allow_auto_topic_creation=True)
        for pause in _CREATION_PAUSES:
            self._cluster.retry(
                f"ask for the topic {name!r}",
                lambda: self._cluster.any_broker().call(request),
            )
            found = self._cluster.topics([name]).get(name)
            if found is not None:
                return found
            time.sleep(pause)
        return self._cluster.topic(name)


def _gathered(batches: Iterable[pa.RecordBatch], columns: tuple[str, ...]) -> Iterator[pa.RecordBatch]:
    """The same rows, only the columns that are written, in pieces of about GATHERED_BYTES."""
    waiting: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        chosen = batch.select(list(columns))
        if chosen.num_rows == 0:
            continue
        waiting.append(chosen)
        size += chosen.nbytes
        if size >= GATHERED_BYTES:
            yield from _pieces(waiting, size)
            waiting, size = [], 0
    if waiting:
        yield from _pieces(waiting, size)


def _pieces(batches: list[pa.RecordBatch], size: int) -> Iterator[pa.RecordBatch]:
    whole = batches[0] if len(batches) == 1 else pa.concat_batches(batches)
    rows = max(1, whole.num_rows * 2 * GATHERED_BYTES // max(size, 1))
    for start in range(0, whole.num_rows, rows):
        yield whole.slice(start, rows)


def _milliseconds(column: pa.Array, now: int) -> Numbers:
    """A timestamp column as Kafka writes it; rows without one carry the time of writing."""
    stamps = numbers_of(column.cast(pa.timestamp("us", column.type.tz)), 0)
    return np.where(valid(column), stamps // 1000, now)
