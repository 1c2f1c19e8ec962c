"""The state of one partition of `__consumer_offsets`: its groups and their offsets, replayed from its records.

Replaying the log builds it; the operations in this package read it and return the records that change it.
Parked joins, sessions and timers live in it too and are lost with it: members join again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from headrace.clock import Clock
from headrace.server.coordinator.timers import Timers
from headrace.server.coordinator.write import Write
from headrace.server.groups.classic.group import ClassicGroup
from headrace.server.groups.config import GroupConfig
from headrace.server.groups.consumer.group import ConsumerGroup
from headrace.server.groups.messages.classic import GroupMetadataKey, GroupMetadataValue
from headrace.server.groups.messages.consumer import ConsumerGroupMetadataKey
from headrace.server.groups.messages.offsets import OffsetCommitKey, OffsetCommitValue
from headrace.server.groups.messages.share import (
    ShareGroupCurrentMemberAssignmentKey,
    ShareGroupMemberMetadataKey,
    ShareGroupMetadataKey,
    ShareGroupStatePartitionMetadataKey,
    ShareGroupTargetAssignmentMemberKey,
    ShareGroupTargetAssignmentMetadataKey,
)
from headrace.server.groups.offsets.form import CommitForm
from headrace.server.groups.offsets.store import OffsetStore
from headrace.server.groups.records import GroupRecord, decode_record, encode_record
from headrace.server.groups.share.group import ShareGroup
from headrace.server.groups.topics import Topics
from headrace.wire.batch import NO_PRODUCER_ID
from headrace.wire.errors import ErrorCode, KafkaError

Group = ClassicGroup | ConsumerGroup
SHARE_GROUP_KEYS = (
    ShareGroupCurrentMemberAssignmentKey,
    ShareGroupMemberMetadataKey,
    ShareGroupMetadataKey,
    ShareGroupStatePartitionMetadataKey,
    ShareGroupTargetAssignmentMemberKey,
    ShareGroupTargetAssignmentMetadataKey,
)
GroupTimers = Timers[Callable[[], Write[GroupRecord, object]]]


class GroupState:
    def __init__(self, timers: GroupTimers, clock: Clock, config: GroupConfig, topics: Topics) -> None:
        self.timers = timers
        self.clock = clock
        self.config = config
        self.topics = topics
        self.groups: dict[str, Group] = {}
        self.share_groups: dict[str, ShareGroup] = {}
        """Apart from the others: they have no offsets here, and no name is in both."""
        self.offsets = OffsetStore()
        self.on_loaded: Callable[[], None] = lambda: None

    def group(self, group_id: str) -> Group:
        group = self.groups.get(group_id)
        if group is None:
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} does not exist.")
        return group

    def share_group(self, group_id: str) -> ShareGroup:
        group = self.share_groups.get(group_id)
        if group is None:
            what = "is not a share group" if group_id in self.groups else "does not exist"
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} {what}.")
        return group

    def create_simple_group(self, group_id: str) -> ClassicGroup:
        """A group that only holds offsets, of consumers that assign their partitions themselves."""
        group = self.groups[group_id] = ClassicGroup(group_id, None)
        return group

    def commit_offsets(
        self,
        group_id: str,
        forms: Sequence[CommitForm],
        offsets: Sequence[int],
        commit_timestamp: int,
        record_offset: int,
    ) -> None:
        """What replaying the records of a commit would do."""
        if group_id not in self.groups:
            self.create_simple_group(group_id)
        self.offsets.put_commit(group_id, forms, offsets, commit_timestamp, record_offset)

    def session_timeout_ms(self, group_id: str) -> int:
        """Of the consumer protocol, where a group may have a setting of its own."""
        own = self.topics.group_settings(group_id).get("consumer.session.timeout.ms")
        return self.config.consumer_session_timeout_ms if own is None else int(own)

    def heartbeat_interval_ms(self, group_id: str) -> int:
        own = self.topics.group_settings(group_id).get("consumer.heartbeat.interval.ms")
        return self.config.consumer_heartbeat_interval_ms if own is None else int(own)

    def share_session_timeout_ms(self, group_id: str) -> int:
        own = self.topics.group_settings(group_id).get("share.session.timeout.ms")
        return self.config.share_session_timeout_ms if own is None else int(own)

    def share_heartbeat_interval_ms(self, group_id: str) -> int:
        own = self.topics.group_settings(group_id).get("share.heartbeat.interval.ms")
        return self.config.share_heartbeat_interval_ms if own is None else int(own)

    # The state machine

    def encode(self, record: GroupRecord) -> tuple[bytes | bytearray, bytes | bytearray | None]:
        return encode_record(record)

    def decode(self, key: bytes, value: bytes | None) -> GroupRecord | None:
        return decode_record(key, value)

    def replay(self, record: GroupRecord, offset: int, producer_id: int) -> None:
        key, value = record
        if isinstance(key, OffsetCommitKey):
            if value is None:
                self.offsets.remove(key)
                return
            assert isinstance(value, OffsetCommitValue)
            if key.group not in self.groups:
                self.create_simple_group(key.group)
            self.offsets.put(key, value, offset, producer_id)
        elif isinstance(key, GroupMetadataKey):
            if value is not None:
                assert isinstance(value, GroupMetadataValue)
                self.groups[key.group] = ClassicGroup.from_record(key.group, value)
            elif isinstance(self.groups.get(key.group), ClassicGroup):
                del self.groups[key.group]
        elif isinstance(key, SHARE_GROUP_KEYS):
            self._replay_share_group(key.group_id, record)
        else:
            self._replay_consumer_group(record)

    def _replay_share_group(self, group_id: str, record: GroupRecord) -> None:
        group = self.share_groups.get(group_id)
        if group is None:
            if record.value is None:
                return
            group = self.share_groups[group_id] = ShareGroup(group_id)
        if record.value is None and isinstance(record.key, ShareGroupMetadataKey):
            del self.share_groups[group_id]
        else:
            group.replay(record)

    def _replay_consumer_group(self, record: GroupRecord) -> None:
        """Compaction may have removed any older record, so none relies on another."""
        key, value = record
        group_id: str = key.group_id  # type: ignore[attr-defined]
        group = self.groups.get(group_id)
        if not isinstance(group, ConsumerGroup):
            if value is None:
                return
            group = self.groups[group_id] = ConsumerGroup(group_id)
        if value is None and isinstance(key, ConsumerGroupMetadataKey):
            del self.groups[group_id]
        else:
            group.replay(record)

    def replay_groups(self, records: Iterable[GroupRecord]) -> None:
        """Records of groups alone, to which unlike offsets their place in the log means nothing."""
        for record in records:
            self.replay(record, -1, NO_PRODUCER_ID)

    def end_transaction(self, producer_id: int, committed: bool) -> None:
        self.offsets.end_transaction(producer_id, committed)

    def loaded(self) -> None:
        self.on_loaded()

    def unloaded(self) -> None:
        for group in self.groups.values():
            if isinstance(group, ClassicGroup):
                group.answer_all(ErrorCode.NOT_COORDINATOR)
