"""From a batch of records to a sink: chunks made in tasks, one topic partition at a time and in order.

What cannot be read, and what the sink refuses for good, fails the connector, is dropped, or becomes a dead letter.
"""

from __future__ import annotations

import logging
import pickle
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from headrace.client.dead_letters import DeadLetters
from headrace.client.record import Record
from headrace.connectors.base import Chunk, Sink
from headrace.connectors.errors import ConnectorError, Rejected, Unavailable
from headrace.connectors.topic import TOPIC_ID, UNREADABLE, RunSettings, TopicIn, connection
from headrace.connectors.waiting import Waiting

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

log = logging.getLogger("headrace.connectors")
_FIRST_DELAY, _LONGEST_DELAY = 0.2, 30.0
_RESULT = pa.schema(
    [("rows", pa.int64()), ("written", pa.binary()), ("topic", pa.string()), ("topic_id", pa.string())]
)


def deliver(
    batch: DataFrame,
    number: int,
    sink: Sink,
    topic: TopicIn,
    run: RunSettings,
    seen: Callable[[str, str], None],
    waiting: Waiting,
) -> None:
    """Hand a batch of decoded records to the sink; ``seen`` gets the topics they came from and their ids."""
    sink.begin(number)
    task = DeliveryTask(sink, topic, run, waiting)
    done = batch.mapInArrow(task, "rows BIGINT, written BINARY, topic STRING, topic_id STRING").collect()
    for name, identifier in {(row["topic"], row["topic_id"]) for row in done if row["topic_id"] is not None}:
        seen(name, identifier)
    sink.commit(number, [pickle.loads(row["written"]) for row in done if row["written"] is not None])


class DeliveryTask:
    """Runs where Spark runs tasks; each gets the records of one topic partition."""

    def __init__(self, sink: Sink, topic: TopicIn, run: RunSettings, waiting: Waiting) -> None:
        self._sink = sink
        self._waiting = waiting
        self._topic = topic
        self._retry_for = run.retry_for
        self._is_open = False

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        failures, rows, written = Failures(self._sink.name, self._topic), 0, None
        last: Chunk | None = None
        try:
            for batch in batches:
                rows += batch.num_rows
                for chunk, unreadable in _chunks(batch):
                    self._write(chunk, unreadable, failures)
                    last = chunk
            if self._is_open:
                written = self._sink.finish()
        finally:
            self._waiting.end()
            self._close()
            failures.close()
        packed = None if written is None else pickle.dumps(written)
        origin = {} if last is None else {"topic": last.topic, "topic_id": last.topic_id}
        yield pa.RecordBatch.from_pylist([{"rows": rows, "written": packed, **origin}], schema=_RESULT)

    def _write(self, chunk: Chunk, unreadable: pa.Array, failures: Failures) -> None:
        if unreadable.true_count:
            for row in chunk.rows.filter(unreadable).to_pylist():
                failures.handle(row, ConnectorError("the value is not what topic.schema says"))
            chunk = _keep(chunk, pc.invert(unreadable))
        while chunk.rows.num_rows:
            try:
                self._insist(chunk)
                return
            except Rejected as rejected:
                these = pc.is_in(chunk.rows["_offset"], pa.array(list(rejected.reasons), pa.int64()))
                if not these.true_count:
                    raise ConnectorError(f"{self._sink.name} rejected records it was not given") from rejected
                for row in chunk.rows.filter(these).to_pylist():
                    failures.handle(row, ConnectorError(rejected.reasons[row["_offset"]]))
                chunk = _keep(chunk, pc.invert(these))

    def _insist(self, chunk: Chunk) -> None:
        """Write although the target is away for a while."""
        deadline, delay = time.monotonic() + self._retry_for, _FIRST_DELAY
        while True:
            try:
                if not self._is_open:
                    self._sink.open()
                    self._is_open = True
                self._sink.write(chunk)
                self._waiting.end()
                return
            except Unavailable as error:
                self._close()
                wait = min(error.retry_after or delay, max(0.0, deadline - time.monotonic()))
                if not wait:
                    raise ConnectorError(
                        f"{error}; given up after {self._retry_for:g} s (run.retry_for)"
                    ) from error
                log.warning("%s: %s; trying again in %.1f s", self._sink.name, error, wait)
                self._waiting.begin(str(error), wait)
                time.sleep(wait)
                delay = min(delay * 2, _LONGEST_DELAY)

    def _close(self) -> None:
        if self._is_open:
            self._is_open = False
            self._sink.close()


class Failures:
    """Records that cannot be delivered, dealt with as ``topic.on_error`` says."""

    def __init__(self, connector: str, topic: TopicIn) -> None:
        self._connector = connector
        self._topic = topic
        self._letters: DeadLetters | None = None

    def handle(self, row: dict[str, Any], error: ConnectorError) -> None:
        if self._topic.on_error == "drop":
            return
        record = _record(row)
        if self._topic.on_error == "fail":
            where = f"{record.topic}-{record.partition} at offset {record.offset}"
            raise ConnectorError(
                f"{self._connector} cannot deliver the record in {where}: {error}; fix the cause, or set "
                'topic.on_error to "dead-letter" or "drop"'
            )
        if self._letters is None:
            self._letters = DeadLetters(connection(self._topic))
        self._letters.send(record, error, 1).result()

    def close(self) -> None:
        if self._letters is not None:
            self._letters.close()


def _chunks(batch: pa.RecordBatch) -> Iterator[tuple[Chunk, pa.Array]]:
    """Cut where topic or partition change; a task that reads one topic partition has nothing to cut."""
    if not batch.num_rows:
        return
    unreadable = batch.column(batch.schema.get_field_index(UNREADABLE))
    ids = batch.column(batch.schema.get_field_index(TOPIC_ID))
    rows = batch.drop_columns([UNREADABLE, TOPIC_ID])
    topics, partitions = rows["_topic"], rows["_partition"]
    start = 0
    for end in [*_borders(topics, partitions), batch.num_rows]:
        part = rows.slice(start, end - start)
        first, last = part["_offset"][0].as_py(), part["_offset"][-1].as_py()
        yield (
            Chunk(
                topics[start].as_py(), partitions[start].as_py(), first, last + 1, part, ids[start].as_py()
            ),
            unreadable.slice(start, end - start),
        )
        start = end


def _borders(*columns: pa.Array) -> list[int]:
    changed = None
    for column in columns:
        here = pc.not_equal(column.slice(1), column.slice(0, len(column) - 1))
        changed = here if changed is None else pc.or_(changed, here)
    return [position + 1 for position in pc.indices_nonzero(changed).to_pylist()]


def _keep(chunk: Chunk, mask: pa.Array) -> Chunk:
    """The chunk covers the same offsets: what was taken out is dealt with."""
    return replace(chunk, rows=chunk.rows.filter(mask))


def _record(row: dict[str, Any]) -> Record:
    headers = tuple((header["key"], header["value"]) for header in row["_headers"] or ())
    return Record(row["_topic"], row["_partition"], row["_offset"], row["_key"], row["_value"], headers)
