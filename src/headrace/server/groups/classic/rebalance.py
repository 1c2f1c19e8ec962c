"""How a classic group gets from one generation to the next: which members are waited for, how long, and what follows.

Every function changes the group in memory and returns the write that the change needs, often an empty one:
until the leader's assignment is stored, a rebalance is nothing that must survive.
"""

from __future__ import annotations

import logging

from headrace.server.coordinator.write import Write, already_applied
from headrace.server.groups.classic.group import ClassicGroup, ClassicState
from headrace.server.groups.classic.member import ClassicMember
from headrace.server.groups.records import GroupRecord
from headrace.server.groups.state import GroupState
from headrace.wire.errors import ErrorCode, KafkaError
from headrace.wire.messages.join_group import JoinGroupResponse
from headrace.wire.messages.sync_group import SyncGroupResponse

logger = logging.getLogger(__name__)

NEW_MEMBER_JOIN_TIMEOUT_MS = 5 * 60 * 1000
"""A parked first join ends after this long: a client that has gone looks the same as one that waits."""

NOTHING: Write[GroupRecord, None] = Write((), None)


def join_timer(group_id: str) -> tuple[str, str]:
    return ("join", group_id)


def sync_timer(group_id: str) -> tuple[str, str]:
    return ("sync", group_id)


def session_timer(group_id: str, member_id: str) -> tuple[str, str, str]:
    return ("session", group_id, member_id)


# Sessions


def expect_heartbeat(
    state: GroupState, group: ClassicGroup, member: ClassicMember, timeout_ms: int | None = None
) -> None:
    """Start the member's session again."""
    group_id, member_id = group.group_id, member.member_id
    state.timers.set(
        session_timer(group_id, member_id),
        member.session_timeout_ms if timeout_ms is None else timeout_ms,
        lambda: expire_session(state, group_id, member_id),
    )


def expect_rejoin(state: GroupState, group: ClassicGroup, member_id: str, session_timeout_ms: int) -> None:
    """An id was given out: forget it unless its owner joins with it in time."""
    group_id = group.group_id
    state.timers.set(
        session_timer(group_id, member_id),
        session_timeout_ms,
        lambda: expire_session(state, group_id, member_id),
    )


def expire_session(state: GroupState, group_id: str, member_id: str) -> Write[GroupRecord, None]:
    group = state.groups.get(group_id)
    if not isinstance(group, ClassicGroup):
        return NOTHING
    if member_id in group.pending_joins:
        group.remove(member_id)
        return complete_join(state, group) if _waits_for_nobody(group) else NOTHING
    member = group.members.get(member_id)
    if member is None or member.may_be_silent:
        return NOTHING
    logger.info("Group %s: member %s has not been heard of within its session.", group_id, member_id)
    return remove_member(state, group, member, f"member {member_id} was silent for its session timeout")


def remove_member(
    state: GroupState, group: ClassicGroup, member: ClassicMember, reason: str
) -> Write[GroupRecord, None]:
    forget_member(state, group, member)
    if group.state in (ClassicState.STABLE, ClassicState.COMPLETING_REBALANCE):
        return rebalance(state, group, reason)
    return complete_join(state, group) if _waits_for_nobody(group) else NOTHING


def forget_member(state: GroupState, group: ClassicGroup, member: ClassicMember) -> None:
    state.timers.cancel(session_timer(group.group_id, member.member_id))
    unknown = ErrorCode.UNKNOWN_MEMBER_ID
    group.answer_join(member, JoinGroupResponse(error_code=unknown))
    group.answer_sync(member, SyncGroupResponse(error_code=unknown))
    group.remove(member.member_id)


def _waits_for_nobody(group: ClassicGroup) -> bool:
    return group.state is ClassicState.PREPARING_REBALANCE and group.all_joined


# Joining


def rebalance(state: GroupState, group: ClassicGroup, reason: str) -> Write[GroupRecord, None]:
    """Start a rebalance, or finish the one under way if the last member it waited for is here."""
    if group.can_rebalance:
        return prepare(state, group, reason)
    return complete_join_if_ready(state, group)


def prepare(state: GroupState, group: ClassicGroup, reason: str) -> Write[GroupRecord, None]:
    """All members must join again; those that wait for an assignment get REBALANCE_IN_PROGRESS."""
    if group.state is ClassicState.COMPLETING_REBALANCE:
        _reset_assignments(state, group, ErrorCode.REBALANCE_IN_PROGRESS)
    group.pending_syncs.clear()
    state.timers.cancel(sync_timer(group.group_id))
    initial = group.is_empty
    group.transition_to(ClassicState.PREPARING_REBALANCE, state.clock.now_ms())
    logger.info("Group %s rebalances after generation %d: %s.", group.group_id, group.generation, reason)
    if initial:
        delay = state.config.initial_rebalance_delay_ms
        _wait_for_more(state, group, delay, max(group.rebalance_timeout_ms - delay, 0))
        return NOTHING
    if group.all_joined:
        return complete_join(state, group)
    _schedule_completion(state, group)
    return NOTHING


def _wait_for_more(state: GroupState, group: ClassicGroup, delay_ms: int, left_ms: int) -> None:
    """A new group waits a while for its other members, longer as long as they keep coming."""
    group_id = group.group_id
    state.timers.set(
        join_timer(group_id), delay_ms, lambda: _initial_delay_over(state, group_id, delay_ms, left_ms)
    )


def _initial_delay_over(
    state: GroupState, group_id: str, delay_ms: int, left_ms: int
) -> Write[GroupRecord, None]:
    group = state.groups.get(group_id)
    if not isinstance(group, ClassicGroup) or group.state is not ClassicState.PREPARING_REBALANCE:
        return NOTHING
    if group.new_member_added and left_ms > 0:
        group.new_member_added = False
        next_delay = min(state.config.initial_rebalance_delay_ms, left_ms)
        _wait_for_more(state, group, next_delay, max(left_ms - delay_ms, 0))
        return NOTHING
    return complete_join(state, group)


def _schedule_completion(state: GroupState, group: ClassicGroup) -> None:
    group_id = group.group_id
    state.timers.set(
        join_timer(group_id), group.rebalance_timeout_ms, lambda: _rebalance_timeout(state, group_id)
    )


def _rebalance_timeout(state: GroupState, group_id: str) -> Write[GroupRecord, None]:
    group = state.groups.get(group_id)
    if not isinstance(group, ClassicGroup) or group.state is not ClassicState.PREPARING_REBALANCE:
        return NOTHING
    return complete_join(state, group)


def complete_join_if_ready(state: GroupState, group: ClassicGroup) -> Write[GroupRecord, None]:
    first = group.previous_state is ClassicState.EMPTY  # the initial delay decides, not the first to come
    return complete_join(state, group) if _waits_for_nobody(group) and not first else NOTHING


def complete_join(state: GroupState, group: ClassicGroup) -> Write[GroupRecord, None]:
    """The join phase is over: members that have not joined are removed, the rest form the next generation."""
    state.timers.cancel(join_timer(group.group_id))
    for member in list(group.members.values()):
        if member.awaiting_join is None and member.instance_id is None:
            logger.info("Group %s: member %s did not join in time.", group.group_id, member.member_id)
            group.remove(member.member_id)
            state.timers.cancel(session_timer(group.group_id, member.member_id))
    if group.members and not group.elect_joined_leader():
        # Only static members are left and none of them is here: their sessions decide.
        _schedule_completion(state, group)
        return NOTHING
    group.next_generation(state.clock.now_ms())
    if group.is_empty:
        logger.info("Group %s is empty after generation %d.", group.group_id, group.generation)
        return Write([group.to_record({})], None, apply=already_applied)
    logger.info(
        "Group %s is in generation %d with %d members.",
        group.group_id,
        group.generation,
        len(group.members),
    )
    for member in list(group.members.values()):
        group.answer_join(member, group.join_response(member.member_id))
        expect_heartbeat(state, group, member)
        member.is_new = False
        group.pending_syncs.add(member.member_id)
    _expect_syncs(state, group)
    return NOTHING


# Syncing


def _expect_syncs(state: GroupState, group: ClassicGroup) -> None:
    group_id, generation = group.group_id, group.generation
    state.timers.set(
        sync_timer(group_id), group.rebalance_timeout_ms, lambda: _expire_syncs(state, group_id, generation)
    )


def _expire_syncs(state: GroupState, group_id: str, generation: int) -> Write[GroupRecord, None]:
    """Remove members that joined but never asked for their assignment."""
    group = state.groups.get(group_id)
    if not isinstance(group, ClassicGroup) or group.generation != generation or not group.pending_syncs:
        return NOTHING
    if group.state not in (ClassicState.COMPLETING_REBALANCE, ClassicState.STABLE):
        return NOTHING
    late = sorted(group.pending_syncs)
    for member_id in late:
        group.remove(member_id)
        state.timers.cancel(session_timer(group_id, member_id))
    return prepare(state, group, f"{', '.join(late)} did not sync in time")


def synced(state: GroupState, group: ClassicGroup, member_id: str) -> None:
    group.pending_syncs.discard(member_id)
    if not group.pending_syncs:
        state.timers.cancel(sync_timer(group.group_id))


def store_assignments(
    state: GroupState, group: ClassicGroup, assignments: dict[str, bytes]
) -> Write[GroupRecord, None]:
    """The leader has assigned: every member gets its answer once the assignment is stored."""
    generation = group.generation

    def finish(error: KafkaError | None) -> None:
        if group.state is not ClassicState.COMPLETING_REBALANCE or group.generation != generation:
            return  # a member came or went meanwhile, and the next rebalance has taken over
        if error is not None:
            _reset_assignments(state, group, error.code)
            prepare(state, group, f"the assignment could not be stored ({error})")
            return
        group.transition_to(ClassicState.STABLE, state.clock.now_ms())
        for member in group.members.values():
            member.assignment = assignments.get(member.member_id, b"")
        _answer_syncs(state, group, ErrorCode.NONE)

    return Write([group.to_record(assignments)], None, apply=already_applied, finish=finish)


def _reset_assignments(state: GroupState, group: ClassicGroup, error: ErrorCode) -> None:
    for member in group.members.values():
        member.assignment = b""
    _answer_syncs(state, group, error)


def _answer_syncs(state: GroupState, group: ClassicGroup, error: ErrorCode) -> None:
    for member in list(group.members.values()):
        response = sync_response(group, member) if not error else SyncGroupResponse(error_code=error)
        if group.answer_sync(member, response):
            expect_heartbeat(state, group, member)


def sync_response(group: ClassicGroup, member: ClassicMember) -> SyncGroupResponse:
    return SyncGroupResponse(
        protocol_type=group.protocol_type, protocol_name=group.protocol, assignment=member.assignment
    )
