"""A classic group: its members, its generation and its state, without timers or a log.

Empty ──join──▶ PreparingRebalance ──all joined──▶ CompletingRebalance ──leader's sync stored──▶ Stable
  ▲                │        ▲  ▲                          │                                        │
  └──none joined───┘        │  └──────join, leave, expiry─┘                                        │
                            └─────────────────────join, leave, expiry──────────────────────────────┘
"""

from __future__ import annotations

import enum
from collections import Counter

from headrace.server.groups.classic.member import ClassicMember, Protocols, RespondJoin
from headrace.server.groups.consumer_protocol import CONSUMER_PROTOCOL, subscribed_topics
from headrace.server.groups.messages.classic import GroupMetadataKey, GroupMetadataValue, MemberMetadata
from headrace.server.groups.records import GroupRecord
from headrace.wire.codec import WireError
from headrace.wire.errors import ErrorCode, KafkaError
from headrace.wire.messages.join_group import JoinGroupResponse, JoinGroupResponseMember
from headrace.wire.messages.sync_group import SyncGroupResponse


class ClassicState(enum.Enum):
    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"


_COMES_AFTER = {
    ClassicState.EMPTY: {ClassicState.PREPARING_REBALANCE},
    ClassicState.PREPARING_REBALANCE: {
        ClassicState.EMPTY,
        ClassicState.COMPLETING_REBALANCE,
        ClassicState.STABLE,
    },
    ClassicState.COMPLETING_REBALANCE: {ClassicState.PREPARING_REBALANCE},
    ClassicState.STABLE: {ClassicState.COMPLETING_REBALANCE},
}


class ClassicGroup:
    def __init__(
        self,
        group_id: str,
        now_ms: int | None,
        *,
        state: ClassicState = ClassicState.EMPTY,
        generation: int = 0,
        protocol_type: str | None = None,
        protocol: str | None = None,
        leader: str | None = None,
    ) -> None:
        self.group_id = group_id
        self.state = state
        self.previous_state: ClassicState | None = None
        self.state_since_ms = now_ms
        """None for a group stored in a format that did not keep it."""
        self.generation = generation
        self.protocol_type = protocol_type
        self.protocol = protocol
        self.leader = leader
        self.members: dict[str, ClassicMember] = {}
        self.static_members: dict[str, str] = {}
        self.pending_joins: set[str] = set()
        """Ids given out whose owners have not joined with them yet."""
        self.pending_syncs: set[str] = set()
        self.new_member_added = False
        self.subscribed_topics: frozenset[str] | None = None
        """None when the group is not of consumers, or what they sent cannot be read."""
        self._joins_parked = 0
        self._supporters: Counter[str] = Counter()

    # Members

    @property
    def is_empty(self) -> bool:
        return self.state is ClassicState.EMPTY

    @property
    def uses_consumer_protocol(self) -> bool:
        return self.protocol_type == CONSUMER_PROTOCOL

    @property
    def is_simple(self) -> bool:
        """Offsets without members: a consumer that assigns its partitions itself."""
        return self.protocol_type is None and self.is_empty and not self.pending_joins

    def is_subscribed_to(self, topic: str) -> bool:
        if self.subscribed_topics is None:
            return self.uses_consumer_protocol
        return topic in self.subscribed_topics

    def add(self, member: ClassicMember, respond: RespondJoin | None = None) -> None:
        if not self.members:
            self.protocol_type = member.protocol_type
        if member.instance_id is not None:
            self.static_members[member.instance_id] = member.member_id
        if self.leader is None:
            self.leader = member.member_id
        self.members[member.member_id] = member
        self._supporters.update(name for name, _ in member.protocols)
        self.pending_joins.discard(member.member_id)
        if respond is not None:
            self._park_join(member, respond)

    def remove(self, member_id: str) -> None:
        member = self.members.pop(member_id, None)
        if member is not None:
            self._supporters.subtract(name for name, _ in member.protocols)
            if member.awaiting_join is not None:
                self._joins_parked -= 1
            if member.instance_id is not None:
                self.static_members.pop(member.instance_id, None)
        if self.leader == member_id:
            self.leader = next(iter(self.members), None)
        self.pending_joins.discard(member_id)
        self.pending_syncs.discard(member_id)

    def update(
        self,
        member: ClassicMember,
        protocols: Protocols,
        rebalance_timeout_ms: int,
        session_timeout_ms: int,
        respond: RespondJoin | None,
    ) -> None:
        self._supporters.subtract(name for name, _ in member.protocols)
        self._supporters.update(name for name, _ in protocols)
        member.protocols = protocols
        member.rebalance_timeout_ms = rebalance_timeout_ms
        member.session_timeout_ms = session_timeout_ms
        if respond is not None:
            self._park_join(member, respond)
        elif member.awaiting_join is not None:
            member.awaiting_join = None
            self._joins_parked -= 1

    def replace_static(self, instance_id: str, old_id: str, new_id: str) -> ClassicMember:
        """The instance is back under a new id: it takes the old one's place, and the old one is fenced."""
        old = self.members.pop(old_id)
        fenced = ErrorCode.FENCED_INSTANCE_ID
        self.answer_join(old, JoinGroupResponse(error_code=fenced, member_id=old_id, protocol_name=None))
        self.answer_sync(old, SyncGroupResponse(error_code=fenced))
        member = ClassicMember(
            new_id,
            instance_id,
            old.client_id,
            old.client_host,
            old.rebalance_timeout_ms,
            old.session_timeout_ms,
            old.protocol_type,
            old.protocols,
            old.assignment,
        )
        self.members[new_id] = member
        if self.leader == old_id:
            self.leader = new_id
        self.static_members[instance_id] = new_id
        return member

    def validate_member(self, member_id: str, instance_id: str | None) -> ClassicMember:
        """The member, or UNKNOWN_MEMBER_ID; FENCED_INSTANCE_ID when another now holds its instance id."""
        if instance_id is not None:
            current = self.static_members.get(instance_id)
            if current is not None and current != member_id:
                raise KafkaError(
                    ErrorCode.FENCED_INSTANCE_ID,
                    f"Instance {instance_id} of group {self.group_id} is held by member {current}.",
                )
            if current is None:
                raise self._unknown(member_id)
        member = self.members.get(member_id)
        if member is None:
            raise self._unknown(member_id)
        return member

    def _unknown(self, member_id: str) -> KafkaError:
        return KafkaError(
            ErrorCode.UNKNOWN_MEMBER_ID, f"{member_id} is not a member of group {self.group_id}; join again."
        )

    # Parked joins and syncs

    @property
    def joins_parked(self) -> int:
        return self._joins_parked

    @property
    def all_joined(self) -> bool:
        return self._joins_parked == len(self.members) and not self.pending_joins

    def _park_join(self, member: ClassicMember, respond: RespondJoin) -> None:
        if member.awaiting_join is None:
            self._joins_parked += 1
        member.awaiting_join = respond

    def answer_join(self, member: ClassicMember, response: JoinGroupResponse) -> bool:
        respond = member.awaiting_join
        if respond is None:
            return False
        member.awaiting_join = None
        self._joins_parked -= 1
        respond(response)
        return True

    def answer_sync(self, member: ClassicMember, response: SyncGroupResponse) -> bool:
        respond = member.awaiting_sync
        if respond is None:
            return False
        member.awaiting_sync = None
        respond(response)
        return True

    def answer_all(self, error: ErrorCode) -> None:
        """Every parked join and sync ends with the same error."""
        for member in list(self.members.values()):
            self.answer_join(member, JoinGroupResponse(error_code=error, member_id=member.member_id))
            self.answer_sync(member, SyncGroupResponse(error_code=error))

    # Protocols and generations

    @property
    def rebalance_timeout_ms(self) -> int:
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    def supports(self, protocol_type: str, protocols: Protocols) -> bool:
        if self.is_empty:
            return bool(protocol_type) and bool(protocols)
        return protocol_type == self.protocol_type and any(
            self._supporters[name] == len(self.members) for name, _ in protocols
        )

    def select_protocol(self) -> str:
        """The protocol that all members support and most prefer."""
        candidates = {name for name, count in self._supporters.items() if count == len(self.members)}
        votes = Counter(member.vote(candidates) for member in self.members.values())
        return votes.most_common(1)[0][0]

    @property
    def can_rebalance(self) -> bool:
        return self.state in _COMES_AFTER[ClassicState.PREPARING_REBALANCE]

    def transition_to(self, state: ClassicState, now_ms: int) -> None:
        assert self.state in _COMES_AFTER[state], f"{self.group_id}: {self.state.value} → {state.value}"
        self.previous_state = self.state
        self.state = state
        self.state_since_ms = now_ms

    def elect_joined_leader(self) -> bool:
        """The leader must have joined; if it has not, a member that has replaces it."""
        if self.leader is None:
            return False
        if self.members[self.leader].awaiting_join is not None:
            return True
        joined = next((m for m in self.members.values() if m.awaiting_join is not None), None)
        if joined is None:
            return False
        self.leader = joined.member_id
        return True

    def next_generation(self, now_ms: int) -> None:
        self.generation += 1
        self.pending_syncs.clear()
        if self.members:
            self.protocol = self.select_protocol()
            self.transition_to(ClassicState.COMPLETING_REBALANCE, now_ms)
        else:
            self.protocol = None
            self.transition_to(ClassicState.EMPTY, now_ms)
        self.refresh_subscribed_topics()

    def refresh_subscribed_topics(self) -> None:
        if not self.uses_consumer_protocol:
            self.subscribed_topics = None
            return
        try:
            self.subscribed_topics = frozenset(
                topic
                for member in self.members.values()
                for topic in subscribed_topics(member.metadata(self.protocol))
            )
        except WireError:
            self.subscribed_topics = None

    def joined_members(self) -> list[JoinGroupResponseMember]:
        """What the leader needs to assign."""
        return [
            JoinGroupResponseMember(member.member_id, member.instance_id, member.metadata(self.protocol))
            for member in self.members.values()
        ]

    def join_response(self, member_id: str) -> JoinGroupResponse:
        return JoinGroupResponse(
            generation_id=self.generation,
            protocol_type=self.protocol_type,
            protocol_name=self.protocol,
            leader=self.leader or "",
            member_id=member_id,
            members=self.joined_members() if member_id == self.leader else [],
        )

    # Offsets

    def validate_offset_commit(
        self, member_id: str, instance_id: str | None, generation: int, *, transactional: bool
    ) -> None:
        if generation < 0 and self.is_empty:
            return  # an administrator, or a consumer that assigns its partitions itself
        if generation >= 0 or member_id or instance_id is not None:
            self.validate_member(member_id, instance_id)
            if generation != self.generation:
                raise KafkaError(
                    ErrorCode.ILLEGAL_GENERATION,
                    f"Group {self.group_id} is in generation {self.generation}, not {generation}; join again.",
                )
        elif not transactional:
            raise KafkaError(
                ErrorCode.UNKNOWN_MEMBER_ID,
                f"Group {self.group_id} has members; only they may commit. Stop them first.",
            )
        if not transactional and self.state is ClassicState.COMPLETING_REBALANCE:
            raise KafkaError(ErrorCode.REBALANCE_IN_PROGRESS, f"Group {self.group_id} is rebalancing.")

    def validate_offset_delete(self) -> None:
        if not self.is_empty and not self.uses_consumer_protocol:
            raise self._not_empty()

    def validate_delete(self) -> None:
        if not self.is_empty:
            raise self._not_empty()

    def _not_empty(self) -> KafkaError:
        return KafkaError(
            ErrorCode.NON_EMPTY_GROUP, f"Group {self.group_id} has members; stop them and try again."
        )

    # Records

    def to_record(self, assignments: dict[str, bytes]) -> GroupRecord:
        return GroupRecord(
            GroupMetadataKey(self.group_id),
            GroupMetadataValue(
                self.protocol_type or "",
                self.generation,
                self.protocol,
                self.leader,
                -1 if self.state_since_ms is None else self.state_since_ms,
                [
                    MemberMetadata(
                        member.member_id,
                        member.instance_id,
                        member.client_id,
                        member.client_host,
                        member.rebalance_timeout_ms,
                        member.session_timeout_ms,
                        member.metadata(self.protocol),
                        assignments.get(member.member_id, b""),
                    )
                    for member in self.members.values()
                ],
            ),
        )

    @classmethod
    def from_record(cls, group_id: str, value: GroupMetadataValue) -> ClassicGroup:
        since = value.current_state_timestamp
        group = cls(
            group_id,
            None if since == -1 else since,
            state=ClassicState.STABLE if value.members else ClassicState.EMPTY,
            generation=value.generation,
            protocol_type=value.protocol_type or None,
            protocol=value.protocol,
            leader=value.leader,
        )
        for stored in value.members:
            group.add(
                ClassicMember(
                    stored.member_id,
                    stored.group_instance_id,
                    stored.client_id,
                    stored.client_host,
                    stored.session_timeout if stored.rebalance_timeout == -1 else stored.rebalance_timeout,
                    stored.session_timeout,
                    value.protocol_type,
                    ((value.protocol or "", stored.subscription),),
                    stored.assignment,
                )
            )
        group.refresh_subscribed_topics()
        return group

    def tombstones(self) -> list[GroupRecord]:
        return [GroupRecord(GroupMetadataKey(self.group_id), None)]
