"""Asking leaders for offsets: the first, the next to come, or the first at or after a moment."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from headrace.link.cluster import Cluster
from headrace.wire.errors import ErrorCode, KafkaError
from headrace.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)

LATEST, EARLIEST = -1, -2
"""Kafka's stand-ins for a timestamp; the official connector writes the same numbers for an offset."""


class TopicPartition(NamedTuple):
    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


Offsets = dict[TopicPartition, int]


def list_offsets(
    cluster: Cluster, asked: Mapping[TopicPartition, int], *, committed: bool = False
) -> Offsets:
    """The offset for each partition's timestamp (or LATEST, EARLIEST); -1 where nothing is that new.

    With `committed`, the latest offset is the last stable one, before which every transaction has ended.
    """
    found: Offsets = {}

    def ask() -> Offsets:
        left = [partition for partition in asked if partition not in found]
        for connection, partitions in cluster.by_leader(left).items():
            topics: dict[str, list[ListOffsetsPartition]] = {}
            for topic, partition in partitions:
                entry = ListOffsetsPartition(partition, -1, asked[TopicPartition(topic, partition)])
                topics.setdefault(topic, []).append(entry)
            reply = connection.call(
                ListOffsetsRequest(
                    -1,
                    int(committed),
                    [ListOffsetsTopic(name, entries) for name, entries in topics.items()],
                    int(cluster.settings.request_timeout * 1000),
                )
            )
            for answered in reply.topics:
                for part in answered.partitions:
                    code = ErrorCode(part.error_code)
                    if code:
                        cluster.forget(answered.name)
                        raise KafkaError(code, f"{answered.name}-{part.partition_index}: {code.name}")
                    found[TopicPartition(answered.name, part.partition_index)] = part.offset
        return found

    return cluster.retry("find the offsets of the topics", ask)
