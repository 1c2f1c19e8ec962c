"""When the active segment is finished and a new one begins: by size, by age, by full indexes, or by an offset that lies
too far from the segment's first."""

from __future__ import annotations

from headrace.server.log.config import LogConfig
from headrace.server.log.segment import MAX_RELATIVE_OFFSET, ROLL_NOT_KNOWN, Segment


def must_roll(
    segment: Segment, config: LogConfig, size: int, last_offset: int, max_timestamp: int, now_ms: int
) -> bool:
    """Whether batches of `size` bytes need a new segment. Notes in the segment up to which timestamp its age need not
    be looked at again. It may read the segment's first batch."""
    if last_offset - segment.base_offset > MAX_RELATIVE_OFFSET:
        return True
    if segment.size == 0:
        return False
    limit = config.max_segment_ms - segment.roll_jitter_ms
    waited = segment.time_waited_for_roll(now_ms, max_timestamp)
    first = segment.first_timestamp
    segment.roll_timestamp = first + limit if first is not None and first >= 0 else ROLL_NOT_KNOWN
    return (
        segment.size + size > config.segment_bytes
        or waited > limit
        or segment.offset_index.is_full(config.segment_index_bytes)
        or segment.time_index.is_full(config.segment_index_bytes - 12)
    )
