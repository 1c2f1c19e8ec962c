"""What a group has not read of a partition: the rules of docs/lag.md as arithmetic, shared by the client's lag and the broker's metrics."""

from __future__ import annotations

from typing import NamedTuple


class Unread(NamedTuple):
    """Where a group has committed, None for nowhere, and the offsets at which the partition begins and ends."""

    committed: int | None
    first: int
    end: int
    finished: int = 0
    """Records after the commit that are done with all the same: a share group finishes them in any order."""

    @property
    def start(self) -> int:
        """The next record to read: a committed offset may lie before the beginning of the log by now, and no commit means all of it."""
        return max(self.committed or 0, self.first)

    @property
    def records(self) -> int:
        """Never negative: the end may be older than the commit."""
        return max(0, self.end - self.start - self.finished)

    @property
    def lost(self) -> int:
        """Records deleted before the group could read them."""
        return 0 if self.committed is None else max(0, self.first - self.committed)


def age(now: float, written_ms: int) -> float:
    """In seconds, of a record with that timestamp; one in the future has just been written."""
    return max(0.0, now - written_ms / 1000)
