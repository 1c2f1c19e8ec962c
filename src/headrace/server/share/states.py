"""The states of a record that a share group has seen, and what an acknowledgement makes of it."""

from __future__ import annotations

import enum
from typing import NamedTuple


class RecordState(enum.IntEnum):
    """Numbers as `__share_group_state` has them. ACQUIRED is never stored: a new leader hands the record out again."""

    AVAILABLE = 0
    ACQUIRED = 1
    """A member has it, until its lock ends."""
    ACKNOWLEDGED = 2
    ARCHIVED = 4
    """Not to be delivered again: refused, delivered too often, or not there."""


FINAL = frozenset({RecordState.ACKNOWLEDGED, RecordState.ARCHIVED})


class AcknowledgeType(enum.IntEnum):
    GAP = 0
    """There is no record at this offset."""
    ACCEPT = 1
    RELEASE = 2
    REJECT = 3
    RENEW = 4
    """Keep the lock for another term."""


AFTER: dict[AcknowledgeType, RecordState] = {
    AcknowledgeType.GAP: RecordState.ARCHIVED,
    AcknowledgeType.ACCEPT: RecordState.ACKNOWLEDGED,
    AcknowledgeType.RELEASE: RecordState.AVAILABLE,
    AcknowledgeType.REJECT: RecordState.ARCHIVED,
}


class StateBatch(NamedTuple):
    """Records in one state, as they are stored."""

    first: int
    last: int
    state: int
    deliveries: int
    """How often they were delivered."""


class DeadReason(enum.Enum):
    """Why records will not be delivered again, in the words of Kafka's dead-letter header."""

    REJECTED = "Offset rejected by client."
    EXHAUSTED = "Delivery count exceeded."


class DeadRecords(NamedTuple):
    first: int
    last: int
    deliveries: int
    reason: DeadReason
