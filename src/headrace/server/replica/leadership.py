"""What a leader knows about its followers, and which of them count.

The high watermark is the smallest log end offset in the maximal ISR: a replica being removed counts until the
controller has confirmed it, one being added counts from the proposal on. A leader cut off from the controller can
therefore never acknowledge alone. Pure bookkeeping: no I/O, no clock of its own.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from headrace.server.cluster.image import Partition as PartitionState

UNKNOWN = -1


class Follower:
    """One follower as its fetches show it."""

    __slots__ = (
        "_end_at_last_fetch",
        "_last_fetch_at",
        "broker_epoch",
        "caught_up_at",
        "log_end_offset",
        "log_start_offset",
        "refused_at",
    )

    def __init__(self, now: float, in_sync: bool) -> None:
        self.log_end_offset = UNKNOWN
        self.log_start_offset = UNKNOWN
        self.broker_epoch = UNKNOWN
        self.caught_up_at = now if in_sync else float("-inf")
        """When it last had everything; a new leader gives the ISR it inherits time to fetch."""
        self.refused_at = float("-inf")
        """When the controller last refused it a place in the ISR."""
        self._last_fetch_at = now
        self._end_at_last_fetch = UNKNOWN

    def fetched(
        self, offset: int, leader_end: int, broker_epoch: int, now: float, log_start_offset: int = 0
    ) -> None:
        """It fetches from `offset`, so it has everything before that, from its log start on."""
        if offset >= leader_end:
            self.caught_up_at = now
        elif offset >= self._end_at_last_fetch >= 0:
            self.caught_up_at = max(self.caught_up_at, self._last_fetch_at)
        self.log_end_offset = offset
        self.log_start_offset = log_start_offset
        self.broker_epoch = broker_epoch
        self._last_fetch_at = now
        self._end_at_last_fetch = leader_end

    def left(self) -> None:
        """It no longer fetches the partition, so its last offset is no longer reliable."""
        self.log_end_offset = UNKNOWN
        self._end_at_last_fetch = UNKNOWN


class Leadership:
    """One leader epoch of one partition."""

    __slots__ = (
        "_broker_id",
        "epoch_start",
        "followers",
        "isr",
        "partition_epoch",
        "proposed",
    )

    def __init__(self, state: PartitionState, broker_id: int, log_end_offset: int, now: float) -> None:
        self._broker_id = broker_id
        self.epoch_start = log_end_offset
        """Where this leader epoch began; a replica joins the ISR only once it has reached that."""
        self.isr: frozenset[int] = frozenset()
        self.partition_epoch = UNKNOWN
        self.followers: dict[int, Follower] = {}
        self.proposed: frozenset[int] | None = None
        """An ISR the controller was asked for and has not answered."""
        self.adopt(state, now)

    def adopt(self, state: PartitionState, now: float) -> None:
        """Apply the controller's decision, unless a newer one is known already."""
        if state.partition_epoch <= self.partition_epoch:
            return
        self.partition_epoch = state.partition_epoch
        self.isr = frozenset(state.isr)
        self.proposed = None
        self.followers = {
            replica: self.followers.get(replica) or Follower(now, replica in self.isr)
            for replica in state.replicas
            if replica != self._broker_id
        }

    def confirm(self, isr: Collection[int], partition_epoch: int) -> None:
        """The controller answered a proposal."""
        if partition_epoch > self.partition_epoch:
            self.partition_epoch = partition_epoch
            self.isr = frozenset(isr)
        self.proposed = None

    def withdraw(self, now: float) -> None:
        """The controller refused the proposal; what it last confirmed holds."""
        for replica, follower in self.followers.items():
            if self.proposed is not None and replica in self.proposed and replica not in self.isr:
                follower.refused_at = now
        self.proposed = None

    @property
    def maximal_isr(self) -> frozenset[int]:
        return self.isr if self.proposed is None else self.isr | self.proposed

    def committed_end(self, log_end_offset: int) -> int:
        """How far the high watermark may move: every replica that counts has everything before it."""
        end = log_end_offset
        for replica in self.maximal_isr:
            follower = self.followers.get(replica)
            if follower is not None and follower.log_end_offset < end:
                end = follower.log_end_offset
        return end

    def may_join(self, replica: int, high_watermark: int) -> bool:
        """Whether a replica outside the ISR has caught up so that it can be added."""
        follower = self.followers.get(replica)
        return (
            follower is not None
            and self.proposed is None
            and replica not in self.isr
            and follower.log_end_offset >= max(high_watermark, self.epoch_start)
        )

    def out_of_sync(
        self, log_end_offset: int, now: float, longest: float, heard_from: Mapping[int, float]
    ) -> frozenset[int]:
        """ISR members that have not caught up, or not been heard from, for `longest` seconds.

        A follower that has everything does not name the partition in its fetches, so any fetch from it shows that it still
        has everything: otherwise the first record after a quiet time would make every follower look late.
        """
        late = set()
        for replica in self.isr:
            follower = self.followers.get(replica)
            if follower is None:
                continue
            if follower.log_end_offset >= log_end_offset:
                follower.caught_up_at = max(follower.caught_up_at, heard_from.get(replica, float("-inf")))
            if now - follower.caught_up_at > longest:
                late.add(replica)
        return frozenset(late)
