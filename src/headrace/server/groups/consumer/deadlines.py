"""The names of a consumer group member's deadlines."""

from __future__ import annotations

from headrace.server.groups.state import GroupState

SESSION = "session"
REBALANCE = "rebalance"
JOIN = "member-join"
SYNC = "member-sync"


def cancel_all(state: GroupState, group_id: str, member_id: str) -> None:
    for kind in (SESSION, REBALANCE, JOIN, SYNC):
        state.timers.cancel((kind, group_id, member_id))
