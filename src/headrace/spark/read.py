"""What a task does: one range of offsets from its leader to Arrow batches, and what to do when offsets are gone."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pyarrow as pa

from headrace.spark.cluster import shared_cluster
from headrace.spark.decode import Decoder
from headrace.spark.fetch import Fetcher, FetchSettings, OffsetsGone, TopicGone
from headrace.spark.options import ReadOptions
from headrace.spark.plan import Range
from headrace.spark.worker import settle

log = logging.getLogger(__name__)


class DataLoss(RuntimeError):
    """Records that should have been read are not there any more."""


def report_data_loss(options: ReadOptions, what: str) -> None:
    """Fail or only tell, as failOnDataLoss says."""
    if options.fail_on_data_loss:
        raise DataLoss(
            f"{what} Some data may have been lost because they are not available in Kafka any more: they were aged "
            "out or the topic was deleted before all of it was processed. "
            'If this is fine, set the source option "failOnDataLoss" to "false".'
        )
    log.warning("headrace: %s Some data may have been lost (failOnDataLoss is false).", what)


def read_range(options: ReadOptions, wanted: Range, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    settle()
    cluster = shared_cluster(options.kafka)
    decoder = Decoder(wanted.topic, wanted.partition, schema, check_crcs=options.check_crcs)
    settings = FetchSettings(
        committed=options.committed,
        block_bytes=options.block_bytes,
        max_wait_ms=options.max_wait_ms,
        poll_timeout=options.poll_timeout,
    )
    start = wanted.start
    while start < wanted.end:
        fetcher = Fetcher(cluster, wanted.source, start, wanted.end, settings, wanted.topic_id)
        try:
            for block in fetcher.blocks():
                yield from decoder.decode(block.data, block.batches, start, wanted.end)
            return
        except TopicGone:
            report_data_loss(
                options,
                f"Could not read records in offset [{start}, {wanted.end}) for topic partition {wanted.source}: the "
                "topic was deleted.",
            )
            return
        except OffsetsGone as gone:
            report_data_loss(
                options,
                f"Could not read records in offset [{gone.position}, {wanted.end}) for topic partition "
                f"{gone.partition}, which now holds [{gone.first}, {gone.last}).",
            )
            if not gone.position < gone.first < wanted.end:
                return
            start = gone.first
