"""Where one mirrored partition stands: what it has, what the source has, and until when it is known to be complete."""

from __future__ import annotations

import enum
import uuid

from headrace.server.replica.partition import Partition

UNKNOWN = -1


class Phase(enum.Enum):
    UNROUTED = "looking for its leader at the source"
    AWAITING_EPOCH = "waiting for a leader epoch"
    """The source's leader epoch is above this cluster's, which the controller is asked to raise first."""
    FETCHING = "fetching"
    STOPPED = "stopped"
    """The topic failed, is being failed over, or the link is paused."""


class Position:
    """One partition that this broker leads and a link mirrors."""

    __slots__ = (
        "_complete_until_ms",
        "agreed",
        "bytes_in",
        "caught_up_at_ms",
        "discards",
        "missed",
        "partition",
        "phase",
        "records_in",
        "source_end",
        "source_epoch",
        "source_id",
        "source_leader",
        "trouble",
    )

    def __init__(self, partition: Partition, source_id: uuid.UUID) -> None:
        self.partition = partition
        self.source_id = source_id
        self.source_leader = UNKNOWN
        self.source_epoch = UNKNOWN
        self.phase = Phase.UNROUTED
        self.discards = False
        """What only this cluster has may be cut off."""
        self.agreed = False
        """The source has answered that it continues what is here, since this broker fetches it."""
        self.source_end = UNKNOWN
        """The source's high watermark as of its last answer."""
        self.caught_up_at_ms: int | None = None
        """While it has all that the source has: when the source was last asked. None while it is behind."""
        self._complete_until_ms = UNKNOWN
        self.missed = 0
        """Records that the source deleted before they were mirrored."""
        self.records_in = 0
        self.bytes_in = 0
        """Since this broker leads the partition."""
        self.trouble = ""
        """Why it does not go on, as a sentence; empty while it does."""

    @property
    def key(self) -> tuple[uuid.UUID, int]:
        """As the source knows it."""
        return self.source_id, self.partition.index

    @property
    def complete_until_ms(self) -> int:
        """All that the source had acknowledged by then is here; -1 while that is not known."""
        if self.caught_up_at_ms is not None:
            return self.caught_up_at_ms
        return self._complete_until_ms

    def answered(self, source_end: int, asked_at_ms: int) -> None:
        """The source was asked at that time, and its committed records end there."""
        self.source_end = source_end
        self.trouble = ""
        if self.partition.log.log_end_offset >= source_end:
            self.caught_up_at_ms = asked_at_ms
        else:
            self.fell_silent()

    def fell_silent(self) -> None:
        """It is behind, or the source is out of reach: from now on it is not known what the source has."""
        if self.caught_up_at_ms is not None:
            self._complete_until_ms = self.caught_up_at_ms
            self.caught_up_at_ms = None

    @property
    def lag(self) -> int:
        """Records that the source is known to have and this cluster has not; -1 while that is not known."""
        if self.source_end < 0:
            return UNKNOWN
        return max(0, self.source_end - self.partition.log.log_end_offset)

    @property
    def lag_bytes(self) -> int:
        """Estimated from the size of the records that came last; -1 while that is not known."""
        lag = self.lag
        if lag <= 0:
            return lag
        return lag * self.bytes_in // self.records_in if self.records_in else UNKNOWN

    def lag_seconds(self, now_ms: int) -> float:
        """How far back the last moment lies until which this mirror is complete; -1 while there is none."""
        if self.caught_up_at_ms is not None:
            return 0.0
        if self._complete_until_ms < 0:
            return UNKNOWN
        return max(0, now_ms - self._complete_until_ms) / 1000
