"""Sets of offsets as sorted spans, and their text such as ``17-25,30``: small where offsets lie together."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator


class Spans:
    """A set of offsets. Adding at the end, which is what a log does, costs nothing much."""

    __slots__ = ("_firsts", "_lasts")

    def __init__(self, spans: Iterable[tuple[int, int]] = ()) -> None:
        self._firsts: list[int] = []
        self._lasts: list[int] = []
        for first, last in spans:
            self.add(first, last)

    @classmethod
    def of(cls, offsets: Iterable[int]) -> Spans:
        made = cls()
        for offset in sorted(offsets):
            made.add(offset, offset)
        return made

    @classmethod
    def from_text(cls, text: str) -> Spans:
        """Raises ValueError when it is none."""
        made = cls()
        for span in filter(None, text.split(",")):
            first, _, last = span.partition("-")
            made.add(int(first), int(last or first))
        return made

    def add(self, first: int, last: int) -> None:
        """All from ``first`` to ``last``; spans that touch become one."""
        firsts, lasts = self._firsts, self._lasts
        low = bisect_left(lasts, first - 1)
        high = bisect_right(firsts, last + 1)
        if low < high:
            first, last = min(first, firsts[low]), max(last, lasts[high - 1])
        firsts[low:high], lasts[low:high] = [first], [last]

    def remove(self, first: int, last: int) -> None:
        firsts, lasts = self._firsts, self._lasts
        low = bisect_left(lasts, first)
        high = bisect_right(firsts, last)
        if low >= high:
            return
        left = [(firsts[low], first - 1)] if firsts[low] < first else []
        right = [(last + 1, lasts[high - 1])] if lasts[high - 1] > last else []
        firsts[low:high] = [span[0] for span in left + right]
        lasts[low:high] = [span[1] for span in left + right]

    def update(self, other: Spans) -> None:
        for first, last in other:
            self.add(first, last)

    def subtract(self, other: Spans) -> None:
        for first, last in other:
            self.remove(first, last)

    def copy(self) -> Spans:
        made = Spans()
        made._firsts, made._lasts = self._firsts.copy(), self._lasts.copy()
        return made

    def offsets(self) -> Iterator[int]:
        for first, last in self:
            yield from range(first, last + 1)

    def __iter__(self) -> Iterator[tuple[int, int]]:
        return iter(list(zip(self._firsts, self._lasts, strict=True)))

    def __contains__(self, offset: int) -> bool:
        place = bisect_left(self._lasts, offset)
        return place < len(self._firsts) and self._firsts[place] <= offset

    def __len__(self) -> int:
        """How many offsets."""
        return sum(self._lasts) - sum(self._firsts) + len(self._firsts)

    def __bool__(self) -> bool:
        return bool(self._firsts)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Spans) and (self._firsts, self._lasts) == (other._firsts, other._lasts)

    __hash__ = None  # type: ignore[assignment]  # it changes

    def __str__(self) -> str:
        return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in self)

    def __repr__(self) -> str:
        return f"Spans({self})"
