"""Whether a segment and its indexes are sound: checksums, offsets that only grow, index entries that hit batches."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from headrace.cli.failure import Failure
from headrace.cli.view.dump.indexes import IndexedLog, offset_entries, time_entries
from headrace.cli.view.dump.segment_file import Batch, SegmentFile

_MOST_FINDINGS = 20  # a broken file has one cause, not thousands


@dataclass(slots=True)
class Report:
    file: Path
    batches: int = 0
    records: int = 0
    findings: list[str] = field(default_factory=list)

    def add(self, finding: str) -> None:
        if len(self.findings) < _MOST_FINDINGS:
            self.findings.append(finding)

    def as_json(self) -> dict[str, Any]:
        return {
            "file": str(self.file),
            "batches": self.batches,
            "records": self.records,
            "sound": not self.findings,
            "findings": self.findings,
        }


def verify(log: Path, on_progress: Callable[[int], object]) -> Report:
    report = Report(log)
    segment = SegmentFile(log)
    next_offset = segment.base_offset
    for batch in segment:
        report.batches += 1
        report.records += batch.header.records_count
        _check_batch(batch, next_offset, report)
        next_offset = max(next_offset, batch.header.next_offset)
        on_progress(batch.header.size)
    if segment.trailing:
        report.add(f"{segment.trailing} bytes at the end are no batch.")
    _check_indexes(log, report)
    return report


def _check_batch(batch: Batch, next_offset: int, report: Report) -> None:
    where = f"The batch at position {batch.position} (offset {batch.header.base_offset})"
    if not batch.is_valid:
        report.add(f"{where} has a wrong checksum.")
        return
    # Compaction leaves gaps, so offsets may jump ahead; they never go back.
    if batch.header.base_offset < next_offset:
        report.add(f"{where} does not come after offset {next_offset - 1}.")
    try:
        for record in batch.records():
            if not batch.header.base_offset <= record.offset <= batch.header.last_offset:
                report.add(f"{where} holds offset {record.offset}, which is not its own.")
    except Failure as failure:
        report.add(failure.sentence)


def _check_indexes(log: Path, report: Report) -> None:
    index, time_index = log.with_suffix(".index"), log.with_suffix(".timeindex")
    with IndexedLog(log) as indexed:
        for entry in offset_entries(index) if index.exists() else ():
            found = indexed.offset_mismatch(entry)
            if found is not None and entry != (0, 0):
                report.add(
                    f"{index.name} points offset {entry.offset} to position {entry.position}, where {found} is."
                )
        previous = -1
        for moment in time_entries(time_index) if time_index.exists() else ():
            wrong = indexed.time_mismatch(moment)
            if moment.timestamp <= previous:
                report.add(f"{time_index.name} goes back from {previous} to {moment.timestamp}.")
            elif wrong is not None and moment.timestamp > 0:
                report.add(
                    f"{time_index.name} says {moment.timestamp} for offset {moment.offset}; the log does not."
                )
            previous = moment.timestamp
