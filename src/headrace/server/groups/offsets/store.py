"""The committed offsets of a shard, and those of open transactions, which count when the transaction commits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from headrace.server.groups.messages.offsets import OffsetCommitKey, OffsetCommitValue
from headrace.server.groups.offsets.form import CommitForm
from headrace.server.groups.records import GroupRecord

ByPartition = dict[int, "CommittedOffset"]
ByTopic = dict[str, ByPartition]


_MAKE = tuple.__new__
"""Makes a NamedTuple in half the time, for every commit."""


class CommittedOffset(NamedTuple):
    offset: int
    leader_epoch: int
    metadata: str
    commit_timestamp: int
    expire_timestamp: int
    """-1 unless the commit brought a retention of its own, as clients before 2.1 could."""
    record_offset: int
    """Where the commit lies in the log: of a plain and a transactional commit the later one counts."""


class OffsetStore:
    def __init__(self) -> None:
        self._committed: dict[str, ByTopic] = {}
        self._pending: dict[int, dict[str, ByTopic]] = {}
        self._open_transactions: dict[str, set[int]] = {}

    def groups(self) -> list[str]:
        """Those that have committed."""
        return list(self._committed)

    def of_group(self, group_id: str) -> ByTopic:
        return self._committed.get(group_id, {})

    def get(self, group_id: str, topic: str, partition: int) -> CommittedOffset | None:
        topics = self._committed.get(group_id)
        partitions = None if topics is None else topics.get(topic)
        return None if partitions is None else partitions.get(partition)

    def has_open_transactions(self, group_id: str) -> bool:
        return group_id in self._open_transactions

    def is_pending(self, group_id: str, topic: str, partition: int) -> bool:
        """An open transaction has committed an offset here, which nobody may rely on yet."""
        return any(
            partition in self._pending[producer_id].get(group_id, {}).get(topic, {})
            for producer_id in self._open_transactions.get(group_id, ())
        )

    def all_partitions(self, group_id: str) -> Iterator[tuple[str, int]]:
        """Every partition with an offset, committed or pending, once."""
        seen = {(t, p) for t, partitions in self.of_group(group_id).items() for p in partitions}
        for producer_id in self._open_transactions.get(group_id, ()):
            pending = self._pending[producer_id].get(group_id, {})
            seen.update((t, p) for t, partitions in pending.items() for p in partitions)
        yield from sorted(seen)

    def of_topic(self, topic: str) -> Iterator[tuple[str, int]]:
        """(group, partition) for every offset of a topic, committed or pending, once."""
        seen = {(g, p) for g, topics in self._committed.items() for p in topics.get(topic, ())}
        for groups in self._pending.values():
            seen.update((g, p) for g, topics in groups.items() for p in topics.get(topic, ()))
        yield from sorted(seen)

    # Replaying

    def put(
        self, key: OffsetCommitKey, value: OffsetCommitValue, record_offset: int, producer_id: int
    ) -> None:
        committed = CommittedOffset(
            value.offset,
            value.leader_epoch,
            value.metadata,
            value.commit_timestamp,
            value.expire_timestamp,
            record_offset,
        )
        if producer_id < 0:
            _put(self._committed, key.group, key.topic, key.partition, committed)
        else:
            groups = self._pending.setdefault(producer_id, {})
            _put(groups, key.group, key.topic, key.partition, committed)
            self._open_transactions.setdefault(key.group, set()).add(producer_id)

    def put_commit(
        self,
        group_id: str,
        forms: Sequence[CommitForm],
        offsets: Sequence[int],
        commit_timestamp: int,
        record_offset: int,
    ) -> None:
        """The same for a whole commit outside a transaction, whose records lie in the log from `record_offset` on."""
        topics = self._committed.setdefault(group_id, {})
        for form, offset in zip(forms, offsets, strict=True):
            partitions = topics.get(form.topic)
            if partitions is None:
                partitions = topics[form.topic] = {}
            partitions[form.partition] = _MAKE(
                CommittedOffset,
                (offset, form.leader_epoch, form.metadata, commit_timestamp, -1, record_offset),
            )
            record_offset += 1

    def remove(self, key: OffsetCommitKey) -> None:
        _remove(self._committed, key)
        for producer_id in self._open_transactions.get(key.group, ()):
            _remove(self._pending[producer_id], key)

    def end_transaction(self, producer_id: int, committed: bool) -> None:
        groups = self._pending.pop(producer_id, {})
        for group_id, producers in list(self._open_transactions.items()):
            producers.discard(producer_id)
            if not producers:
                del self._open_transactions[group_id]
        if not committed:
            return
        for group_id, topics in groups.items():
            for topic, partitions in topics.items():
                for partition, pending in partitions.items():
                    current = self.get(group_id, topic, partition)
                    if current is None or current.record_offset < pending.record_offset:
                        _put(self._committed, group_id, topic, partition, pending)


def _put(groups: dict[str, ByTopic], group: str, topic: str, partition: int, value: CommittedOffset) -> None:
    groups.setdefault(group, {}).setdefault(topic, {})[partition] = value


def _remove(groups: dict[str, ByTopic], key: OffsetCommitKey) -> None:
    topics = groups.get(key.group)
    partitions = None if topics is None else topics.get(key.topic)
    if topics is None or partitions is None:
        return
    partitions.pop(key.partition, None)
    if not partitions:
        del topics[key.topic]
    if not topics:
        del groups[key.group]


def tombstone(group_id: str, topic: str, partition: int) -> GroupRecord:
    return GroupRecord(OffsetCommitKey(group_id, topic, partition), None)
