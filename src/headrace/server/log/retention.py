"""Which segments may go: by age, by size, or because DeleteRecords has passed them. It only decides; it removes nothing."""

from __future__ import annotations

from headrace.server.log.config import LogConfig
from headrace.server.log.segment import Segment
from headrace.server.log.segments import Segments


def deletable(
    segments: Segments, config: LogConfig, now_ms: int, log_start_offset: int, log_end_offset: int, upper: int
) -> list[Segment]:
    """The oldest segments that retention lets go, none of which reaches `upper` (the high watermark).

    It can be all of them: then the log begins an empty segment first.
    """
    chosen = 0
    excess = segments.size - config.retention_bytes if config.delete and config.retention_bytes >= 0 else 0
    for number, segment in enumerate(segments):
        end_offset = segments.end_of(number, log_end_offset)
        is_active = number == len(segments) - 1
        if end_offset > upper or (is_active and segment.size == 0):
            break
        excess -= segment.size
        passed = not is_active and end_offset <= log_start_offset
        too_big = config.delete and config.retention_bytes >= 0 and excess >= 0
        too_old = (
            config.delete
            and config.retention_ms >= 0
            and now_ms - segment.largest_timestamp() > config.retention_ms
        )
        if not (passed or too_old or too_big):
            break
        chosen += 1
    return [segments[number] for number in range(chosen)]
