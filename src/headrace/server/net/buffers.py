"""One limit on the memory of all connections' receive buffers together.

Every connection has a small buffer of its own; what it needs beyond that, for a request that is larger, comes from here step
by step as its bytes arrive. Requests arrive as slowly as their clients like, so three rules keep a few of them from
holding up the rest:

- A connection may hold as much as it leaves free, and no more. Alone it gets half; beside one other, each gets a third; however
  many there are, a request smaller than a share always finds room.
- A request too large for its share waits, and one connection at a time is lent what it lacks, outside the limit. It gives it back
  as soon as its request is served, and the next one goes on.
- While a connection waits, those that hold memory must deliver. A connection that has sent nothing for a while is cut off, and so is the
  one with the loan when it is slow.
"""

from __future__ import annotations

import asyncio
from collections.abc import Hashable
from typing import Protocol

from headrace.clock import Clock, Timer

PATIENCE_SECONDS = 5.0
"""How long a connection may send nothing, or with the loan less than one step, while others wait."""


class Holder(Hashable, Protocol):
    """A connection, as the budget sees it."""

    @property
    def progress(self) -> object:
        """Differs from before when bytes of a request have arrived; None when the connection waits for none."""
        ...

    def memory_freed(self) -> None:
        """Try again to get the memory that was not available."""
        ...

    def shrink(self) -> None:
        """Give back an empty buffer."""
        ...

    def cut(self, reason: str) -> None: ...


class BufferBudget:
    """Bytes that connections may hold beyond their small first buffers."""

    def __init__(self, limit: int, clock: Clock) -> None:
        self._limit = limit
        self._clock = clock
        self._held: dict[Holder, int] = {}
        self._shared = 0
        """What they hold together, within the limit."""
        self._borrower: Holder | None = None
        self._lent = 0
        self._loans = 0
        """How many steps were lent so far."""
        self._waiting: dict[Holder, None] = {}
        self._seen: dict[Holder, object] = {}
        self._loans_seen = 0
        self._timer: Timer | None = None

    @property
    def taken(self) -> int:
        return self._shared + self._lent

    @property
    def waiting(self) -> int:
        """How many connections wait for memory."""
        return len(self._waiting)

    @property
    def scarce(self) -> bool:
        """More than half is taken: empty buffers are given back at once."""
        return self._shared > self._limit // 2

    def lends_to(self, holder: Holder) -> bool:
        return self._borrower is holder

    def take(self, size: int, holder: Holder) -> bool:
        """Take this many more bytes for `holder`; if False, it is called back when it may try again."""
        held = self._held.get(holder, 0) + size
        fits = held <= self._limit - self._shared - size
        if fits and self._borrower is not holder:
            self._shared += size
            self._held[holder] = held
        elif self._borrower is None or self._borrower is holder:
            self._borrower = holder
            self._lent += size
            self._loans += 1
        else:
            self._waiting[holder] = None
            if self._timer is None:
                self._watch()
            return False
        self._waiting.pop(holder, None)
        return True

    def give_back(self, holder: Holder) -> None:
        """Release everything that `holder` has; it no longer waits."""
        self._waiting.pop(holder, None)
        self._shared -= self._held.pop(holder, 0)
        if self._borrower is holder:
            self._borrower = None
            self._lent = 0
        if self._waiting:
            loop = asyncio.get_running_loop()
            waiting, self._waiting = self._waiting, {}
            for each in waiting:
                loop.call_soon(each.memory_freed)

    def _watch(self) -> None:
        """A connection waits: reclaim unused memory, and check which connections deliver."""
        self._timer = self._clock.call_later(PATIENCE_SECONDS, self._judge)
        for holder in tuple(self._held):
            holder.shrink()
        holders = dict.fromkeys(self._held)
        if self._borrower is not None:
            holders[self._borrower] = None
        self._seen = {holder: holder.progress for holder in holders if holder not in self._waiting}
        self._loans_seen = self._loans

    def _judge(self) -> None:
        self._timer = None
        if not self._waiting:
            self._seen.clear()
            return
        for holder, seen in tuple(self._seen.items()):
            late = holder is self._borrower and self._loans == self._loans_seen
            progress = holder.progress
            if progress is not None and (progress == seen or late):
                holder.cut(
                    f"its request stopped arriving, or nearly so, for {PATIENCE_SECONDS:.0f} s while others waited for "
                    f"the memory it holds (queued.max.request.bytes; {self._limit} bytes here)"
                )
        self._watch()
