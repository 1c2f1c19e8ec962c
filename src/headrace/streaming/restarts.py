"""Whether and when a query that failed is started again: later each time, and not for ever."""

from __future__ import annotations

import random
import time
from collections.abc import Callable

from headrace.streaming.spark_errors import is_busy, is_transient

_FIRST, _LONGEST = 1.0, 30.0
_PATIENCE_WHILE_BUSY = 3600.0
"""Seconds to keep trying while this machine is too busy for Spark: it only has to be quiet for a moment."""


def delay(failures: int) -> float:
    """Growing, and never the same for two that failed together: on a busy machine they would only meet again."""
    return min(_FIRST * 2.0**failures, _LONGEST) * random.uniform(0.5, 1.5)


class Restarts:
    """Counts the failures of one query since it last got anything done."""

    def __init__(self, patience: float, may_pass: Callable[[str], bool] = is_transient) -> None:
        self._patience = patience  # seconds from the first failure
        self._may_pass = may_pass
        self._failures = 0
        self._failing_since = 0.0
        self._due_at = 0.0

    @property
    def is_due(self) -> bool:
        """Whether it may be started now; before any failure it always may."""
        return time.monotonic() >= self._due_at

    def after(self, failure: str) -> float | None:
        """Seconds until the next start; None when trying again cannot help, or has not for too long."""
        now = time.monotonic()
        if not self._failures:
            self._failing_since = now
        patience = max(self._patience, _PATIENCE_WHILE_BUSY) if is_busy(failure) else self._patience
        if not self._may_pass(failure) or now - self._failing_since >= patience:
            return None
        pause = delay(self._failures)
        self._failures += 1
        self._due_at = now + pause
        return pause

    def got_something_done(self) -> None:
        self._failures = 0
