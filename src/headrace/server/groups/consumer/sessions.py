"""The deadlines of consumer group members, and removing a member when one passes."""

from __future__ import annotations

import logging

from headrace.server.coordinator.write import Write
from headrace.server.groups.consumer import migration
from headrace.server.groups.consumer.deadlines import JOIN, REBALANCE, SESSION, SYNC, cancel_all
from headrace.server.groups.consumer.group import ConsumerGroup
from headrace.server.groups.consumer.member import ConsumerMember, MemberState
from headrace.server.groups.records import GroupRecord
from headrace.server.groups.state import GroupState
from headrace.server.groups.topics import metadata_hash

logger = logging.getLogger(__name__)

NOTHING: Write[GroupRecord, None] = Write((), None)

RETRY_MS = 500
"""When putting a member out cannot be stored, it is tried again: nobody else would notice that the member is dead."""


def expect_heartbeat(state: GroupState, group_id: str, member: ConsumerMember) -> None:
    """Start the member's session again: the broker's for the consumer protocol, its own for the classic."""
    classic = member.classic
    timeout = state.session_timeout_ms(group_id) if classic is None else classic.session_timeout_ms
    _fence_after(state, SESSION, group_id, member.member_id, timeout, "its session expired")


def expect_revocation(state: GroupState, group_id: str, member: ConsumerMember) -> None:
    """No other member can have its partitions until it has given them up, so that has a deadline."""
    name = (REBALANCE, group_id, member.member_id)
    if member.classic is not None:
        return  # it has a deadline to join instead
    if member.state is not MemberState.UNREVOKED_PARTITIONS:
        state.timers.cancel(name)
        return
    _fence_after(
        state,
        REBALANCE,
        group_id,
        member.member_id,
        member.rebalance_timeout_ms,
        "it did not give up its partitions in time",
        member.member_epoch,
    )


def expect_join(state: GroupState, group_id: str, member: ConsumerMember) -> None:
    """A classic member must join again; the time of the first notice counts."""
    if (JOIN, group_id, member.member_id) not in state.timers:
        _fence_after(
            state,
            JOIN,
            group_id,
            member.member_id,
            member.rebalance_timeout_ms,
            "it did not join again in time",
        )


def joined(state: GroupState, group_id: str, member_id: str) -> None:
    state.timers.cancel((JOIN, group_id, member_id))


def expect_sync(state: GroupState, group_id: str, member: ConsumerMember) -> None:
    _fence_after(
        state,
        SYNC,
        group_id,
        member.member_id,
        member.rebalance_timeout_ms,
        "it did not ask for its assignment in time",
    )


def synced(state: GroupState, group_id: str, member_id: str) -> None:
    state.timers.cancel((SYNC, group_id, member_id))


def _fence_after(
    state: GroupState,
    kind: str,
    group_id: str,
    member_id: str,
    milliseconds: int,
    reason: str,
    epoch: int | None = None,
) -> None:
    """With an epoch, only if the member is still in it."""
    name = (kind, group_id, member_id)

    def fence() -> Write[GroupRecord, None]:
        group = state.groups.get(group_id)
        member = group.members.get(member_id) if isinstance(group, ConsumerGroup) else None
        if member is None or not isinstance(group, ConsumerGroup) or epoch not in (None, member.member_epoch):
            return NOTHING
        logger.info("Group %s: member %s is out because %s.", group_id, member_id, reason)
        state.timers.set(name, RETRY_MS, fence)  # cancelled when it is stored
        return remove_members(state, group, [member])

    state.timers.set(name, milliseconds, fence)


def remove_members(
    state: GroupState, group: ConsumerGroup, leaving: list[ConsumerMember]
) -> Write[GroupRecord, None]:
    """Take members out. If only classic members are left, the group becomes a classic one."""
    gone = {member.member_id for member in leaving}
    if migration.can_downgrade(state, group, gone):
        return migration.downgrade(state, group, gone)
    records: list[GroupRecord] = []
    for member_id in sorted(gone):
        records += group.member_tombstones(member_id)
    stay = [member for member in group.members.values() if member.member_id not in gone]
    patterns = {member.subscribed_topic_regex for member in stay}
    records += [group.regex_tombstone(regex) for regex in group.regexes if regex not in patterns]
    subscribed = frozenset().union(*(group.topics_of(member) for member in stay))
    records.append(group.epoch_record(group.epoch + 1, metadata_hash(state.topics, subscribed)))

    def apply() -> None:
        state.replay_groups(records)
        for member_id in gone:
            cancel_all(state, group.group_id, member_id)

    return Write(records, None, apply=apply)
