"""Where two logs agree: a follower whose history diverges from the leader's truncates its log there, and nowhere else."""

from __future__ import annotations

from headrace.server.log.partition import PartitionLog


def agreed_end(log: PartitionLog, epoch: int, end_offset: int) -> int:
    """The leader's largest epoch not above this log's last one is `epoch`, and ended at `end_offset` there.

    When this log knows that epoch too, the two agree up to whichever of them ended it first. When it does not, the
    leader's end of it may lie behind records of an older epoch that the leader never had: cut where that one ended
    here, and ask again.
    """
    own_epoch, own_end = log.end_offset_for(epoch)
    if own_epoch < 0:
        return end_offset
    if own_epoch < epoch:
        return own_end
    return min(own_end, end_offset)
