"""Finding an offset by time: which segment by its largest timestamp, where by its time index, then record by
record in the one batch that holds the answer."""

from __future__ import annotations

from typing import NamedTuple

from headrace.server.log.segment import Segment
from headrace.server.log.segments import SegmentView
from headrace.wire.batch import NO_TIMESTAMP, BatchHeader
from headrace.wire.records import decode_records


class TimestampOffset(NamedTuple):
    timestamp: int
    offset: int
    leader_epoch: int


def first_at_or_after(view: SegmentView, timestamp: int, start_offset: int) -> TimestampOffset | None:
    """The first record, from `start_offset` on, whose timestamp is not before `timestamp`."""
    for segment in view.segments:
        if segment.max_timestamp < timestamp:
            continue
        entry = segment.time_index.floor(timestamp)
        offset = max(segment.base_offset + entry[1] if entry else segment.base_offset, start_offset)
        location = segment.locate(offset)
        if location is None:
            continue
        for position, header in segment.headers(location.position):
            if header.max_timestamp >= timestamp and header.last_offset >= start_offset:
                found = _in_batch(segment, position, header, timestamp, start_offset)
                if found is not None:
                    return found
    return None


def latest_timestamp(view: SegmentView) -> TimestampOffset | None:
    """The record with the largest timestamp; the first of those that share it within a batch."""
    segment = max(view.segments, key=lambda segment: segment.max_timestamp)
    # In this order: the log may grow meanwhile, and then the larger timestamp lies after the offset, never before it.
    offset = segment.max_timestamp_offset
    timestamp = segment.max_timestamp
    if timestamp == NO_TIMESTAMP:
        return None
    location = segment.locate(offset)
    if location is None:
        return None
    for position, header in segment.headers(location.position):
        if header.max_timestamp == timestamp:
            found = _in_batch(segment, position, header, timestamp, header.base_offset)
            return found or _latest_of_all(view.segments)
    return None


def _latest_of_all(segments: list[Segment]) -> TimestampOffset | None:
    """The same from every header, for when compaction emptied the batch that the indexes name and kept it for its producer."""
    latest: tuple[Segment, int, BatchHeader] | None = None
    for segment in segments:
        for position, header in segment.headers(0):
            if header.records_count and (latest is None or header.max_timestamp > latest[2].max_timestamp):
                latest = (segment, position, header)
    if latest is None or latest[2].max_timestamp == NO_TIMESTAMP:
        return None
    segment, position, header = latest
    return _in_batch(segment, position, header, header.max_timestamp, header.base_offset)


def _in_batch(
    segment: Segment, position: int, header: BatchHeader, timestamp: int, start_offset: int
) -> TimestampOffset | None:
    for record in decode_records(segment.read_batch(position, header), header):
        if record.timestamp >= timestamp and record.offset >= start_offset:
            return TimestampOffset(record.timestamp, record.offset, header.leader_epoch)
    return None
