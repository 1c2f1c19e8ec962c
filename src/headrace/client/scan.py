"""Reading partitions from some offset to the end they have now, without a group."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from headrace.client.config import connection_settings
from headrace.client.consumer import Consumer
from headrace.client.record import Record, TopicPartition


def scan(
    config: Mapping[str, object],
    starts: Mapping[TopicPartition, int | None],
    *,
    ends: Mapping[TopicPartition, int] | None = None,
    isolation_level: str = "read_committed",
) -> Iterator[Record[bytes, bytes]]:
    """The records of these partitions, each in order, up to where it ends when this begins, or to an earlier one of ``ends``.

    A start of None is the beginning of the partition.
    """
    consumer: Consumer[bytes, bytes] = Consumer(
        connection_settings(config), enable_partition_eof=True, isolation_level=isolation_level
    )
    with consumer:
        ranges = {partition: consumer.range_of(partition) for partition in starts}
        left = {}
        for partition, (first, end) in ranges.items():
            start = starts[partition]
            end = min(end, (ends or {}).get(partition, end))
            if max(first, start or 0) < end:
                left[partition] = end
        consumer.assign({partition: max(ranges[partition][0], starts[partition] or 0) for partition in left})
        while left:
            for record in consumer.poll(0.5):
                partition = record.topic_partition
                if partition in left and record.offset < left[partition]:
                    yield record
                if partition in left and record.offset + 1 >= left[partition]:
                    del left[partition]
            # The end may hold no record: a transaction's marker, or one that was compacted away.
            for partition in consumer.ended & left.keys():
                del left[partition]
