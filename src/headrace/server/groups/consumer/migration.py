"""A live group that changes protocol: classic to consumer when the first new-style member joins, and back
when the last one has gone. Members keep their partitions as far as they can be known."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Collection, Mapping

from headrace.server.coordinator.write import Write
from headrace.server.groups.classic import rebalance
from headrace.server.groups.classic.group import ClassicGroup, ClassicState
from headrace.server.groups.classic.member import ClassicMember
from headrace.server.groups.consumer.deadlines import cancel_all
from headrace.server.groups.consumer.group import ConsumerGroup
from headrace.server.groups.consumer.member import NO_PARTITIONS, Assignment, ClassicFacet, ConsumerMember
from headrace.server.groups.consumer_protocol import (
    CONSUMER_PROTOCOL,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    version_of,
)
from headrace.server.groups.records import GroupRecord
from headrace.server.groups.state import GroupState
from headrace.server.groups.topics import Topics
from headrace.wire.codec import WireError
from headrace.wire.errors import ErrorCode, KafkaError
from headrace.wire.messages.consumer_protocol_assignment import (
    ConsumerProtocolAssignment,
    TopicPartition,
)

logger = logging.getLogger(__name__)


# Classic → consumer


def upgrade(state: GroupState, classic: ClassicGroup, records: list[GroupRecord]) -> ConsumerGroup:
    """The consumer group that a classic one becomes, with the records that make it so."""
    if not state.config.upgrade:
        raise _cannot_upgrade(classic, "group.consumer.migration.policy forbids it")
    if not classic.uses_consumer_protocol:
        raise _cannot_upgrade(
            classic, f"its protocol type is {classic.protocol_type}, not {CONSUMER_PROTOCOL}"
        )
    if len(classic.members) > state.config.consumer_max_size:
        raise _cannot_upgrade(classic, "it has more members than group.consumer.max.size allows")
    group = ConsumerGroup(classic.group_id)
    made: list[GroupRecord] = []
    try:
        members = [_to_consumer(classic, member, state.topics) for member in classic.members.values()]
    except WireError as error:
        raise _cannot_upgrade(classic, f"a member's subscription cannot be read ({error})") from None
    made += [member.subscription_record(group.group_id) for member in members]
    made.append(group.epoch_record(classic.generation, 0))
    made += [group.target_record(member.member_id, member.assigned) for member in members]
    made.append(group.target_epoch_record(classic.generation))
    made += [member.assignment_record(group.group_id) for member in members]
    for record in made:
        group.replay(record)
    records += classic.tombstones()
    records += made
    return group


def dissolve(state: GroupState, classic: ClassicGroup) -> None:
    """The upgrade is in the log: members that wait for a rebalance of the classic group join again, into the new one."""
    logger.info("Group %s has become a consumer group.", classic.group_id)
    classic.answer_all(ErrorCode.REBALANCE_IN_PROGRESS)
    state.timers.cancel(rebalance.join_timer(classic.group_id))
    state.timers.cancel(rebalance.sync_timer(classic.group_id))


def _cannot_upgrade(group: ClassicGroup, reason: str) -> KafkaError:
    return KafkaError(
        ErrorCode.GROUP_ID_NOT_FOUND,
        f"Group {group.group_id} is a classic group with members and cannot become a consumer group: {reason}.",
    )


def _to_consumer(group: ClassicGroup, member: ClassicMember, topics: Topics) -> ConsumerMember:
    subscription = decode_subscription(member.metadata(group.protocol or group.select_protocol()))
    assigned: dict[uuid.UUID, frozenset[int]] = {}
    for each in decode_assignment(member.assignment).assigned_partitions:
        topic_id = topics.topic_id(each.topic)
        if topic_id is not None and each.partitions:
            assigned[topic_id] = frozenset(each.partitions)
    return ConsumerMember(
        member.member_id,
        member_epoch=group.generation,
        previous_member_epoch=group.generation,
        instance_id=member.instance_id,
        rack_id=subscription.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        subscribed_topic_names=frozenset(subscription.topics),
        classic=ClassicFacet(member.session_timeout_ms, member.protocols),
        assigned=assigned,
    )


# Consumer → classic


def can_downgrade(state: GroupState, group: ConsumerGroup, leaving: Collection[str]) -> bool:
    """Whether members stay when these go, and all of them are classic."""
    stay = [member for member in group.members.values() if member.member_id not in leaving]
    return (
        bool(stay)
        and all(member.classic is not None for member in stay)
        and state.config.downgrade
        and len(stay) <= state.config.max_size
    )


def downgrade(state: GroupState, group: ConsumerGroup, leaving: Collection[str]) -> Write[GroupRecord, None]:
    """The group becomes a classic one without the leaving members, and rebalances."""
    classic = to_classic(state, group, leaving)

    def apply() -> None:
        swap_in(state, group, classic)
        rebalance.prepare(state, classic, "the last member of the consumer protocol has gone")

    return Write([*group.tombstones(), stored(classic)], None, apply=apply)


def to_classic(state: GroupState, group: ConsumerGroup, leaving: Collection[str]) -> ClassicGroup:
    classic = ClassicGroup(
        group.group_id,
        state.clock.now_ms(),
        state=ClassicState.STABLE if len(group.members) > len(leaving) else ClassicState.EMPTY,
        generation=group.epoch,
        protocol_type=CONSUMER_PROTOCOL,
    )
    for member in group.members.values():
        if member.member_id not in leaving and member.classic is not None:
            classic.add(
                ClassicMember(
                    member.member_id,
                    member.instance_id,
                    member.client_id,
                    member.client_host,
                    member.rebalance_timeout_ms,
                    member.classic.session_timeout_ms,
                    CONSUMER_PROTOCOL,
                    member.classic.protocols,
                )
            )
    if classic.members:
        classic.protocol = classic.select_protocol()
    topics = state.topics
    for each in classic.members.values():
        target = group.target.get(each.member_id, NO_PARTITIONS)
        version = version_of(each.metadata(classic.protocol))
        each.assignment = encode_assignment(to_consumer_protocol(target, topics), version)
    classic.refresh_subscribed_topics()
    return classic


def stored(classic: ClassicGroup) -> GroupRecord:
    return classic.to_record({each.member_id: each.assignment for each in classic.members.values()})


def swap_in(state: GroupState, group: ConsumerGroup, classic: ClassicGroup) -> None:
    logger.info("Group %s becomes a classic group.", group.group_id)
    for member_id in group.members:
        cancel_all(state, group.group_id, member_id)
    state.groups[group.group_id] = classic
    for member in classic.members.values():
        rebalance.expect_heartbeat(state, classic, member)


def to_consumer_protocol(assignment: Assignment, topics: Topics) -> ConsumerProtocolAssignment:
    """Topic names for topic ids; a topic that is gone is left out."""
    named: Mapping[str | None, frozenset[int]] = {
        topics.topic_name(topic_id): partitions for topic_id, partitions in assignment.items()
    }
    return ConsumerProtocolAssignment(
        [TopicPartition(name, sorted(partitions)) for name, partitions in named.items() if name is not None]
    )
