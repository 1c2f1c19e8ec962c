"""What the log says about failed logins: one sentence each with the cause and the remedy, and not more than it can bear."""

from __future__ import annotations

import logging

from headrace.clock import Clock

log = logging.getLogger("headrace.login")

MOST_LINES = 20
PERIOD_SECONDS = 10.0
_LONGEST_NAME = 100


class LoginJournal:
    """In each period the first failures are logged one by one, the others are counted."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._period_ends = 0.0
        self._lines = 0
        self._left_out = 0

    def failed(self, peer: str, listener: str, mechanism: str, user: str, cause: str, remedy: str) -> None:
        if not self._may_write():
            return
        whose = f"of {user[:_LONGEST_NAME]!r} " if user else ""
        how = f" with {mechanism[:_LONGEST_NAME]}" if mechanism.isprintable() and mechanism else ""
        log.warning(
            "Refused a login %sfrom %s on listener %s%s: %s%s.",
            whose,
            peer,
            listener,
            how,
            cause,
            f"; {remedy}" if remedy else "",
        )

    def _may_write(self) -> bool:
        now = self._clock.monotonic()
        if now >= self._period_ends:
            if self._left_out:
                log.warning("%d further failed logins were not logged one by one.", self._left_out)
            self._period_ends = now + PERIOD_SECONDS
            self._lines = self._left_out = 0
        self._lines += 1
        if self._lines > MOST_LINES:
            self._left_out += 1
            return False
        return True
