"""How far a group is behind: what it has committed, where its partitions end, and when the next records were written.

`LagMeter` and Kafka's own tool read it here; ages, rates, states and forecasts are the meter's (`client/lag.py`).
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from confluent_kafka import Consumer, TopicPartition

from headrace.client.administration import group_offsets, groups, offsets, share_groups
from headrace.client.administration.names import Partition
from headrace.client.administration.session import Session
from headrace.client.errors import BrokerError
from headrace.unread import age

_PATIENCE = 5.0  # seconds to wait for the next records of all partitions that are behind

ONE_RECORD: Mapping[str, str | int] = {
    "max.partition.fetch.bytes": 1,
    "queued.min.messages": 1,
    "fetch.wait.max.ms": 50,
    "enable.partition.eof": "true",
    "auto.offset.reset": "earliest",
}
"""Settings of a consumer for `NextRecordTimes`, which wants one record of each partition."""


@dataclass(frozen=True, slots=True)
class Position:
    """Where a group is in a partition, and where the partition ends."""

    committed: int | None
    leader_epoch: int | None
    end: int | BrokerError
    """The offset the next record will get, or why it is not known: the partition has no leader, or is gone."""
    finished: int = 0
    """Of a share group: records after `committed`, its start, that are done with."""

    @property
    def lag(self) -> int | None:
        """In records, never negative; None when nothing is committed, or the end is not known."""
        if self.committed is None or isinstance(self.end, BrokerError):
            return None
        return max(0, self.end - self.committed - self.finished)


@dataclass(frozen=True, slots=True)
class PartitionLag:
    topic: str
    partition: int
    committed: int | None
    leader_epoch: int | None
    end: int | None
    lag: int | None
    member: groups.Member | None


def positions(
    session: Session, group: str, others: Iterable[Partition] = (), *, shared: bool = False
) -> dict[Partition, Position]:
    """Of every partition that the group has committed for, and of `others`; `shared` for a share group."""
    if shared:
        return _shared_positions(session, group, others)
    committed = group_offsets.committed(session, group)
    wanted = sorted({*committed, *others})
    ends, refusals = offsets.list_offsets(session, wanted, offsets.LATEST)
    found = {}
    for each in wanted:
        place = committed.get(each)
        found[each] = Position(
            None if place is None else place.offset,
            None if place is None else place.leader_epoch,
            ends[each] if each in ends else refusals[each],
        )
    return found


def _shared_positions(session: Session, group: str, others: Iterable[Partition]) -> dict[Partition, Position]:
    known = share_groups.places(session, group)
    wanted = sorted({*known, *others})
    ends, refusals = offsets.list_offsets(session, wanted, offsets.LATEST)
    found = {}
    for each in wanted:
        place, end = known.get(each), ends[each] if each in ends else refusals[each]
        if place is None or place.start is None:
            found[each] = Position(None, None, end)
            continue
        finished = 0
        if place.lag is not None and isinstance(end, int):
            finished = max(end - place.start - place.lag, 0)
        found[each] = Position(place.start, place.leader_epoch, end, finished)
    return found


def of_group(session: Session, description: groups.Description) -> list[PartitionLag]:
    """Every partition the group reads or has committed: those of the members with most partitions first, unread ones last."""
    order: list[tuple[Partition, groups.Member | None]] = []
    for member in sorted(description.members, key=lambda m: -len(m.assignment)):
        order += [(partition, member) for partition in member.assignment]
    assigned = {partition for partition, _ in order}
    shared = description.type == share_groups.TYPE
    found = positions(session, description.group, assigned, shared=shared)
    order += [(partition, None) for partition in found if partition not in assigned]
    return [
        PartitionLag(
            topic=partition[0],
            partition=partition[1],
            committed=found[partition].committed,
            leader_epoch=found[partition].leader_epoch,
            end=end if isinstance(end := found[partition].end, int) else None,
            lag=found[partition].lag,
            member=member,
        )
        for partition, member in order
    ]


class NextRecordTimes:
    """Looks up when the record at an offset was written, by reading it; what was read before is not read again."""

    def __init__(self, consumer: Consumer) -> None:
        """The consumer is the caller's to close; `ONE_RECORD` are settings for it."""
        self._consumer = consumer
        self._known: dict[Partition, tuple[int, int]] = {}

    def ages(self, starts: Mapping[Partition, int]) -> dict[Partition, float]:
        """The age in seconds of the record at each offset; one that does not arrive in time, or has no time, is left out."""
        self._read(
            {each: start for each, start in starts.items() if self._known.get(each, (-1, 0))[0] != start}
        )
        now = time.time()
        written = {each: self._known[each][1] for each, start in starts.items() if self._knows(each, start)}
        return {each: age(now, at) for each, at in written.items() if at >= 0}

    def _knows(self, partition: Partition, start: int) -> bool:
        return partition in self._known and self._known[partition][0] == start

    def _read(self, waiting: dict[Partition, int]) -> None:
        if not waiting:
            return
        self._consumer.assign([TopicPartition(t, p, offset) for (t, p), offset in waiting.items()])
        deadline = time.monotonic() + _PATIENCE
        while waiting and time.monotonic() < deadline:
            for message in self._consumer.consume(len(waiting), timeout=0.1):
                partition = (message.topic() or "", message.partition() or 0)
                error = message.error()
                start = waiting.pop(partition, None)
                if start is None or error is not None:
                    # At the end nothing can be read: markers, an open transaction, or what compaction has removed.
                    continue
                kind, written = message.timestamp()
                self._known[partition] = start, written if kind else -1
                self._consumer.incremental_unassign([TopicPartition(*partition)])
        self._consumer.unassign()
