"""How fast counts grow, from a total now and then: over the last ten seconds, or over the last step if that was longer."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

_WINDOW = 10.0


class Pace:
    """Fed with totals in the order of time; ``rates`` is how much each of them grew in a second."""

    def __init__(self, began: float, counts: int) -> None:
        self._totals: deque[tuple[float, Sequence[int]]] = deque([(began, [0] * counts)])
        self.rates = [0.0] * counts

    def take(self, at: float, totals: Sequence[int]) -> None:
        self._totals.append((at, totals))
        while len(self._totals) > 2 and self._totals[1][0] <= at - _WINDOW:
            self._totals.popleft()
        began, before = self._totals[0]
        if at > began:
            self.rates = [(now - then) / (at - began) for now, then in zip(totals, before, strict=True)]
