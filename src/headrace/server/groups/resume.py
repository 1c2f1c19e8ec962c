"""What starts when a shard has been loaded: the sessions of its members, and the expiry of old offsets."""

from __future__ import annotations

from headrace.server.coordinator.write import Write
from headrace.server.groups.classic import rebalance
from headrace.server.groups.classic.group import ClassicGroup
from headrace.server.groups.consumer import sessions
from headrace.server.groups.offsets.delete import expire
from headrace.server.groups.records import GroupRecord
from headrace.server.groups.state import GroupState


def resume(state: GroupState) -> None:
    """Members were heard of by another coordinator, or before a restart: each gets a whole session."""
    for group in list(state.groups.values()):
        if isinstance(group, ClassicGroup):
            for member in list(group.members.values()):
                rebalance.expect_heartbeat(state, group, member)
            if len(group.members) > state.config.max_size:
                rebalance.prepare(state, group, "the group is larger than group.max.size allows")
        else:
            for consumer in group.members.values():
                sessions.expect_heartbeat(state, group.group_id, consumer)
                sessions.expect_revocation(state, group.group_id, consumer)
    if state.share_groups:
        _resume_share_groups(state)
    _schedule_expiry(state)


def _resume_share_groups(state: GroupState) -> None:
    # Imported here: most brokers have none.
    from headrace.server.groups.share import heartbeat

    for group in state.share_groups.values():
        for member_id in group.members:
            heartbeat.expect_heartbeat(state, group.group_id, member_id)


def _schedule_expiry(state: GroupState) -> None:
    def check() -> Write[GroupRecord, None]:
        _schedule_expiry(state)
        return _one_by_one(state, expire(state))

    state.timers.set("expiry", state.config.offsets_retention_check_interval_ms, check)


def _one_by_one(state: GroupState, writes: list[Write[GroupRecord, None]]) -> Write[GroupRecord, None]:
    """The first of them now, the next in the loop's next turn."""
    if not writes:
        return Write((), None)
    if len(writes) > 1:
        state.timers.set("expiry-rest", 0, lambda: _one_by_one(state, writes[1:]))
    return writes[0]
