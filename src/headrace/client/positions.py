"""What a consumer has given to the program and not yet committed: plain bookkeeping, no I/O.

Offsets are Kafka's: the offset of the next record to read.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from headrace.client.record import Record, TopicPartition

Offsets = Mapping[TopicPartition, int]


class Positions:
    def __init__(self) -> None:
        self._next: dict[TopicPartition, int] = {}
        self._first: dict[TopicPartition, int] = {}
        self.lost: set[TopicPartition] = set()
        """Partitions that went away with records handed out and not committed."""

    def hand_out(self, records: Iterable[Record[Any, Any]]) -> None:
        for record in records:
            partition = record.topic_partition
            self._first.setdefault(partition, record.offset)
            self._next[partition] = record.offset + 1

    def uncommitted(self) -> dict[TopicPartition, int]:
        """What to commit so that everything handed out counts as handled."""
        return dict(self._next)

    def starts(self) -> dict[TopicPartition, int]:
        """Where each partition must be read again if nothing handed out counts as handled."""
        return dict(self._first)

    def committed(self, offsets: Offsets) -> None:
        for partition, offset in offsets.items():
            if self._next.get(partition, -1) <= offset:
                self.moved(partition)
            else:
                self._first[partition] = offset

    def moved(self, partition: TopicPartition) -> None:
        """The partition is read from elsewhere; what was handed out no longer matters."""
        self._next.pop(partition, None)
        self._first.pop(partition, None)

    def gone(self, partitions: Collection[TopicPartition]) -> None:
        self.lost.update(self._next.keys() & set(partitions))
        for partition in partitions:
            self.moved(partition)

    def clear(self) -> None:
        self._next.clear()
        self._first.clear()
        self.lost.clear()


def offsets_of(given: Offsets | Record[Any, Any] | Iterable[Record[Any, Any]]) -> dict[TopicPartition, int]:
    """The offsets that commit the given records: one past the last of each partition."""
    if isinstance(given, Mapping):
        return {TopicPartition(*partition): offset for partition, offset in given.items()}
    offsets: dict[TopicPartition, int] = {}
    for record in (given,) if isinstance(given, Record) else given:
        partition = record.topic_partition
        offsets[partition] = max(record.offset + 1, offsets.get(partition, 0))
    return offsets
