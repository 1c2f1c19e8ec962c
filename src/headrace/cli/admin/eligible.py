"""Eligible leader replicas (KIP-966), which only DescribeTopicPartitions tells."""

from __future__ import annotations

from collections.abc import Sequence

from headrace.cli.admin.offsets import Partition
from headrace.cli.cluster.connection import Cluster
from headrace.cli.raw.refused import RequestRefused
from headrace.wire.errors import ErrorCode
from headrace.wire.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    TopicRequest,
)


def eligible_replicas(
    cluster: Cluster, topics: Sequence[str]
) -> dict[Partition, tuple[list[int], list[int]]]:
    """The eligible and the last known eligible replicas by partition; a partition without word of them is left out."""
    found: dict[Partition, tuple[list[int], list[int]]] = {}
    cursor: Cursor | None = None
    asked = sorted(topics)
    try:
        with cluster.broker() as broker:
            while asked:
                request = DescribeTopicPartitionsRequest(
                    [TopicRequest(name) for name in asked], cursor=cursor
                )
                answer = broker.ask(request)
                for topic in answer.topics:
                    for p in topic.partitions:
                        eligible, last_known = p.eligible_leader_replicas, p.last_known_elr
                        if topic.name is not None and eligible is not None and last_known is not None:
                            found[topic.name, p.partition_index] = (list(eligible), list(last_known))
                if answer.next_cursor is None:
                    break
                cursor = Cursor(answer.next_cursor.topic_name, answer.next_cursor.partition_index)
                asked = [name for name in asked if name >= cursor.topic_name]
    except RequestRefused as refused:
        if refused.error != ErrorCode.UNSUPPORTED_VERSION:
            raise
    return found
