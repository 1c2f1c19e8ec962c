"""Eligible leader replicas (KIP-966), which only DescribeTopicPartitions reports."""

from __future__ import annotations

from collections.abc import Sequence

from headrace.client.administration.errors import Refused
from headrace.client.administration.names import Partition
from headrace.client.administration.session import Session
from headrace.wire.errors import ErrorCode
from headrace.wire.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    TopicRequest,
)


def eligible_replicas(
    session: Session, topics: Sequence[str]
) -> dict[Partition, tuple[list[int], list[int]]]:
    """The eligible and the last known eligible replicas by partition; partitions the broker reports none for are left out."""
    found: dict[Partition, tuple[list[int], list[int]]] = {}
    cursor: Cursor | None = None
    asked = sorted(topics)
    try:
        while asked:
            answer = session.call(
                DescribeTopicPartitionsRequest([TopicRequest(name) for name in asked], cursor=cursor)
            )
            for topic in answer.topics:
                for p in topic.partitions:
                    eligible, last_known = p.eligible_leader_replicas, p.last_known_elr
                    if topic.name is not None and eligible is not None and last_known is not None:
                        found[topic.name, p.partition_index] = (list(eligible), list(last_known))
            if answer.next_cursor is None:
                break
            cursor = Cursor(answer.next_cursor.topic_name, answer.next_cursor.partition_index)
            asked = [name for name in asked if name >= cursor.topic_name]
    except Refused as refused:
        if refused.code != ErrorCode.UNSUPPORTED_VERSION:
            raise
    return found
