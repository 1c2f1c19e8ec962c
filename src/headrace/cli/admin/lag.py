"""How far a group is behind: in records, and in seconds since the next record it has to read was written."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass

from confluent_kafka import Consumer, KafkaError, TopicPartition

from headrace.cli.admin import group_offsets, groups, offsets
from headrace.cli.admin.offsets import Partition
from headrace.cli.cluster.connection import Cluster

_PATIENCE = 5.0  # seconds to wait for the next records of all partitions that are behind


@dataclass(frozen=True, slots=True)
class PartitionLag:
    topic: str
    partition: int
    committed: int | None
    leader_epoch: int | None
    end: int | None  # the offset the next record will get; None when the partition has no leader or is gone
    lag: int | None
    seconds: float | None  # None: not known, or not asked for
    member: groups.Member | None


def of_group(
    cluster: Cluster, description: groups.Description, clock: NextRecordTimes | None = None
) -> list[PartitionLag]:
    """Every partition the group reads or has committed, members with most partitions first, then those without one."""
    committed = group_offsets.committed(cluster, description.group)
    order: list[tuple[Partition, groups.Member | None]] = []
    for member in sorted(description.members, key=lambda m: -len(m.assignment)):
        order += [(partition, member) for partition in member.assignment]
    assigned = {partition for partition, _ in order}
    order += [(partition, None) for partition in sorted(set(committed) - assigned)]
    ends, _ = offsets.list_offsets(cluster, [partition for partition, _ in order], offsets.LATEST)

    def lag(partition: Partition) -> int | None:
        end, position = ends.get(partition), committed.get(partition)
        return None if end is None or position is None else end - position.offset

    seconds: dict[Partition, float] = {partition: 0.0 for partition, _ in order if lag(partition) == 0}
    if clock is not None:
        behind = {p: committed[p].offset for p, _ in order if (lag(p) or 0) > 0}
        seconds.update(clock.seconds_behind(behind))
    return [
        PartitionLag(
            topic=partition[0],
            partition=partition[1],
            committed=committed[partition].offset if partition in committed else None,
            leader_epoch=committed[partition].leader_epoch if partition in committed else None,
            end=ends.get(partition),
            lag=lag(partition),
            seconds=seconds.get(partition),
            member=member,
        )
        for partition, member in order
    ]


def total(rows: Iterable[PartitionLag]) -> int | None:
    """In records; None when it is not known of any partition, as for a group that has committed nothing."""
    known = [row.lag for row in rows if row.lag is not None]
    return sum(known) if known else None


class NextRecordTimes:
    """Looks up when the record at an offset was written, by reading it. Keeps its consumer for the next time."""

    def __init__(self, cluster: Cluster) -> None:
        self._consumer: Consumer = cluster.consumer(
            {
                "group.id": "headrace-lag",
                "enable.auto.commit": False,
                # One record of each partition is all that is wanted.
                "fetch.message.max.bytes": 1,
                "queued.min.messages": 1,
                "fetch.wait.max.ms": 50,
                "auto.offset.reset": "earliest",
            }
        )

    def seconds_behind(self, positions: dict[Partition, int]) -> dict[Partition, float]:
        """By partition; one whose record does not arrive in time is left out."""
        waiting = dict(positions)
        found: dict[Partition, float] = {}
        if not waiting:
            return found
        self._consumer.assign([TopicPartition(t, p, offset) for (t, p), offset in waiting.items()])
        deadline = time.monotonic() + _PATIENCE
        while waiting and time.monotonic() < deadline:
            for message in self._consumer.consume(len(waiting), timeout=0.1):
                partition = (message.topic() or "", message.partition() or 0)
                error = message.error()
                if error is not None and error.code() == KafkaError._PARTITION_EOF:
                    continue
                if waiting.pop(partition, None) is None or error is not None:
                    continue
                kind, written = message.timestamp()
                if kind:
                    found[partition] = max(0.0, time.time() - written / 1000)
                self._consumer.incremental_unassign([TopicPartition(*partition)])
        self._consumer.unassign()
        return found

    def close(self) -> None:
        self._consumer.close()
