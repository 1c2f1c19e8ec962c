"""The segments of one partition in order of their offsets; the last is the active one."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator

from headrace.log.segment import Segment


class Segments:
    __slots__ = ("_bases", "_list")

    def __init__(self, segments: list[Segment]) -> None:
        self._list = sorted(segments, key=lambda segment: segment.base_offset)
        self._bases = [segment.base_offset for segment in self._list]

    def __iter__(self) -> Iterator[Segment]:
        return iter(self._list)

    def __len__(self) -> int:
        return len(self._list)

    def __getitem__(self, number: int) -> Segment:
        return self._list[number]

    @property
    def first(self) -> Segment:
        return self._list[0]

    @property
    def active(self) -> Segment:
        return self._list[-1]

    @property
    def bases(self) -> list[int]:
        return list(self._bases)

    @property
    def size(self) -> int:
        return sum(segment.size for segment in self._list)

    def index_of(self, offset: int) -> int:
        """The number of the segment whose range holds `offset`; the first one for anything before it."""
        return max(bisect_right(self._bases, offset) - 1, 0)

    def end_of(self, number: int, log_end_offset: int) -> int:
        """The offset after the last one a segment may hold."""
        return self._bases[number + 1] if number + 1 < len(self._bases) else log_end_offset

    def add(self, segment: Segment) -> None:
        number = bisect_right(self._bases, segment.base_offset)
        self._list.insert(number, segment)
        self._bases.insert(number, segment.base_offset)

    def remove(self, segment: Segment) -> None:
        number = self._list.index(segment)
        del self._list[number]
        del self._bases[number]

    def replace(self, old: list[Segment], new: list[Segment]) -> None:
        """Put compacted segments in the place of those they were made from."""
        kept = [segment for segment in self._list if segment not in old]
        self._list = sorted(kept + new, key=lambda segment: segment.base_offset)
        self._bases = [segment.base_offset for segment in self._list]
