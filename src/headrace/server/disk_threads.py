"""Threads for whatever waits for a disk; how many there are can change while they work."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

NAME = "disk"


class DiskThreads(Executor):
    """Belongs to one event loop, whose thread alone submits, resizes and shuts down."""

    def __init__(self, count: int, start: Callable[[int, str], Executor]) -> None:
        self.count = count
        self._start = start
        self._pool = start(count, NAME)
        self._retired: list[Executor] = []

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        return self._pool.submit(fn, *args, **kwargs)

    def resize(self, count: int) -> None:
        """The new threads take work submitted from now on; the old ones finish their work and end."""
        if count != self.count:
            old, self._pool, self.count = self._pool, self._start(count, NAME), count
            old.shutdown(wait=False)
            self._retired.append(old)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        for pool in (*self._retired, self._pool):
            pool.shutdown(wait, cancel_futures=cancel_futures)
