"""Retrying what another broker refuses only for now, with growing pauses, until patience runs out."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass
from typing import TypeVar

from headrace.clock import Clock
from headrace.wire.errors import ErrorCode, KafkaError

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Retries:
    errors: Collection[ErrorCode]
    """What is tried again."""
    unreachable: ErrorCode
    """The error for a broker that cannot be reached."""
    first_pause: float
    longest_pause: float
    patience: float
    """Seconds of trying; then the last error is raised."""

    async def run(self, clock: Clock, attempt: Callable[[], Awaitable[T]]) -> T:
        pause, deadline = self.first_pause, clock.monotonic() + self.patience
        while True:
            try:
                return await attempt()
            except KafkaError as error:
                failure = error
            except OSError as error:
                failure = KafkaError(self.unreachable, str(error))
            if failure.code not in self.errors or clock.monotonic() + pause > deadline:
                raise failure
            await clock.sleep(pause)
            pause = min(2 * pause, self.longest_pause)
