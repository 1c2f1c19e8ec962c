"""One limit on the memory of all connections' receive buffers together.

Buffers grow while a request arrives, so all of it could be taken by requests that are only half there. One connection
at a time may therefore go beyond the limit: it finishes, gives back, and the next goes on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable


class BufferBudget:
    """Bytes that connections may hold beyond their small first buffers."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._taken = 0
        self._beyond: object | None = None
        """Who was let beyond the limit."""
        self._waiting: dict[Callable[[], None], None] = {}

    @property
    def scarce(self) -> bool:
        """More than half is taken: empty buffers are given back at once."""
        return self._taken > self._limit // 2

    def take(self, size: int, holder: object) -> bool:
        if self._taken + size > self._limit:
            if self._beyond not in (None, holder):
                return False
            self._beyond = holder
        self._taken += size
        return True

    def give_back(self, size: int, holder: object) -> None:
        self._taken -= size
        if self._beyond is holder:
            self._beyond = None
        if self._waiting:
            loop = asyncio.get_running_loop()
            waiting, self._waiting = self._waiting, {}
            for callback in waiting:
                loop.call_soon(callback)

    def when_freed(self, callback: Callable[[], None]) -> None:
        """Call back, once, when some is given back; who still finds too little asks again."""
        self._waiting[callback] = None

    def forget(self, callback: Callable[[], None]) -> None:
        self._waiting.pop(callback, None)
