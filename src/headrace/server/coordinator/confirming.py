"""Replies that wait until the in-sync replicas have what they rest on: in the order of the log, and not for ever."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from headrace.clock import Clock, Timer
from headrace.server.coordinator.log import CoordinatorLog
from headrace.server.coordinator.write import client_error
from headrace.wire.errors import ErrorCode, KafkaError

Done = Callable[[KafkaError | None], None]


class Confirming:
    def __init__(self, name: str, log: CoordinatorLog, clock: Clock, timeout_ms: int) -> None:
        self._name = name
        self._log = log
        self._clock = clock
        self._seconds = timeout_ms / 1000
        self._waiting: deque[tuple[int, float, Done]] = deque()
        self._timeout: Timer | None = None

    def when_committed(self, offset: int, done: Done) -> None:
        """`done(None)` when the record at `offset` is committed, at once if it is; -1 stands for no record."""
        if offset < self._log.high_watermark:
            done(None)
            return
        newest = self._waiting[-1][0] if self._waiting else -1
        self._waiting.append((offset, self._clock.monotonic() + self._seconds, done))
        if self._timeout is None:
            self._timeout = self._clock.call_later(self._seconds, self._expire)
        if offset > newest:
            self._log.when_committed(offset, self._advance)

    def close(self) -> list[Done]:
        """Those that still wait; the caller answers them."""
        if self._timeout is not None:
            self._timeout.cancel()
        return self._take_all()

    def _take_all(self) -> list[Done]:
        waiting, self._waiting = self._waiting, deque()
        return [done for _, _, done in waiting]

    def _advance(self, code: ErrorCode) -> None:
        if code is not ErrorCode.NONE:
            error = client_error(KafkaError(code, f"What was written to {self._name} cannot be confirmed."))
            for done in self._take_all():
                done(error)
            return
        high_watermark = self._log.high_watermark
        while self._waiting and self._waiting[0][0] < high_watermark:
            self._waiting.popleft()[2](None)

    def _expire(self) -> None:
        """Nobody waits longer than the commit timeout; the records stay and may still be committed."""
        self._timeout = None
        now = self._clock.monotonic()
        error = KafkaError(
            ErrorCode.COORDINATOR_NOT_AVAILABLE,
            f"The in-sync replicas of {self._name} did not confirm within offsets.commit.timeout.ms.",
        )
        while self._waiting and self._waiting[0][1] <= now:
            self._waiting.popleft()[2](error)
        if self._waiting:
            self._timeout = self._clock.call_later(self._waiting[0][1] - now, self._expire)
