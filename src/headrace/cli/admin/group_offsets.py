"""What groups have committed: reading it, setting it while nobody is in the group, forgetting it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from headrace.cli.admin.offsets import Partition
from headrace.cli.cluster.connection import Cluster
from headrace.cli.failure import Failure
from headrace.cli.raw.refused import RequestRefused, check
from headrace.cli.raw.requests import ask_coordinator
from headrace.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from headrace.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from headrace.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
)


@dataclass(frozen=True, slots=True)
class Committed:
    offset: int
    leader_epoch: int | None
    metadata: str


def committed(cluster: Cluster, group: str) -> dict[Partition, Committed]:
    request = OffsetFetchRequest(
        group_id=group, topics=None, groups=[OffsetFetchRequestGroup(group, topics=None)]
    )
    answer = ask_coordinator(
        cluster,
        group,
        request,
        lambda a: a.groups[0].error_code if a.groups else a.error_code,
    )
    check(answer.groups[0].error_code if answer.groups else answer.error_code)
    found: dict[Partition, Committed] = {}
    for topic in answer.groups[0].topics if answer.groups else answer.topics:
        for partition in topic.partitions:
            check(partition.error_code)
            if partition.committed_offset >= 0:
                epoch = partition.committed_leader_epoch
                found[topic.name, partition.partition_index] = Committed(
                    partition.committed_offset, epoch if epoch >= 0 else None, partition.metadata or ""
                )
    return found


def commit(cluster: Cluster, group: str, offsets: Mapping[Partition, int]) -> None:
    """Set what a group without members has committed."""
    topics: dict[str, list[OffsetCommitRequestPartition]] = {}
    for (topic, partition), offset in offsets.items():
        topics.setdefault(topic, []).append(OffsetCommitRequestPartition(partition, offset))
    request = OffsetCommitRequest(
        group, topics=[OffsetCommitRequestTopic(name, parts) for name, parts in topics.items()]
    )

    def first_error(answer: OffsetCommitResponse) -> int:
        return next((p.error_code for topic in answer.topics for p in topic.partitions if p.error_code), 0)

    answer = ask_coordinator(cluster, group, request, first_error)
    for committed_topic in answer.topics:
        for outcome in committed_topic.partitions:
            if outcome.error_code:
                why = RequestRefused(outcome.error_code).sentence
                where = f"{committed_topic.name}-{outcome.partition_index}"
                raise Failure(f"The offset of {where} was not set: {why}")


def delete_offsets(
    cluster: Cluster, group: str, partitions: Collection[Partition]
) -> tuple[int, dict[Partition, int]]:
    """Forget what a group has committed. Returns the error of the whole request and of each partition."""
    topics: dict[str, list[OffsetDeleteRequestPartition]] = {}
    for topic, partition in partitions:
        topics.setdefault(topic, []).append(OffsetDeleteRequestPartition(partition))
    request = OffsetDeleteRequest(
        group, [OffsetDeleteRequestTopic(name, parts) for name, parts in topics.items()]
    )
    answer = ask_coordinator(cluster, group, request, lambda a: a.error_code)
    errors = {
        (topic.name, p.partition_index): p.error_code for topic in answer.topics for p in topic.partitions
    }
    return answer.error_code, errors
