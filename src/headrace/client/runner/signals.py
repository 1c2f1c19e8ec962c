"""SIGTERM and SIGINT end what runs, in good order: every runner of the process, and the handler installed before.

Signals reach the main thread only; a runner in another thread is stopped by the code that started it.
"""

from __future__ import annotations

import functools
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

_NUMBERS = (signal.SIGTERM, signal.SIGINT)
_running: list[Callable[[], None]] = []
_before: dict[int, object] = {}


@contextmanager
def stop_on_signals(stop: Callable[[], None]) -> Iterator[None]:
    """Call ``stop`` at a signal. The handlers that were there before come back when the last runner has ended."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    if not _running:
        _before.update((number, signal.signal(number, _arrived)) for number in _NUMBERS)
    _running.append(stop)
    try:
        yield
    finally:
        _running.remove(stop)
        if not _running:
            for number in _NUMBERS:
                # A handler installed later keeps the signal.
                if signal.getsignal(number) is _arrived:
                    signal.signal(number, _before[number])  # type: ignore[arg-type]  # as it was given to us


def _arrived(number: int, frame: FrameType | None) -> None:
    for stop in tuple(_running):
        stop()
    earlier = _before.get(number)
    if callable(earlier) and not _only_interrupts(earlier):
        earlier(number, frame)


def _only_interrupts(handler: Callable[..., object]) -> bool:
    """Python's own handlers of Ctrl-C, which would break off what is to be finished."""
    if isinstance(handler, functools.partial):  # asyncio's
        return getattr(handler.func, "__module__", "").startswith("asyncio.")
    return handler is signal.default_int_handler
