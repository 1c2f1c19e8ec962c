"""What a log remembers about one producer, one of its batches, and a transaction that ended."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import NamedTuple

from headrace.wire.batch import (
    NO_PRODUCER_EPOCH,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    BatchHeader,
    advance_sequence,
)


class AppendOrigin(enum.Enum):
    """Who made the batch, and so what is checked."""

    CLIENT = "client"
    COORDINATOR = "coordinator"


class BatchMetadata(NamedTuple):
    first_sequence: int
    last_sequence: int
    first_offset: int
    last_offset: int
    timestamp: int

    @classmethod
    def of(cls, header: BatchHeader) -> BatchMetadata:
        first = header.base_sequence
        last = advance_sequence(first, header.last_offset_delta) if first >= 0 else NO_SEQUENCE
        return cls(first, last, header.base_offset, header.last_offset, header.max_timestamp)


class CompletedTransaction(NamedTuple):
    producer_id: int
    first_offset: int
    last_offset: int
    """The offset of its marker."""
    aborted: bool


class VerificationGuard:
    """Proof that a coordinator was asked whether this producer's transaction holds this partition."""

    __slots__ = ("epoch", "lowest_sequence", "started_ms", "supports_epoch_bump")

    def __init__(self, started_ms: int, sequence: int, epoch: int, supports_epoch_bump: bool) -> None:
        self.started_ms = started_ms
        self.lowest_sequence = sequence
        self.epoch = epoch
        self.supports_epoch_bump = supports_epoch_bump

    def observe(self, sequence: int, epoch: int) -> None:
        """A request uses this guard: remember the lowest sequence of the newest epoch."""
        if epoch == self.epoch:
            self.lowest_sequence = min(self.lowest_sequence, sequence)
        elif epoch > self.epoch:
            self.epoch, self.lowest_sequence = epoch, sequence


@dataclass(slots=True)
class ProducerEntry:
    """What a partition knows of one producer."""

    producer_id: int
    epoch: int = NO_PRODUCER_EPOCH
    coordinator_epoch: int = -1
    last_timestamp: int = NO_TIMESTAMP
    transaction_first_offset: int = -1
    """Where the open transaction begins; -1 without one."""
    batches: list[BatchMetadata] = field(default_factory=list)
    """The last five of this epoch, oldest first."""

    @property
    def last_sequence(self) -> int:
        return self.batches[-1].last_sequence if self.batches else NO_SEQUENCE

    @property
    def last_offset(self) -> int:
        return self.batches[-1].last_offset if self.batches else -1

    def find(self, first_sequence: int, last_sequence: int) -> BatchMetadata | None:
        """The batch with exactly these sequences, if it is among the last five."""
        for batch in self.batches:
            if batch.first_sequence == first_sequence and batch.last_sequence == last_sequence:
                return batch
        return None

    def move_to_epoch(self, epoch: int) -> None:
        if epoch != self.epoch:
            self.epoch = epoch
            self.batches.clear()
