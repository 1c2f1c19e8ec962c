"""A share group: what its records say, and the records that change it.

Members keep no partitions for themselves, so nothing has to be given up before it is given: a member has its target at once.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from headrace.server.groups.messages.consumer import TopicPartitions
from headrace.server.groups.messages.share import (
    ShareGroupCurrentMemberAssignmentKey,
    ShareGroupCurrentMemberAssignmentValue,
    ShareGroupMemberMetadataKey,
    ShareGroupMemberMetadataValue,
    ShareGroupMetadataKey,
    ShareGroupMetadataValue,
    ShareGroupStatePartitionMetadataKey,
    ShareGroupStatePartitionMetadataValue,
    ShareGroupTargetAssignmentMemberKey,
    ShareGroupTargetAssignmentMemberValue,
    ShareGroupTargetAssignmentMetadataKey,
    ShareGroupTargetAssignmentMetadataValue,
    TopicInfo,
    TopicPartitionsInfo,
)
from headrace.server.groups.records import GroupRecord
from headrace.wire.errors import ErrorCode, KafkaError

Partitions = Mapping[uuid.UUID, frozenset[int]]
NONE: Partitions = {}
LEAVE_EPOCH = -1
STABLE = 0


@dataclass(frozen=True, slots=True)
class ShareMember:
    member_id: str
    member_epoch: int = 0
    previous_member_epoch: int = -1
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    topics: frozenset[str] = frozenset()
    assigned: Partitions = field(default_factory=dict)

    def at_epoch(self, epoch: int, assigned: Partitions) -> ShareMember:
        """The previous epoch is kept, so that a member whose answer was lost is known again."""
        if epoch == self.member_epoch:
            return self if assigned == self.assigned else replace(self, assigned=assigned)
        return replace(self, member_epoch=epoch, previous_member_epoch=self.member_epoch, assigned=assigned)

    def subscription_record(self, group_id: str) -> GroupRecord:
        return GroupRecord(
            ShareGroupMemberMetadataKey(group_id, self.member_id),
            ShareGroupMemberMetadataValue(
                self.rack_id, self.client_id, self.client_host, sorted(self.topics)
            ),
        )

    def assignment_record(self, group_id: str) -> GroupRecord:
        return GroupRecord(
            ShareGroupCurrentMemberAssignmentKey(group_id, self.member_id),
            ShareGroupCurrentMemberAssignmentValue(
                self.member_epoch, self.previous_member_epoch, STABLE, to_stored(self.assigned)
            ),
        )


@dataclass(frozen=True, slots=True)
class ShareStates:
    """For which partitions the share coordinator has state of this group, by topic."""

    initializing: Partitions = field(default_factory=dict)
    initialized: Partitions = field(default_factory=dict)
    deleting: frozenset[uuid.UUID] = frozenset()
    names: Mapping[uuid.UUID, str] = field(default_factory=dict)
    """Of these topics."""

    @property
    def known(self) -> Partitions:
        return union(self.initializing, self.initialized)

    def to_record(self, group_id: str) -> GroupRecord:
        def info(partitions: Partitions) -> list[TopicPartitionsInfo]:
            return [
                TopicPartitionsInfo(topic, self.names.get(topic, ""), sorted(indexes))
                for topic, indexes in partitions.items()
                if indexes
            ]

        deleting = [TopicInfo(topic, self.names.get(topic, "")) for topic in sorted(self.deleting)]
        return GroupRecord(
            ShareGroupStatePartitionMetadataKey(group_id),
            ShareGroupStatePartitionMetadataValue(info(self.initializing), info(self.initialized), deleting),
        )

    @classmethod
    def from_record(cls, value: ShareGroupStatePartitionMetadataValue) -> ShareStates:
        partitions = (*value.initializing_topics, *value.initialized_topics)
        names = {each.topic_id: each.topic_name for each in partitions}
        names |= {each.topic_id: each.topic_name for each in value.deleting_topics}
        return cls(
            {each.topic_id: frozenset(each.partitions) for each in value.initializing_topics},
            {each.topic_id: frozenset(each.partitions) for each in value.initialized_topics},
            frozenset(each.topic_id for each in value.deleting_topics),
            names,
        )


class ShareGroup:
    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.epoch = 0
        self.metadata_hash = 0
        self.assignment_epoch = 0
        self.members: dict[str, ShareMember] = {}
        self.target: dict[str, Partitions] = {}
        self.states = ShareStates()
        self.checked_version = -1
        """The version of the cluster that the group was last compared with; nothing that must survive."""
        self.initialize_after_ms = 0
        """Before that the share coordinator is not asked again for state."""

    @property
    def state_name(self) -> str:
        return "Stable" if self.members else "Empty"

    @property
    def subscribed(self) -> frozenset[str]:
        return frozenset().union(*(member.topics for member in self.members.values()))

    def member(self, member_id: str) -> ShareMember:
        member = self.members.get(member_id)
        if member is None:
            raise KafkaError(
                ErrorCode.UNKNOWN_MEMBER_ID, f"{member_id} is not a member of group {self.group_id}."
            )
        return member

    def require_empty(self) -> None:
        if self.members:
            raise KafkaError(
                ErrorCode.NON_EMPTY_GROUP, f"Group {self.group_id} has members; stop them and try again."
            )

    # Records

    def epoch_record(self, epoch: int, metadata_hash: int) -> GroupRecord:
        return GroupRecord(
            ShareGroupMetadataKey(self.group_id), ShareGroupMetadataValue(epoch, metadata_hash)
        )

    def target_record(self, member_id: str, target: Partitions) -> GroupRecord:
        return GroupRecord(
            ShareGroupTargetAssignmentMemberKey(self.group_id, member_id),
            ShareGroupTargetAssignmentMemberValue(to_stored(target)),
        )

    def target_epoch_record(self, epoch: int) -> GroupRecord:
        return GroupRecord(
            ShareGroupTargetAssignmentMetadataKey(self.group_id),
            ShareGroupTargetAssignmentMetadataValue(epoch),
        )

    def member_tombstones(self, member_id: str) -> list[GroupRecord]:
        """In the order that lets every replay in between make sense."""
        return [
            GroupRecord(ShareGroupCurrentMemberAssignmentKey(self.group_id, member_id), None),
            GroupRecord(ShareGroupTargetAssignmentMemberKey(self.group_id, member_id), None),
            GroupRecord(ShareGroupMemberMetadataKey(self.group_id, member_id), None),
        ]

    def tombstones(self) -> list[GroupRecord]:
        """Of a group without members."""
        return [
            GroupRecord(ShareGroupStatePartitionMetadataKey(self.group_id), None),
            GroupRecord(ShareGroupTargetAssignmentMetadataKey(self.group_id), None),
            GroupRecord(ShareGroupMetadataKey(self.group_id), None),
        ]

    # Replaying

    def replay(self, record: GroupRecord) -> None:
        """Apply one record other than the group's own tombstone."""
        key, value = record
        match key, value:
            case ShareGroupMetadataKey(), ShareGroupMetadataValue():
                self.epoch, self.metadata_hash = value.epoch, value.metadata_hash
            case ShareGroupMemberMetadataKey(), ShareGroupMemberMetadataValue():
                self.members[key.member_id] = replace(
                    self.members.get(key.member_id) or ShareMember(key.member_id),
                    rack_id=value.rack_id,
                    client_id=value.client_id,
                    client_host=value.client_host,
                    topics=frozenset(value.subscribed_topic_names),
                )
            case ShareGroupMemberMetadataKey(), _:
                self.members.pop(key.member_id, None)
            case ShareGroupTargetAssignmentMetadataKey(), ShareGroupTargetAssignmentMetadataValue():
                self.assignment_epoch = value.assignment_epoch
            case ShareGroupTargetAssignmentMetadataKey(), _:
                self.assignment_epoch = 0
            case ShareGroupTargetAssignmentMemberKey(), ShareGroupTargetAssignmentMemberValue():
                self.target[key.member_id] = from_stored(value.topic_partitions)
            case ShareGroupTargetAssignmentMemberKey(), _:
                self.target.pop(key.member_id, None)
            case ShareGroupCurrentMemberAssignmentKey(), ShareGroupCurrentMemberAssignmentValue():
                self.members[key.member_id] = replace(
                    self.members.get(key.member_id) or ShareMember(key.member_id),
                    member_epoch=value.member_epoch,
                    previous_member_epoch=value.previous_member_epoch,
                    assigned=from_stored(value.assigned_partitions),
                )
            case ShareGroupCurrentMemberAssignmentKey(), _:
                if key.member_id in self.members:
                    self.members[key.member_id] = replace(
                        self.members[key.member_id],
                        member_epoch=LEAVE_EPOCH,
                        previous_member_epoch=LEAVE_EPOCH,
                        assigned=NONE,
                    )
            case ShareGroupStatePartitionMetadataKey(), ShareGroupStatePartitionMetadataValue():
                self.states = ShareStates.from_record(value)
            case ShareGroupStatePartitionMetadataKey(), _:
                self.states = ShareStates()


def union(first: Partitions, second: Partitions) -> Partitions:
    return {
        topic: first.get(topic, frozenset()) | second.get(topic, frozenset()) for topic in {*first, *second}
    }


def without(first: Partitions, second: Partitions) -> Partitions:
    left = {topic: indexes - second.get(topic, frozenset()) for topic, indexes in first.items()}
    return {topic: indexes for topic, indexes in left.items() if indexes}


def to_stored(partitions: Partitions) -> list[TopicPartitions]:
    return [TopicPartitions(topic_id, sorted(indexes)) for topic_id, indexes in partitions.items()]


def from_stored(stored: Iterable[TopicPartitions]) -> Partitions:
    return {each.topic_id: frozenset(each.partitions) for each in stored if each.partitions}
