"""What groups have committed: reading it, setting it while the group has no members, deleting it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition

from headrace.client.administration.errors import NotPossible
from headrace.client.administration.names import Partition
from headrace.client.administration.session import Session
from headrace.client.errors import BrokerError
from headrace.link.cluster import GROUP
from headrace.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)


@dataclass(frozen=True, slots=True)
class Committed:
    offset: int
    leader_epoch: int | None
    metadata: str


def committed(session: Session, group: str, *, stable: bool = False) -> dict[Partition, Committed]:
    """The committed offsets of a group, for the partitions that have one.

    With ``stable`` a transaction that may still commit others is a BrokerError that is worth another try.
    """
    if not group:
        raise NotPossible("The group id must not be empty.")
    doing = f"reading the offsets of group {group}"
    asked = [ConsumerGroupTopicPartitions(group)]
    futures = session.librdkafka.list_consumer_group_offsets(
        asked, require_stable=stable, **session.limits.request
    )
    answer = session.wait(futures[group], doing)
    found: dict[Partition, Committed] = {}
    for each in answer.topic_partitions:
        if each.error is not None:
            raise session.refusal(each.error, doing)
        if each.offset >= 0:
            found[each.topic, each.partition] = Committed(each.offset, each.leader_epoch, each.metadata or "")
    return found


def commit(
    session: Session, group: str, offsets: Mapping[Partition, int], note: str = ""
) -> dict[Partition, BrokerError]:
    """Set what a group without members has committed, with a note beside it. Returns the refusals."""
    doing = f"setting the offsets of group {group}"
    places = [
        TopicPartition(topic, partition, offset, metadata=note)
        for (topic, partition), offset in offsets.items()
    ]
    asked = [ConsumerGroupTopicPartitions(group, places)]
    futures = session.librdkafka.alter_consumer_group_offsets(asked, **session.limits.request)
    answer = session.wait(futures[group], doing)
    return {
        (each.topic, each.partition): session.refusal(each.error, doing)
        for each in answer.topic_partitions
        if each.error is not None
    }


def delete(
    session: Session, group: str, partitions: Collection[Partition]
) -> tuple[int, dict[Partition, int]]:
    """Delete what a group has committed. Returns the error code of the whole request and of each partition."""
    topics: dict[str, list[OffsetDeleteRequestPartition]] = {}
    for topic, partition in partitions:
        topics.setdefault(topic, []).append(OffsetDeleteRequestPartition(partition))
    request = OffsetDeleteRequest(
        group, [OffsetDeleteRequestTopic(name, parts) for name, parts in topics.items()]
    )
    answer = session.call_coordinator(GROUP, group, request, lambda reply: reply.error_code)
    errors = {
        (topic.name, p.partition_index): p.error_code for topic in answer.topics for p in topic.partitions
    }
    return answer.error_code, errors
