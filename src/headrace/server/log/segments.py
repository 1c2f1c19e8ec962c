"""The segments of one partition in order of their offsets; the last is the active one.

Only the event loop changes the list, by putting a new one in its place: a thread that took a `view` goes on
with what it saw.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from headrace.server.log.segment import Segment


class SegmentView(NamedTuple):
    """The segments as they were at one moment."""

    bases: list[int]
    segments: list[Segment]

    def index_of(self, offset: int) -> int:
        """The number of the segment whose range holds `offset`; the first one for anything before it."""
        return max(bisect_right(self.bases, offset) - 1, 0)

    def end_of(self, number: int, log_end_offset: int) -> int:
        """The offset after the last one a segment may hold."""
        return self.bases[number + 1] if number + 1 < len(self.bases) else log_end_offset


class Segments:
    __slots__ = ("view",)

    def __init__(self, segments: Iterable[Segment]) -> None:
        self._set(segments)

    def _set(self, segments: Iterable[Segment]) -> None:
        ordered = sorted(segments, key=lambda segment: segment.base_offset)
        self.view = SegmentView([segment.base_offset for segment in ordered], ordered)

    def __iter__(self) -> Iterator[Segment]:
        return iter(self.view.segments)

    def __len__(self) -> int:
        return len(self.view.segments)

    def __getitem__(self, number: int) -> Segment:
        return self.view.segments[number]

    def __contains__(self, segment: Segment) -> bool:
        return segment in self.view.segments

    @property
    def first(self) -> Segment:
        return self.view.segments[0]

    @property
    def active(self) -> Segment:
        return self.view.segments[-1]

    @property
    def bases(self) -> list[int]:
        return list(self.view.bases)

    @property
    def size(self) -> int:
        return sum(segment.size for segment in self.view.segments)

    def index_of(self, offset: int) -> int:
        return self.view.index_of(offset)

    def end_of(self, number: int, log_end_offset: int) -> int:
        return self.view.end_of(number, log_end_offset)

    def add(self, segment: Segment) -> None:
        self._set([*self.view.segments, segment])

    def remove(self, segment: Segment) -> None:
        self.replace([segment], [])

    def replace(self, old: list[Segment], new: list[Segment]) -> None:
        """Replace segments by the compacted ones made from them."""
        self._set([*(segment for segment in self.view.segments if segment not in old), *new])
