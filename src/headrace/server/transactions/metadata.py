"""What the coordinator knows about one transactional id. Immutable: a step makes the next one."""

from __future__ import annotations

import enum
from typing import NamedTuple

NO_PRODUCER_ID = -1
NO_EPOCH = -1
LAST_EPOCH = 32767
"""The largest epoch; it is only ever used in markers, so that a producer can always be fenced once more."""

TopicPartition = tuple[str, int]


class Status(enum.IntEnum):
    """With the numbers of Kafka's records."""

    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5

    @property
    def label(self) -> str:
        """As Kafka's tools write it: PrepareCommit."""
        return "".join(part.capitalize() for part in self.name.split("_"))

    @property
    def ending(self) -> bool:
        """Decided, but not every partition has its marker."""
        return self is Status.PREPARE_COMMIT or self is Status.PREPARE_ABORT

    @property
    def ended(self) -> bool:
        return self is Status.COMPLETE_COMMIT or self is Status.COMPLETE_ABORT


class Transaction(NamedTuple):
    transactional_id: str
    producer_id: int
    producer_epoch: int
    timeout_ms: int
    status: Status = Status.EMPTY
    partitions: frozenset[TopicPartition] = frozenset()
    started_ms: int = -1
    updated_ms: int = -1
    previous_producer_id: int = NO_PRODUCER_ID
    """The id before its epochs were exhausted, whose owner may still retry."""
    next_producer_id: int = NO_PRODUCER_ID
    """The id that takes effect when the current transaction has ended."""
    last_epoch: int = NO_EPOCH
    """The epoch before the last bump: a producer that missed the answer may retry with it."""
    client_version: int = 0
    """2 when the producer bumps its epoch with every transaction (KIP-890)."""

    @property
    def epoch_exhausted(self) -> bool:
        return self.producer_epoch >= LAST_EPOCH - 1
