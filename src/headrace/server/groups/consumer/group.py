"""A consumer group: what its records say, and the questions that follow from them."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from headrace.server.groups.consumer.member import (
    NO_PARTITIONS,
    Assignment,
    ConsumerMember,
    MemberState,
    from_stored,
    to_stored,
)
from headrace.server.groups.messages.consumer import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
)
from headrace.server.groups.records import GroupRecord
from headrace.wire.errors import ErrorCode, KafkaError


class ResolvedRegex(NamedTuple):
    """The topics a pattern matched, and in which version of the cluster."""

    topics: frozenset[str]
    version: int
    timestamp: int


class ConsumerGroup:
    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.epoch = 0
        self.metadata_hash = 0
        self.assignment_epoch = 0
        self.members: dict[str, ConsumerMember] = {}
        self.static_members: dict[str, str] = {}
        self.target: dict[str, Assignment] = {}
        self.regexes: dict[str, ResolvedRegex] = {}
        self.has_partition_metadata = False
        """Kafka up to 4.0 kept topic metadata in a record, which is to be removed."""
        self.checked_version = -1
        """The version of the cluster that the group was last compared with; nothing that must survive."""
        self.regexes_checked_ms = 0
        self._owners: dict[uuid.UUID, dict[int, str]] = {}

    # Questions

    @property
    def state_name(self) -> str:
        if not self.members:
            return "Empty"
        if self.epoch > self.assignment_epoch:
            return "Assigning"
        if all(member.is_reconciled_to(self.assignment_epoch) for member in self.members.values()):
            return "Stable"
        return "Reconciling"

    @property
    def is_empty(self) -> bool:
        return not self.members

    def is_owned(self, topic_id: uuid.UUID, partition: int) -> bool:
        """Some member has it, or has not given it up yet."""
        return partition in self._owners.get(topic_id, {})

    def member(self, member_id: str) -> ConsumerMember:
        member = self.members.get(member_id)
        if member is None:
            raise KafkaError(
                ErrorCode.UNKNOWN_MEMBER_ID, f"{member_id} is not a member of group {self.group_id}."
            )
        return member

    def static_member(self, instance_id: str | None) -> ConsumerMember | None:
        if instance_id is None:
            return None
        return self.members.get(self.static_members.get(instance_id, ""))

    def topics_of(self, member: ConsumerMember) -> frozenset[str]:
        """What a member is subscribed to, by name and by pattern."""
        resolved = self.regexes.get(member.subscribed_topic_regex)
        if resolved is None:
            return member.subscribed_topic_names
        return member.subscribed_topic_names | resolved.topics

    def is_subscribed_to(self, topic: str) -> bool:
        return any(topic in self.topics_of(member) for member in self.members.values())

    def preferred_assignor(self, members: Iterable[ConsumerMember], default: str) -> str:
        votes = Counter(m.server_assignor for m in members if m.server_assignor is not None)
        return votes.most_common(1)[0][0] if votes else default

    def waits_for_partitions(self, member: ConsumerMember) -> bool:
        """Whether partitions of its target are still held by others."""
        return member.state is MemberState.UNRELEASED_PARTITIONS and any(
            partition not in member.assigned.get(topic_id, ()) and self.is_owned(topic_id, partition)
            for topic_id, partitions in self.target.get(member.member_id, NO_PARTITIONS).items()
            for partition in partitions
        )

    # Members that speak the classic protocol

    @property
    def classic_members(self) -> list[ConsumerMember]:
        return [member for member in self.members.values() if member.classic is not None]

    def supports_classic(self, protocol_type: str, names: Iterable[str]) -> bool:
        if protocol_type != "consumer":
            return False
        offered = [
            {name for name, _ in member.classic.protocols}
            for member in self.classic_members
            if member.classic is not None
        ]
        return any(all(name in each for each in offered) for name in names)

    def all_classic_except(self, member_id: str) -> bool:
        member = self.members.get(member_id)
        return (
            member is not None
            and member.classic is None
            and len(self.classic_members) == len(self.members) - 1
        )

    # Offsets

    def validate_offset_commit(
        self,
        member_id: str,
        instance_id: str | None,
        epoch: int,
        *,
        transactional: bool,
        speaks_consumer_protocol: bool,
    ) -> None:
        if epoch < 0 and not self.members:
            return  # an administrator
        if transactional and epoch == -1 and not member_id and instance_id is None:
            return  # a producer that knows the group only: its own epoch fences it
        member = self.member(member_id)
        if not transactional and member.classic is None and not speaks_consumer_protocol:
            raise KafkaError(
                ErrorCode.UNSUPPORTED_VERSION,
                "Members of the consumer protocol must commit with OffsetCommit version 9 or newer.",
            )
        self._validate_epoch(member, epoch)

    def validate_offset_fetch(self, member_id: str | None, epoch: int) -> None:
        if member_id is None and epoch < 0:
            return
        self._validate_epoch(self.member(member_id or ""), epoch)

    def _validate_epoch(self, member: ConsumerMember, epoch: int) -> None:
        if epoch != member.member_epoch:
            stale = ErrorCode.STALE_MEMBER_EPOCH if member.classic is None else ErrorCode.ILLEGAL_GENERATION
            raise KafkaError(
                stale, f"Member {member.member_id} is in epoch {member.member_epoch}, not {epoch}."
            )

    def validate_offset_delete(self) -> None:
        """Always allowed: topics that are subscribed to are refused one by one."""

    def validate_delete(self) -> None:
        if self.members:
            raise KafkaError(
                ErrorCode.NON_EMPTY_GROUP, f"Group {self.group_id} has members; stop them and try again."
            )

    # Records

    def epoch_record(self, epoch: int, metadata_hash: int) -> GroupRecord:
        return GroupRecord(
            ConsumerGroupMetadataKey(self.group_id), ConsumerGroupMetadataValue(epoch, metadata_hash)
        )

    def target_record(self, member_id: str, target: Assignment) -> GroupRecord:
        return GroupRecord(
            ConsumerGroupTargetAssignmentMemberKey(self.group_id, member_id),
            ConsumerGroupTargetAssignmentMemberValue(to_stored(target)),
        )

    def target_epoch_record(self, epoch: int) -> GroupRecord:
        return GroupRecord(
            ConsumerGroupTargetAssignmentMetadataKey(self.group_id),
            ConsumerGroupTargetAssignmentMetadataValue(epoch),
        )

    def regex_record(self, regex: str, resolved: ResolvedRegex) -> GroupRecord:
        return GroupRecord(
            ConsumerGroupRegularExpressionKey(self.group_id, regex),
            ConsumerGroupRegularExpressionValue(
                sorted(resolved.topics), resolved.version, resolved.timestamp
            ),
        )

    def regex_tombstone(self, regex: str) -> GroupRecord:
        return GroupRecord(ConsumerGroupRegularExpressionKey(self.group_id, regex), None)

    def member_tombstones(self, member_id: str) -> list[GroupRecord]:
        """In the order that lets every replay in between make sense."""
        return [
            GroupRecord(ConsumerGroupCurrentMemberAssignmentKey(self.group_id, member_id), None),
            GroupRecord(ConsumerGroupTargetAssignmentMemberKey(self.group_id, member_id), None),
            GroupRecord(ConsumerGroupMemberMetadataKey(self.group_id, member_id), None),
        ]

    def tombstones(self, also: Iterable[str] = ()) -> list[GroupRecord]:
        """Everything the log may hold of the group, and of the members `also` just written."""
        members = [*self.members, *also]
        group_id = self.group_id
        records: list[GroupRecord] = []
        records += [GroupRecord(ConsumerGroupCurrentMemberAssignmentKey(group_id, m), None) for m in members]
        records += [GroupRecord(ConsumerGroupTargetAssignmentMemberKey(group_id, m), None) for m in members]
        records.append(GroupRecord(ConsumerGroupTargetAssignmentMetadataKey(group_id), None))
        records += [GroupRecord(ConsumerGroupMemberMetadataKey(group_id, m), None) for m in members]
        records += [self.regex_tombstone(regex) for regex in self.regexes]
        if self.has_partition_metadata:
            records.append(GroupRecord(ConsumerGroupPartitionMetadataKey(group_id), None))
        records.append(GroupRecord(ConsumerGroupMetadataKey(group_id), None))
        return records

    # Replaying

    def replay(self, record: GroupRecord) -> None:
        """Apply one record other than the group's own tombstone."""
        key, value = record
        match key, value:
            case ConsumerGroupMetadataKey(), ConsumerGroupMetadataValue():
                self.epoch, self.metadata_hash = value.epoch, value.metadata_hash
            case ConsumerGroupPartitionMetadataKey(), _:
                self.has_partition_metadata = value is not None
            case ConsumerGroupMemberMetadataKey(), ConsumerGroupMemberMetadataValue():
                self._put(self._member_or_new(key.member_id).with_subscription(value))
            case ConsumerGroupMemberMetadataKey(), _:
                self._remove(key.member_id)
            case ConsumerGroupTargetAssignmentMetadataKey(), ConsumerGroupTargetAssignmentMetadataValue():
                self.assignment_epoch = value.assignment_epoch
            case ConsumerGroupTargetAssignmentMetadataKey(), _:
                self.assignment_epoch = 0
            case ConsumerGroupTargetAssignmentMemberKey(), ConsumerGroupTargetAssignmentMemberValue():
                self.target[key.member_id] = from_stored(value.topic_partitions)
            case ConsumerGroupTargetAssignmentMemberKey(), _:
                self.target.pop(key.member_id, None)
            case ConsumerGroupCurrentMemberAssignmentKey(), ConsumerGroupCurrentMemberAssignmentValue():
                self._put(self._member_or_new(key.member_id).with_assignment(value))
            case ConsumerGroupCurrentMemberAssignmentKey(), _:
                if key.member_id in self.members:
                    self._put(self.members[key.member_id].without_assignment())
            case ConsumerGroupRegularExpressionKey(), ConsumerGroupRegularExpressionValue():
                self.regexes[key.regular_expression] = ResolvedRegex(
                    frozenset(value.topics), value.version, value.timestamp
                )
            case ConsumerGroupRegularExpressionKey(), _:
                self.regexes.pop(key.regular_expression, None)

    def _member_or_new(self, member_id: str) -> ConsumerMember:
        return self.members.get(member_id) or ConsumerMember(member_id)

    def _put(self, member: ConsumerMember) -> None:
        old = self.members.get(member.member_id)
        if old is not None:
            self._release(old)
        self.members[member.member_id] = member
        if member.instance_id is not None:
            self.static_members[member.instance_id] = member.member_id
        for assignment in (member.assigned, member.pending_revocation):
            for topic_id, partitions in assignment.items():
                owners = self._owners.setdefault(topic_id, {})
                for partition in partitions:
                    owners[partition] = member.member_id

    def _remove(self, member_id: str) -> None:
        member = self.members.pop(member_id, None)
        if member is None:
            return
        self._release(member)
        if member.instance_id is not None and self.static_members.get(member.instance_id) == member_id:
            del self.static_members[member.instance_id]

    def _release(self, member: ConsumerMember) -> None:
        for assignment in (member.assigned, member.pending_revocation):
            for topic_id, partitions in assignment.items():
                owners = self._owners.get(topic_id, {})
                for partition in partitions:
                    if owners.get(partition) == member.member_id:
                        del owners[partition]
                if not owners:
                    self._owners.pop(topic_id, None)
