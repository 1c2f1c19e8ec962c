"""When a failed record is tried again: growing delays, a last attempt, hopeless errors."""

from __future__ import annotations

import random
from dataclasses import dataclass

from headrace.client.errors import ConfigError, DeserializationError, MissingExtra, Reject, TryLater


@dataclass(frozen=True, slots=True)
class Retry:
    """``attempts`` in all; the delays grow from ``delay`` by ``factor`` up to ``max_delay`` seconds.

    >>> Retry(attempts=4, delay=0.5, give_up_on=(KeyError,))

    ``jitter`` is the share by which a delay may be shorter or longer, so that records that failed together do
    not come back together.
    """

    attempts: int = 5
    delay: float = 0.2
    factor: float = 2.0
    max_delay: float = 60.0
    jitter: float = 0.1
    give_up_on: tuple[type[BaseException], ...] = ()

    def __post_init__(self) -> None:
        if self.attempts < 1 or self.delay < 0 or self.factor < 1 or not 0 <= self.jitter < 1:
            raise ConfigError("a Retry has attempts >= 1, delay >= 0, factor >= 1 and 0 <= jitter < 1")

    def next_delay(self, attempt: int, calls: int, error: BaseException) -> float | None:
        """Seconds until the next try, or None when there is none; postponed ones do not count as attempts."""
        if isinstance(error, TryLater):
            return error.delay if error.delay is not None else self.delay_after(calls)
        if attempt >= self.attempts or isinstance(error, (*_HOPELESS, *self.give_up_on)):
            return None
        return self.delay_after(calls)

    def delay_after(self, calls: int) -> float:
        try:
            grown = min(self.max_delay, self.delay * self.factor ** min(calls - 1, 64))
        except OverflowError:
            grown = self.max_delay
        return grown * random.uniform(1 - self.jitter, 1 + self.jitter)


_HOPELESS = (DeserializationError, Reject, ConfigError, MissingExtra)
