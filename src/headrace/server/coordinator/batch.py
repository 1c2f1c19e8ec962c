"""The open batch of a shard: records of operations that arrived together, to be appended as one.

An operation runs when it arrives, but its records change the state only when they are in the log. So operations may share a
batch if none looks at what another one changes: each names its scope (a group, a transactional id), and one that finds its own
scope in the batch has the batch appended first. Offset commits do not look at each other, even those of one group.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from headrace.wire.batch import HEADER_SIZE
from headrace.wire.errors import KafkaError

MOST_RECORDS = 1000
MOST_BYTES = 1 << 18
"""A batch is appended early when it would grow beyond this."""


class Queued(Protocol):
    """One operation's part of a batch."""

    def encode(self, index: int) -> Sequence[bytes]:
        """Its records as the batch has them, the first at `index`; KafkaError if they cannot be stored."""
        ...

    def stored(self, offset: int) -> None:
        """The records are in the log from `offset` on: change the state as they say."""
        ...

    def done(self, error: KafkaError | None) -> None:
        """They are committed, or never will be."""
        ...


class OpenBatch:
    __slots__ = ("_committing", "_largest", "_size", "_writing", "operations", "records")

    def __init__(self, largest: int) -> None:
        """`largest` is the size of a batch that the log takes."""
        self.records: list[bytes] = []
        self.operations: list[tuple[Queued, int]] = []
        """Each with the number of its records, in the order of arrival."""
        self._largest = min(MOST_BYTES, largest)
        self._size = HEADER_SIZE
        self._writing: set[str] = set()
        self._committing: set[str] = set()

    def is_writing(self, scope: str) -> bool:
        """Whether more than offsets of this scope is about to change."""
        return scope in self._writing

    def is_changing(self, scope: str) -> bool:
        return scope in self._writing or scope in self._committing

    def has_room(self, count: int, size: int) -> bool:
        """For so many records of so many bytes. What is too large alone is for the log to refuse."""
        return len(self.records) + count <= MOST_RECORDS and self._size + size <= self._largest

    def add(
        self, operation: Queued, records: Sequence[bytes], size: int, scope: str, *, only_offsets: bool
    ) -> None:
        self.records += records
        self._size += size
        self.operations.append((operation, len(records)))
        (self._committing if only_offsets else self._writing).add(scope)
