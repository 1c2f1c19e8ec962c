"""Named deadlines of one shard.

Setting a name again moves its deadline. A deadline that moves later, which is what every heartbeat does, only
writes a number: the timer that is already set notices when it fires and sets itself for the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from headrace.clock import Clock, Timer

A = TypeVar("A")


class _Deadline(Generic[A]):
    __slots__ = ("action", "due", "timer")

    def __init__(self, due: float, action: A) -> None:
        self.due = due
        self.action = action
        self.timer: Timer | None = None


class Timers(Generic[A]):
    """`run` is given the action of each deadline that passes."""

    def __init__(self, clock: Clock, run: Callable[[A], object]) -> None:
        self._clock = clock
        self._run = run
        self._deadlines: dict[Hashable, _Deadline[A]] = {}

    def __len__(self) -> int:
        return len(self._deadlines)

    def __contains__(self, name: Hashable) -> bool:
        return name in self._deadlines

    def set(self, name: Hashable, milliseconds: float, action: A) -> None:
        """Act once, `milliseconds` from now, unless the name is set again or cancelled first."""
        due = self._clock.monotonic() + milliseconds / 1000
        deadline = self._deadlines.get(name)
        if deadline is not None:
            if due >= deadline.due:
                deadline.due = due
                deadline.action = action
                return
            self.cancel(name)
        deadline = self._deadlines[name] = _Deadline(due, action)
        self._arm(name, deadline, milliseconds / 1000)

    def cancel(self, name: Hashable) -> None:
        deadline = self._deadlines.pop(name, None)
        if deadline is not None and deadline.timer is not None:
            deadline.timer.cancel()

    def cancel_all(self) -> None:
        for name in list(self._deadlines):
            self.cancel(name)

    def _arm(self, name: Hashable, deadline: _Deadline[A], seconds: float) -> None:
        deadline.timer = self._clock.call_later(max(seconds, 0), lambda: self._fire(name, deadline))

    def _fire(self, name: Hashable, deadline: _Deadline[A]) -> None:
        if self._deadlines.get(name) is not deadline:
            return
        left = deadline.due - self._clock.monotonic()
        if left > 0:
            self._arm(name, deadline, left)
            return
        del self._deadlines[name]
        self._run(deadline.action)
