"""Watches from a thread of its own whether the event loop still runs."""

from __future__ import annotations

import threading
from collections.abc import Callable

from headrace.clock import Clock, Timer


class Watchdog:
    """Calls `on_stall`, in its thread, once each time the loop has stalled for `patience` seconds."""

    def __init__(self, patience: float, clock: Clock, on_stall: Callable[[], None]) -> None:
        self._patience = patience
        self._clock = clock
        self._on_stall = on_stall
        self._seen = clock.monotonic()
        self._stopped = threading.Event()
        self._timer: Timer | None = None
        self._thread = threading.Thread(target=self._watch, name="watchdog", daemon=True)

    def start(self) -> None:
        self._beat()
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()
        if self._timer is not None:
            self._timer.cancel()

    def _beat(self) -> None:
        self._seen = self._clock.monotonic()
        if not self._stopped.is_set():
            self._timer = self._clock.call_later(self._patience / 8, self._beat)

    def _watch(self) -> None:
        reported: float | None = None
        while not self._stopped.wait(self._patience / 8):
            seen = self._seen
            if self._clock.monotonic() - seen > self._patience and reported != seen:
                reported = seen
                self._on_stall()
