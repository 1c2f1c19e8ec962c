"""SIGTERM and SIGINT for a broker or its supervisor, handled from the first moment on.

A handler that raises is not enough before the event loop runs: the import system swallows what is raised inside some of its
steps, and the broker would continue as if it had not been asked to stop.
"""

from __future__ import annotations

import asyncio
import signal
from types import TracebackType
from typing import Any

_NUMBERS = (signal.SIGTERM, signal.SIGINT)


class StopSignals:
    """While entered, a signal is recorded; `event` passes it to the event loop, even if it arrived before."""

    def __init__(self) -> None:
        self._received = False
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> StopSignals:
        for number in _NUMBERS:
            self._before[number] = signal.signal(number, self._note)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def event(self) -> asyncio.Event:
        """An event that is set when a signal arrives. Call it once, in the running loop."""
        loop = asyncio.get_running_loop()
        event = asyncio.Event()
        for number in _NUMBERS:
            loop.add_signal_handler(number, event.set)
        if self._received:
            event.set()
        return event

    def _note(self, *_: object) -> None:
        self._received = True
