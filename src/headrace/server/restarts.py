"""How long to wait before a process that ended is started again."""

from __future__ import annotations

from dataclasses import dataclass

STARTS_AT_ONCE = 3
"""How many times in a row a process that ended early is restarted without a pause."""
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 10.0
HEALTHY_SECONDS = 10.0
"""A process that served for so long did not end early."""


@dataclass(slots=True)
class Restarts:
    """No pause at first, because a broker's partitions lack a replica until it is back; growing pauses once the process keeps ending early."""

    _early_ends: int = 0

    def pause_after(self, served: float) -> float:
        """Seconds, for a process that ended after it had served for `served` seconds."""
        if served >= HEALTHY_SECONDS:
            self._early_ends = 0
            return 0.0
        self._early_ends += 1
        excess = self._early_ends - STARTS_AT_ONCE
        return min(FIRST_PAUSE * 2.0 ** (excess - 1), LONGEST_PAUSE) if excess > 0 else 0.0
