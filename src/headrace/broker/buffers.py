"""One limit on the memory of all connections' receive buffers together."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable


class BufferBudget:
    """Bytes that connections may hold beyond their small first buffers."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._taken = 0
        self._waiting: deque[Callable[[], None]] = deque()

    @property
    def scarce(self) -> bool:
        """More than half is taken: empty buffers are given back at once."""
        return self._taken > self._limit // 2

    def take(self, size: int) -> bool:
        if self._taken and self._taken + size > self._limit:
            return False
        self._taken += size
        return True

    def give_back(self, size: int) -> None:
        self._taken -= size
        if self._waiting and self._taken < self._limit:
            asyncio.get_running_loop().call_soon(self._waiting.popleft())

    def when_freed(self, callback: Callable[[], None]) -> None:
        self._waiting.append(callback)
