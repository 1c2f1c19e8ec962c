"""What a task does: one range of offsets from its leader to Arrow batches, and what to do when offsets are gone."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pyarrow as pa

from headrace.link.cluster import shared_cluster
from headrace.spark.decode import ArrowDecoder
from headrace.spark.fetch import Fetcher, FetchSettings, OffsetsGone, TopicGone
from headrace.spark.options import ReadOptions
from headrace.spark.plan import Range
from headrace.spark.topic_ids import shown
from headrace.spark.worker import settle

log = logging.getLogger(__name__)


class DataLoss(RuntimeError):
    """Records that should have been read are not there any more."""


IF_LOST = 'If this is fine, set the source option "failOnDataLoss" to "false".'
IF_RECREATED = (
    'to read the new one from its beginning, set the source option "failOnRecreatedTopic" to "false".'
)


def report_data_loss(options: ReadOptions, what: str) -> None:
    """Fail or only tell, as failOnDataLoss says."""
    if options.fail_on_data_loss:
        raise DataLoss(
            f"{what} Some data may have been lost because they are not available in Kafka any more: they were aged "
            f"out or the topic was deleted before all of it was processed. {IF_LOST}"
        )
    log.warning("headrace: %s Some data may have been lost (failOnDataLoss is false).", what)


def report_recreated(options: ReadOptions, what: str) -> None:
    """The same for topics that were deleted and created again, as failOnRecreatedTopic says."""
    if options.fail_on_recreated:
        raise DataLoss(
            f"{what} were deleted and created again, and what was not read of the old topic is lost; {IF_RECREATED}"
        )
    log.warning("headrace: %s were deleted and created again, and are read from their beginning.", what)


def read_range(options: ReadOptions, wanted: Range, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    settle()
    cluster = shared_cluster(options.kafka)
    decoder = ArrowDecoder(
        wanted.topic, wanted.partition, schema, check_crcs=options.check_crcs, topic_id=shown(wanted.topic_id)
    )
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
            if wanted.topic in cluster.topics([wanted.topic]):
                report_recreated(options, f"The records in offset [{start}, {wanted.end}) of {wanted.source}")
                return
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
