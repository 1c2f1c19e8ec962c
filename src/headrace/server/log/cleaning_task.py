"""What the broker asks of the cleaner process, and what it answers, in lines of JSON: one for each segment that is ready
to be put into service, as soon as it is, and one for the end."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field


@dataclass(slots=True)
class SourceSegment:
    """A segment as it stands when the task is made."""

    base_offset: int
    end_offset: int
    size: int
    offset_index_bytes: int
    time_index_bytes: int


@dataclass(slots=True)
class CleaningTask:
    """What the cleaner is to do with one log."""

    directory: str
    first_dirty_offset: int
    upper_offset: int
    now_ms: int
    delete_retention_ms: int
    segment_bytes: int
    segment_index_bytes: int
    index_interval_bytes: int
    map_bytes: int
    max_bytes_per_second: float
    segments: list[SourceSegment]
    transaction_indexes: list[tuple[int, int]] = field(default_factory=list)
    """(base offset of the segment, size) of every index of aborted transactions, those of later segments
    too."""
    last_records: list[tuple[int, int, int]] = field(default_factory=list)
    """(producer id, last data offset, producer epoch) of producers that are still active."""


@dataclass(slots=True)
class CleanedSegment:
    """A finished segment that takes the place of others."""

    base_offset: int
    sources: list[int]
    """Base offsets of the segments it replaces."""
    size: int
    offset_index_bytes: int
    time_index_bytes: int
    transaction_index_bytes: int


@dataclass(slots=True)
class CleaningEnd:
    """The last answer to a task."""

    clean_until: int = 0
    """The log is compacted up to here, once every segment is in service."""
    error: str | None = None


Answer = CleanedSegment | CleaningEnd


def encode(value: CleaningTask | Answer) -> bytes:
    return json.dumps(asdict(value), separators=(",", ":")).encode() + b"\n"


def decode_task(line: bytes) -> CleaningTask:
    values = json.loads(line)
    values["segments"] = [SourceSegment(**segment) for segment in values["segments"]]
    return CleaningTask(**values)


def decode_answer(line: bytes) -> Answer:
    values = json.loads(line)
    return CleanedSegment(**values) if "base_offset" in values else CleaningEnd(**values)
