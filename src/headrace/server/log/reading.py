"""Reading from a log's segments as they were at one moment: which stretch of a file holds the records asked for, and which
aborted transactions touch them. It changes nothing, so it may run in a thread."""

from __future__ import annotations

from headrace.server.log.segments import SegmentView
from headrace.server.log.slice import LogSlice
from headrace.server.log.transaction_index import AbortedTransaction


class BeforeFirstSegment(LookupError):
    """The segment that held the offset has just been removed."""


def find_slice(
    view: SegmentView,
    offset: int,
    upper: int,
    max_bytes: int,
    min_one_batch: bool,
    nowait: bool,
    up_to_end: bool,
) -> LogSlice:
    """Whole batches from the one that holds `offset`, all below `upper`; see PartitionLog.read.

    With `up_to_end` there is nothing at or after `upper`, so it need not be looked for.
    """
    if offset < view.bases[0]:
        raise BeforeFirstSegment
    number = view.index_of(offset)
    segment = view.segments[number]
    location = segment.locate(offset, nowait=nowait)
    while location is None:  # Compaction left nothing at the end of this segment.
        number += 1
        if number == len(view.segments):
            return LogSlice(None, 0, 0, offset, offset)
        segment = view.segments[number]
        location = segment.locate(offset, nowait=nowait)
    position = location.position
    end = segment.size
    bound = view.end_of(number, upper)
    if upper < bound or (not up_to_end and number == len(view.segments) - 1):
        bound = upper
        first_above = segment.locate(upper, nowait=nowait)
        if first_above is not None:
            end = first_above.position
    if end - position > max_bytes:
        if location.size < max_bytes:
            end, bound = segment.cut(position, position + max_bytes, nowait=nowait)
        else:
            whole = location.size == max_bytes or min_one_batch
            end = min(end, position + location.size if whole else position)
            bound = location.last_offset + 1
    if end <= position:
        return LogSlice(None, 0, 0, offset, offset)
    size = end - position
    held = location.held if size == location.size else None
    return LogSlice(segment.handle(), position, size, location.base_offset, bound, held)


def aborted_between(view: SegmentView, first: int, last: int) -> list[AbortedTransaction]:
    """Transactions aborted that touch offsets from `first` to before `last`."""
    found: list[AbortedTransaction] = []
    for segment in view.segments[view.index_of(first) :]:
        if segment.has_aborted_transactions:
            more, complete = segment.transaction_index.collect(first, last)
            found += more
            if complete:
                break
    return found
