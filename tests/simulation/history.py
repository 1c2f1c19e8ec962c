"""What clients did and were told: the material of the checks."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

Place = tuple[str, int]
"""A partition: topic and index."""


@dataclass(slots=True)
class Transaction:
    worker: str
    number: int
    began: float
    outcome: str = "open"
    """open, committed, aborted, unknown"""
    ended: float = 0.0
    written: dict[Place, list[tuple[int, bytes]]] = field(default_factory=lambda: defaultdict(list))
    """(offset, value) that were acknowledged."""


@dataclass(slots=True)
class History:
    finishing: bool = False
    """Nothing new is begun."""
    sent: set[bytes] = field(default_factory=set)
    acknowledged: dict[Place, dict[int, bytes]] = field(default_factory=lambda: defaultdict(dict))
    """By offset, what a producer was told is there."""
    keyed: dict[Place, dict[bytes, tuple[int, bytes]]] = field(default_factory=lambda: defaultdict(dict))
    """By key, the last record that was acknowledged: offset and value."""
    writes: int = 0
    """Produce requests that were acknowledged."""
    transactions: list[Transaction] = field(default_factory=list)
    read: dict[str, dict[Place, dict[int, bytes]]] = field(
        default_factory=lambda: defaultdict(lambda: defaultdict(dict))
    )
    """By reader: what it was given at each offset."""
    owners: dict[tuple[str, Place, int], str] = field(default_factory=dict)
    """By group, partition and generation: the member that had it."""
    committed: dict[tuple[str, Place], int] = field(default_factory=dict)
    """By group and partition: the highest offset whose commit was acknowledged."""
    deleted: dict[Place, int] = field(default_factory=dict)
    """Up to where records were deleted on request, or were about to be."""
    last_success: dict[str, float] = field(default_factory=dict)
    """By client: when something last worked."""
    claims: dict[tuple[str, Place], tuple[str, float, float]] = field(default_factory=dict)
    """By group and partition of a KIP-848 group: who was given it last, when it asked, and when it heard."""
