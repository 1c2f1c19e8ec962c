"""Which part of a log could be compacted, and how urgently. It reads state and decides; it changes nothing."""

from __future__ import annotations

from dataclasses import dataclass

from headrace.server.log.partition import PartitionLog
from headrace.server.log.segments import Segments


@dataclass(slots=True, frozen=True)
class Candidate:
    """A log that could be compacted, from its first dirty offset up to `upper`, the start of a segment."""

    log: PartitionLog
    first_dirty_offset: int
    upper: int
    dirty_ratio: float
    overdue: bool

    @property
    def is_due(self) -> bool:
        return self.overdue or self.dirty_ratio > self.log.config.min_cleanable_dirty_ratio


def examine(log: PartitionLog, first_dirty: int, now_ms: int) -> Candidate | None:
    """None when nothing in it can be compacted now."""
    segments = log.load().segments
    upper = _upper(log, segments, first_dirty, now_ms)
    if upper <= first_dirty:
        return None
    clean = dirty = 0
    earliest: int | None = None
    for number, segment in enumerate(segments):
        if segment.base_offset >= upper:
            break
        if segments.end_of(number, log.log_end_offset) <= first_dirty:
            clean += segment.size
            continue
        dirty += segment.size
        first = segment.first_batch_timestamp()
        if first > 0:
            earliest = first if earliest is None else min(earliest, first)
    if not dirty:
        return None
    overdue = earliest is not None and earliest < now_ms - log.config.max_compaction_lag_ms
    return Candidate(log, first_dirty, upper, dirty / (clean + dirty), overdue)


def _upper(log: PartitionLog, segments: Segments, first_dirty: int, now_ms: int) -> int:
    """Nothing undecided, nothing in the active segment, nothing younger than min.compaction.lag.ms."""
    upper = min(log.last_stable_offset, segments.active.base_offset)
    lag = log.config.min_compaction_lag_ms
    if lag > 0:
        for number in range(segments.index_of(first_dirty), len(segments) - 1):
            if segments[number].largest_timestamp() > now_ms - lag:
                upper = min(upper, segments[number].base_offset)
                break
    return segments[segments.index_of(upper)].base_offset
