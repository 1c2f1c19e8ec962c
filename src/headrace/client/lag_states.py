"""What the lag of one partition is doing, judged without thresholds from a sliding window of looks at it (after Burrow).

Pure: a `Window` is a value, and `take` makes the next one. States have names; the rules stand once, in `Window.state`, in the order in
which they are asked (docs/lag.md has the same table).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum


class LagState(StrEnum):
    """From the best to the worst; a group is as badly off as the worst of its partitions."""

    OK = "ok"
    UNKNOWN = "unknown"
    """Too few looks to judge, or nothing was ever committed."""
    DRAINING = "draining"
    """Behind, and reading faster than records arrive."""
    GROWING = "growing"
    """Reading, but what is unread does not get less."""
    REWOUND = "rewound"
    """The committed offset went back, and the group is not where it was yet."""
    STALLED = "stalled"
    """Records are unread, and for a whole window nothing was committed."""
    GONE = "gone"
    """Records are unread, and the group has no members; or the group itself is gone."""


_SEVERITY = {state: place for place, state in enumerate(LagState)}


def worst(states: Iterable[LagState]) -> LagState:
    """Unknown when there are none."""
    return max(states, key=_SEVERITY.__getitem__, default=LagState.UNKNOWN)


def is_worse(state: LagState, than: LagState) -> bool:
    return _SEVERITY[state] > _SEVERITY[than]


@dataclass(frozen=True, slots=True)
class Look:
    """One partition at one moment."""

    at: float
    """Seconds of any clock that only goes forward."""
    position: int
    """Offset of the next record to read: what is committed, or the beginning of the log when that is later."""
    end: int
    attended: bool = True
    """Whether the group has members. A simple group, which only commits, counts as attended."""
    committed: bool = True
    """Whether anything was ever committed."""
    age: float | None = None
    """Seconds since the record at `position` was written."""

    @property
    def unread(self) -> int:
        return max(0, self.end - self.position)


@dataclass(frozen=True, slots=True)
class Window:
    """The looks of the last `length` seconds, and the one before them, so that a full window spans all of its length."""

    length: float
    looks: tuple[Look, ...] = ()

    def take(self, look: Look) -> Window:
        if self.looks and (look.end < self.looks[-1].end or look.committed != self.looks[-1].committed):
            # The log was cut or is another one, or offsets mean something only from now on: begin anew.
            return Window(self.length, (look,))
        looks = (*self.looks, look)
        inside = next(
            (place for place, each in enumerate(looks) if each.at > look.at - self.length), len(looks)
        )
        return Window(self.length, looks[max(0, inside - 1) :])

    @property
    def state(self) -> LagState:
        if not self.looks:
            return LagState.UNKNOWN
        first, last = self.looks[0], self.looks[-1]
        if last.unread == 0:
            return LagState.OK
        if not last.attended:
            return LagState.GONE
        if not last.committed:
            return LagState.UNKNOWN
        if self._is_rewound:
            return LagState.REWOUND
        if len(self.looks) > 1 and last.position >= first.end:
            return LagState.OK  # everything that was there when the window began has been read
        if last.unread < first.unread and self.rate_out:
            return LagState.DRAINING
        if not self.is_full:
            return LagState.UNKNOWN
        return LagState.GROWING if self.rate_out else LagState.STALLED

    @property
    def is_full(self) -> bool:
        return len(self.looks) > 1 and self.span >= self.length

    @property
    def span(self) -> float:
        return self.looks[-1].at - self.looks[0].at if self.looks else 0.0

    @property
    def rate_in(self) -> float | None:
        """Records per second that arrive; None when it is not known yet."""
        return (self.looks[-1].end - self.looks[0].end) / self.span if self.span > 0 else None

    @property
    def rate_out(self) -> float | None:
        """Records per second that the group gets past; going back does not count."""
        if self.span <= 0:
            return None
        pairs = zip(self.looks, self.looks[1:], strict=False)
        return sum(max(0, after.position - before.position) for before, after in pairs) / self.span

    @property
    def trend(self) -> float | None:
        """Records per second by which the lag changes: negative while it shrinks."""
        return (self.looks[-1].unread - self.looks[0].unread) / self.span if self.span > 0 else None

    @property
    def ageing(self) -> float | None:
        """Seconds per second by which the next record to read gets older: 1 while nothing is read, negative while catching up."""
        aged = [look for look in self.looks if look.age is not None]
        if len(aged) < 2 or aged[-1].at <= aged[0].at:
            return None
        return ((aged[-1].age or 0.0) - (aged[0].age or 0.0)) / (aged[-1].at - aged[0].at)

    @property
    def _is_rewound(self) -> bool:
        positions = [look.position for look in self.looks]
        return positions[-1] < max(positions)
