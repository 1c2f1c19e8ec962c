"""The next state of a partition: its leader, its ISR, and whether a reassignment is complete.

Pure functions. With unclean election off, a leader is always a member of the ISR. Every change of leader raises the leader epoch,
and every change of any kind the partition epoch. The ISR is never empty.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence

from headrace.server.cluster.image import NO_LEADER, Partition

Acceptable = Callable[[int], bool]
"""Whether a broker may lead now."""


class Election(enum.Enum):
    PREFERRED = "preferred"
    """The first replica if it can lead, else the current leader, else any replica in sync."""
    ONLINE = "online"
    """The current leader if it still can lead, else the first replica in sync."""
    UNCLEAN = "unclean"
    """Like ONLINE, but any live replica rather than none: acknowledged records may be lost."""


def next_state(
    partition: Partition,
    acceptable: Acceptable,
    *,
    election: Election = Election.ONLINE,
    isr: Sequence[int] | None = None,
    replicas: Sequence[int] | None = None,
    adding: Sequence[int] | None = None,
    removing: Sequence[int] | None = None,
    recovering: bool | None = None,
    new_epoch: bool = False,
) -> Partition:
    """`partition` with the given changes, a reassignment completed if possible, and a leader elected.

    An empty `isr` keeps the old one, since its last members are known to have everything. `new_epoch` raises the leader epoch even
    if the leader stays, for a leader that was away.
    """
    target_isr = tuple(isr) if isr else partition.isr
    target_replicas = partition.replicas if replicas is None else tuple(replicas)
    target_adding = partition.adding if adding is None else tuple(adding)
    target_removing = partition.removing if removing is None else tuple(removing)
    if target_adding or target_removing:
        kept = tuple(replica for replica in target_replicas if replica not in target_removing)
        kept_isr = tuple(replica for replica in target_isr if replica not in target_removing)
        if kept_isr and set(kept) <= set(kept_isr):
            target_replicas, target_isr, target_adding, target_removing = kept, kept_isr, (), ()

    def valid(replica: int) -> bool:
        return replica in target_isr and acceptable(replica)

    target_recovering = partition.recovering if recovering is None else recovering
    leader = _elect(partition.leader, target_replicas, valid, election)
    if leader == NO_LEADER and election is Election.UNCLEAN:
        leader = next((replica for replica in target_replicas if acceptable(replica)), NO_LEADER)
        if leader != NO_LEADER:
            target_isr = (leader,)
            target_recovering = True
    left = target_replicas is not partition.replicas and not set(partition.replicas) <= set(target_replicas)
    raised = leader != partition.leader or left or (new_epoch and leader != NO_LEADER)
    state = Partition(
        replicas=target_replicas,
        isr=target_isr,
        leader=leader,
        leader_epoch=partition.leader_epoch + raised,
        partition_epoch=partition.partition_epoch,
        adding=target_adding,
        removing=target_removing,
        recovering=target_recovering,
    )
    return state if state == partition else state._replace(partition_epoch=partition.partition_epoch + 1)


def _elect(leader: int, replicas: tuple[int, ...], valid: Acceptable, election: Election) -> int:
    if election is Election.PREFERRED and valid(replicas[0]):
        return replicas[0]
    if valid(leader):
        return leader
    return next((replica for replica in replicas if valid(replica)), NO_LEADER)
