"""Writing topics from Spark: batches at least once, streams exactly once.

A stream's task writes in a transaction of its own and tells the driver which one; the driver commits them all (see
`sink_commit`). A task that fails aborts its transaction; one that is killed leaves that to the driver.
"""

from __future__ import annotations

import itertools
import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)

from headrace.link.cluster import shared_cluster
from headrace.link.errors import BrokerUnavailable
from headrace.link.settings import SettingsError
from headrace.spark.sink_commit import BatchCommit
from headrace.spark.sink_leftovers import transactional_id
from headrace.spark.sink_options import WriteOptions
from headrace.spark.sink_producer import SinkProducer
from headrace.spark.sink_rows import RowWriter
from headrace.spark.sink_transactions import ProducerIdentity, SinkTransactions
from headrace.spark.worker import settle
from headrace.wire.errors import KafkaError

log = logging.getLogger(__name__)

QUERY, RUN, BATCH = "sql.streaming.queryId", "spark.jobGroup.id", "streaming.sql.batchId"
"""Where Spark tells a task of a stream what it belongs to: the checkpoint's query, this start of it, the batch."""

SPECULATION = "spark.speculation"
"""And whether slow tasks are run twice."""


@dataclass(frozen=True)
class Written(WriterCommitMessage):
    """A task has written its rows, at least once."""

    rows: int


@dataclass(frozen=True)
class WrittenInTransaction(WriterCommitMessage):
    """A task has written its rows in a transaction that is open; there is none if there were no rows."""

    rows: int
    query: str
    run: str
    identity: ProducerIdentity | None
    repeated: bool
    """Another attempt of the task may have left a transaction open."""


_runs: dict[str, tuple[str, str]] = {}
"""Query and run of each instance whose commits this process has seen: an abort may come without a message from any task."""


class BatchWriter(DataSourceArrowWriter):
    def __init__(self, options: WriteOptions) -> None:
        self._options = options

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        settle()
        return Written(_write(self._options, iterator))


class StreamWriter(DataSourceStreamArrowWriter):
    def __init__(self, options: WriteOptions, instance: str | None) -> None:
        self._options = options
        self._instance = instance

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        settle()
        transactions = SinkTransactions(shared_cluster(self._options.kafka))
        if not self._options.exactly_once or not _offered(transactions):
            return Written(_write(self._options, iterator))
        context = TaskContext.get()
        assert context is not None, "Spark runs this in a task"
        query, run = context.getLocalProperty(QUERY), context.getLocalProperty(RUN)
        if query is None or run is None:
            raise SettingsError(
                "Spark does not tell this task which streaming query it belongs to, without which nothing can be "
                "written exactly once: set exactlyOnce=false."
            )
        attempt = context.attemptNumber()
        repeated = attempt > 0 or context.getLocalProperty(SPECULATION) == "true"
        rows = _peek(iterator)
        if rows is None:
            return WrittenInTransaction(0, query, run, None, repeated)
        identity = transactions.begin(
            transactional_id(query, run, context.partitionId(), attempt), self._options.transaction_timeout_ms
        )
        try:
            count = _write(self._options, rows, identity, transactions)
        except BaseException:
            _abort_quietly(transactions, identity)
            raise
        return WrittenInTransaction(count, query, run, identity, repeated)

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:
        reports = [message for message in messages if isinstance(message, WrittenInTransaction)]
        if not reports:
            return
        if self._instance is not None:
            _runs[self._instance] = (reports[0].query, reports[0].run)
        written = [message.identity for message in reports if message.identity is not None]
        repeated = any(message.repeated for message in reports)
        batches = self._batches(reports[0].query, reports[0].run)
        if written:
            batches.commit(batchId, written, repeated=repeated)
        else:
            batches.finish(batchId, repeated=repeated)

    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:
        reports = [message for message in messages if isinstance(message, WrittenInTransaction)]
        if messages and len(reports) == len(messages):
            # Every task was done, so it is the commit that failed, perhaps after the list was recorded. Whether the
            # batch stands is for the next run to find out.
            return
        known = (reports[0].query, reports[0].run) if reports else _runs.get(self._instance or "")
        if known is None:
            return
        written = [message.identity for message in reports if message.identity is not None]
        try:
            self._batches(*known).abort(written, len(messages))
        except (BrokerUnavailable, KafkaError) as error:
            log.warning("headrace: transactions of batch %d stay open until they expire: %s", batchId, error)

    def _batches(self, query: str, run: str) -> BatchCommit:
        cluster = shared_cluster(self._options.kafka)
        return BatchCommit(cluster, query, run, self._options.transaction_timeout_ms)


def _write(
    options: WriteOptions,
    batches: Iterator[pa.RecordBatch],
    identity: ProducerIdentity | None = None,
    transactions: SinkTransactions | None = None,
) -> int:
    cluster = shared_cluster(options.kafka)
    producer = SinkProducer(cluster, options, identity, transactions)
    try:
        writer = RowWriter(cluster, options, producer)
        writer.write(batches)
    finally:
        producer.close()
    return writer.rows


def _peek(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch] | None:
    """The same batches, or None if there is not a single row in them."""
    for batch in batches:
        if batch.num_rows:
            return itertools.chain([batch], batches)
    return None


def _offered(transactions: SinkTransactions) -> bool:
    if transactions.offered():
        return True
    log.warning(
        "headrace: the brokers do not offer the transactions that a write exactly once needs (Kafka 3.0 or newer): "
        "a batch that Spark runs again after a failure is written again (at least once)"
    )
    return False


def _abort_quietly(transactions: SinkTransactions, identity: ProducerIdentity) -> None:
    """The task's own failure is what the user must read."""
    try:
        transactions.end([identity], commit=False)
    except (BrokerUnavailable, KafkaError) as error:
        log.warning("headrace: the transaction %s stays open: %s", identity.transactional_id, error)
