"""How one member gets from what it has to what the target assignment gives it.

    STABLE ──new target──▶ gives up what is not in the target ──▶ UNREVOKED_PARTITIONS (old epoch)
       ▲                                                                │ it no longer reports them
       │                                                                ▼
       └──all of the target is free or its own── takes the target's epoch, and of it what is free
                                                                        │ the rest is held by others
                                                                        ▼
                                             UNRELEASED_PARTITIONS (new epoch), taken as they become free

A partition is never given to a member while another has not given it up.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import replace

from headrace.server.groups.consumer.member import NO_PARTITIONS, Assignment, ConsumerMember, MemberState
from headrace.wire.errors import ErrorCode, KafkaError

Owned = Assignment | None
"""The partitions a member reports to hold; None when it left them out because they have not changed."""


def reconcile(
    member: ConsumerMember,
    target_epoch: int,
    target: Assignment,
    is_owned: Callable[[uuid.UUID, int], bool],
    owned: Owned,
) -> ConsumerMember:
    """The member's next state, or the same one if it cannot move yet."""
    match member.state:
        case MemberState.STABLE:
            if member.member_epoch == target_epoch:
                return member
            epoch = member.member_epoch
        case MemberState.UNREVOKED_PARTITIONS:
            if _still_holds(owned, member.pending_revocation):
                return member
            epoch = member.member_epoch + 1
        case MemberState.UNRELEASED_PARTITIONS:
            epoch = member.member_epoch
        case _:
            # Written by a newer coordinator. Start again from nothing, which the member must agree to.
            if owned is None or owned:
                raise KafkaError(
                    ErrorCode.FENCED_MEMBER_EPOCH,
                    f"Member {member.member_id} is in an unknown state; it must give up its partitions and rejoin.",
                )
            epoch = target_epoch
    return _advance(member, epoch, target_epoch, target, is_owned, owned)


def _still_holds(owned: Owned, partitions: Assignment) -> bool:
    if owned is None:
        return True
    return any(held & partitions.get(topic_id, frozenset()) for topic_id, held in owned.items())


def _advance(
    member: ConsumerMember,
    epoch: int,
    target_epoch: int,
    target: Assignment,
    is_owned: Callable[[uuid.UUID, int], bool],
    owned: Owned,
) -> ConsumerMember:
    nothing: frozenset[int] = frozenset()
    kept: dict[uuid.UUID, frozenset[int]] = {}
    revoked: dict[uuid.UUID, frozenset[int]] = {}
    reached: dict[uuid.UUID, frozenset[int]] = {}
    unreleased = False
    for topic_id in target.keys() | member.assigned.keys():
        wanted = target.get(topic_id, nothing)
        had = member.assigned.get(topic_id, nothing)
        missing = wanted - had
        free = frozenset(partition for partition in missing if not is_owned(topic_id, partition))
        unreleased = unreleased or len(free) < len(missing)
        for part, partitions in (
            (kept, had & wanted),
            (revoked, had - wanted),
            (reached, had & wanted | free),
        ):
            if partitions:
                part[topic_id] = partitions
    if revoked and _still_holds(owned, revoked):
        return replace(
            member.at_epoch(epoch),
            state=MemberState.UNREVOKED_PARTITIONS,
            assigned=kept,
            pending_revocation=revoked,
        )
    return replace(
        member.at_epoch(target_epoch),
        state=MemberState.UNRELEASED_PARTITIONS if unreleased else MemberState.STABLE,
        assigned=reached,
        pending_revocation=NO_PARTITIONS,
    )
