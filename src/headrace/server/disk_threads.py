"""Threads for whatever waits for a disk; how many there are can change while they work."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class DiskThreads(Executor):
    """Belongs to one event loop, whose thread alone submits, resizes and shuts down."""

    def __init__(self, count: int) -> None:
        self.count = count
        self._pool = _pool(count)
        self._retired: list[ThreadPoolExecutor] = []

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        return self._pool.submit(fn, *args, **kwargs)

    def resize(self, count: int) -> None:
        """The new threads take work submitted from now on; the old ones finish their work and end."""
        if count != self.count:
            old, self._pool, self.count = self._pool, _pool(count), count
            old.shutdown(wait=False)
            self._retired.append(old)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        for pool in (*self._retired, self._pool):
            pool.shutdown(wait, cancel_futures=cancel_futures)


def _pool(count: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(count, thread_name_prefix="disk")
