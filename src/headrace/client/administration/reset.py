"""Where to move a group's offsets: each scenario of Kafka's tool is a function from partitions to new offsets.

Nothing here changes anything but `carry_out`, once the user has seen the plan. A share group's start offsets are moved like the
committed offsets of other groups.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from headrace.client.administration import group_offsets, groups, offsets, share_groups
from headrace.client.administration.errors import NotPossible, Refused
from headrace.client.administration.names import Partition
from headrace.client.administration.session import Session
from headrace.client.errors import BrokerError
from headrace.wire.errors import ErrorCode

Plan = dict[Partition, int]
Warn = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Target:
    """Where to move to; one of these is given."""

    earliest: bool = False
    latest: bool = False
    current: bool = False
    offset: int | None = None
    shift: int | None = None
    timestamp: int | None = None
    """Milliseconds since 1970."""


def plan(session: Session, group: str, partitions: Sequence[Partition], target: Target, warn: Warn) -> Plan:
    """The new offset of each partition; `warn` takes a sentence about each that is not quite what was asked."""
    if target.earliest:
        return offsets.earliest(session, partitions)
    if target.latest:
        return offsets.latest(session, partitions)
    if target.current:
        return _current(session, group, partitions)
    if target.offset is not None:
        return within_range(session, dict.fromkeys(partitions, target.offset), warn)
    if target.shift is not None:
        return _shifted(session, group, partitions, target.shift, warn)
    if target.timestamp is not None:
        return _at_time(session, partitions, target.timestamp, warn)
    raise ValueError("a reset needs a target")


def committed(session: Session, group: str) -> dict[Partition, group_offsets.Committed]:
    """What the group has committed; of a share group, where it begins."""
    if not share_groups.is_one(session, group):
        return group_offsets.committed(session, group)
    return {
        partition: group_offsets.Committed(place.start, place.leader_epoch, "")
        for partition, place in share_groups.places(session, group).items()
        if place.start is not None
    }


def carry_out(session: Session, group: str, plan: Plan) -> dict[Partition, BrokerError]:
    """Returns the refusals."""
    if share_groups.is_one(session, group):
        return share_groups.move(session, group, plan)
    return group_offsets.commit(session, group, plan)


def check_inactive(session: Session, group: str) -> bool:
    """Whether there is such a group; raises NotPossible while it has members, which own its offsets."""
    try:
        state = groups.describe(session, group).state
    except Refused as refused:
        if refused.code == ErrorCode.GROUP_ID_NOT_FOUND:
            return False
        raise
    if state not in ("Empty", "Dead"):
        raise NotPossible(
            f"Assignments can only be reset if the group '{group}' is inactive, but the current state is {state}; "
            "stop its members first."
        )
    return True


def within_range(session: Session, plan: Plan, warn: Warn) -> Plan:
    """Offsets outside of what a partition holds are moved to its nearer end."""
    first, end = offsets.earliest(session, list(plan)), offsets.latest(session, list(plan))
    kept: Plan = {}
    for p, offset in plan.items():
        kept[p] = min(max(offset, first[p]), end[p])
        if kept[p] != offset:
            side = "higher than latest" if offset > end[p] else "lower than earliest"
            warn(
                f"New offset ({offset}) is {side} offset for topic partition {p[0]}-{p[1]}. Value will be set to {kept[p]}."
            )
    return kept


def _shifted(session: Session, group: str, partitions: Sequence[Partition], shift: int, warn: Warn) -> Plan:
    current = committed(session, group)
    for topic, partition in partitions:
        if (topic, partition) not in current:
            raise NotPossible(
                f"Cannot shift offset for partition {topic}-{partition} since there is no current committed offset."
            )
    return within_range(session, {p: current[p].offset + shift for p in partitions}, warn)


def _current(session: Session, group: str, partitions: Sequence[Partition]) -> Plan:
    """What is committed; where nothing is, the end."""
    current = committed(session, group)
    ends = offsets.latest(session, [p for p in partitions if p not in current])
    return {p: current[p].offset if p in current else ends[p] for p in partitions}


def _at_time(session: Session, partitions: Sequence[Partition], timestamp: int, warn: Warn) -> Plan:
    """The first record at or after a time in milliseconds; where there is none, the end."""
    found = offsets.at_time(session, partitions, timestamp)
    ends = offsets.latest(session, [p for p in partitions if found[p] is None])
    plan: Plan = {}
    for p in partitions:
        offset = found[p]
        if offset is None:
            warn(
                f"Partition {p[1]} from topic {p[0]} has no record that young. Falling back to latest known offset."
            )
        plan[p] = ends[p] if offset is None else offset
    return plan
