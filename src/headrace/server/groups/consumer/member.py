"""A member of a consumer group: an immutable value that records replace."""

from __future__ import annotations

import enum
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from headrace.server.groups.consumer_protocol import CONSUMER_PROTOCOL
from headrace.server.groups.messages.consumer import (
    ClassicMemberMetadata,
    ClassicProtocol,
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    TopicPartitions,
)
from headrace.server.groups.records import GroupRecord

Assignment = Mapping[uuid.UUID, frozenset[int]]
"""Partitions by topic id; no topic without partitions."""

NO_PARTITIONS: Assignment = {}
LEAVE_EPOCH = -1
LEAVE_STATIC_EPOCH = -2
"""A static member has left and means to return within its session."""


class MemberState(enum.IntEnum):
    STABLE = 0
    UNREVOKED_PARTITIONS = 1
    """It still holds partitions that it must give up before it can go on."""
    UNRELEASED_PARTITIONS = 2
    """It has its new epoch and waits for partitions that others have not given up yet."""
    UNKNOWN = 127


@dataclass(frozen=True, slots=True)
class ClassicFacet:
    """What a member that speaks the classic protocol in a consumer group brought along."""

    session_timeout_ms: int
    protocols: tuple[tuple[str, bytes], ...]

    @property
    def protocol_type(self) -> str:
        return CONSUMER_PROTOCOL


@dataclass(frozen=True, slots=True)
class ConsumerMember:
    member_id: str
    member_epoch: int = 0
    previous_member_epoch: int = -1
    state: MemberState = MemberState.STABLE
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    rebalance_timeout_ms: int = -1
    subscribed_topic_names: frozenset[str] = frozenset()
    subscribed_topic_regex: str = ""
    server_assignor: str | None = None
    classic: ClassicFacet | None = None
    """None for a member that speaks the consumer protocol."""
    assigned: Assignment = field(default_factory=dict)
    pending_revocation: Assignment = field(default_factory=dict)

    def is_reconciled_to(self, epoch: int) -> bool:
        return self.state is MemberState.STABLE and self.member_epoch == epoch

    def at_epoch(self, epoch: int) -> ConsumerMember:
        """The previous epoch is kept, so that a member whose answer was lost is known again."""
        if epoch == self.member_epoch:
            return self
        return replace(self, member_epoch=epoch, previous_member_epoch=self.member_epoch)

    # Records

    def subscription_record(self, group_id: str) -> GroupRecord:
        classic = None
        if self.classic is not None:
            classic = ClassicMemberMetadata(
                self.classic.session_timeout_ms,
                [ClassicProtocol(name, metadata) for name, metadata in self.classic.protocols],
            )
        return GroupRecord(
            ConsumerGroupMemberMetadataKey(group_id, self.member_id),
            ConsumerGroupMemberMetadataValue(
                self.instance_id,
                self.rack_id,
                self.client_id,
                self.client_host,
                sorted(self.subscribed_topic_names),
                self.subscribed_topic_regex,
                self.rebalance_timeout_ms,
                self.server_assignor,
                classic,
            ),
        )

    def with_subscription(self, value: ConsumerGroupMemberMetadataValue) -> ConsumerMember:
        stored = value.classic_member_metadata
        classic = None
        if stored is not None:
            protocols = tuple((protocol.name, protocol.metadata) for protocol in stored.supported_protocols)
            classic = ClassicFacet(stored.session_timeout_ms, protocols)
        return replace(
            self,
            instance_id=value.instance_id,
            rack_id=value.rack_id,
            client_id=value.client_id,
            client_host=value.client_host,
            subscribed_topic_names=frozenset(value.subscribed_topic_names or ()),
            subscribed_topic_regex=value.subscribed_topic_regex or "",
            rebalance_timeout_ms=value.rebalance_timeout_ms,
            server_assignor=value.server_assignor,
            classic=classic,
        )

    def assignment_record(self, group_id: str) -> GroupRecord:
        return GroupRecord(
            ConsumerGroupCurrentMemberAssignmentKey(group_id, self.member_id),
            ConsumerGroupCurrentMemberAssignmentValue(
                self.member_epoch,
                self.previous_member_epoch,
                self.state,
                to_stored(self.assigned),
                to_stored(self.pending_revocation),
            ),
        )

    def with_assignment(self, value: ConsumerGroupCurrentMemberAssignmentValue) -> ConsumerMember:
        known = value.state in MemberState._value2member_map_
        return replace(
            self,
            member_epoch=value.member_epoch,
            previous_member_epoch=value.previous_member_epoch,
            state=MemberState(value.state) if known else MemberState.UNKNOWN,
            assigned=from_stored(value.assigned_partitions),
            pending_revocation=from_stored(value.partitions_pending_revocation),
        )

    def without_assignment(self) -> ConsumerMember:
        return replace(
            self,
            member_epoch=LEAVE_EPOCH,
            previous_member_epoch=LEAVE_EPOCH,
            assigned=NO_PARTITIONS,
            pending_revocation=NO_PARTITIONS,
        )


def to_stored(assignment: Assignment) -> list[TopicPartitions]:
    return [TopicPartitions(topic_id, sorted(partitions)) for topic_id, partitions in assignment.items()]


def from_stored(stored: Iterable[TopicPartitions]) -> Assignment:
    return {each.topic_id: frozenset(each.partitions) for each in stored if each.partitions}
