"""What a flow is doing, in numbers: summed up from Spark's progress reports and the lag of the flow's group."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any

from headrace.client import GroupLag
from headrace.pipelines.topics import WRITTEN
from headrace.streaming.progress import Progress, began_at

_EPOCH = "1970-01-01"


class FlowState(StrEnum):
    """What a flow is doing, in the words of its report."""

    STARTING = "starting"  # or it waits for its turn to be started
    RUNNING = "running"
    WAITING = "waiting"  # for the cluster, or to be started again
    SWITCHED_OFF = "switched off"  # by a rule of its own, until that is released
    FRESH = "fresh"  # a materialized view between two refreshes
    DONE = "done"
    STOPPED = "stopped"
    FAILED = "failed"


_LIVE = frozenset({FlowState.STARTING, FlowState.RUNNING, FlowState.WAITING, FlowState.SWITCHED_OFF})
_OVER = frozenset({FlowState.DONE, FlowState.STOPPED, FlowState.FAILED})
_NEXT: Mapping[FlowState, frozenset[FlowState]] = {
    FlowState.STARTING: _LIVE | _OVER,
    FlowState.RUNNING: _LIVE | _OVER | {FlowState.FRESH},
    FlowState.WAITING: _LIVE | _OVER,
    FlowState.SWITCHED_OFF: _LIVE | _OVER,
    FlowState.FRESH: frozenset({FlowState.RUNNING, FlowState.STOPPED, FlowState.FAILED}),
    FlowState.DONE: frozenset(),
    FlowState.STOPPED: frozenset(),
    FlowState.FAILED: frozenset(),
}


@dataclass(slots=True)
class FlowStatus:
    """The numbers of one flow; None is "not known"."""

    flow: str
    output: str
    state: FlowState = FlowState.STARTING
    rows_in: int = 0
    rows_out: int = 0
    rows_in_per_second: float = 0.0
    rows_out_per_second: float = 0.0
    lag_rows: int | None = None
    lag_seconds: float | None = None
    batch: int | None = None
    batch_seconds: float | None = None
    state_rows: int = 0
    state_bytes: int = 0
    watermark: str | None = None
    dead_letters: int = 0
    dropped: int = 0
    kept: int = 0
    restarts: int = 0
    error: str | None = None

    @property
    def is_over(self) -> bool:
        return self.state in _OVER

    def become(self, state: FlowState) -> None:
        assert state in _NEXT[self.state], f"{self.flow} is {self.state} and cannot become {state}"
        self.state = state

    def take_lag(self, lag: GroupLag | None) -> None:
        self.lag_rows = None if lag is None else lag.records
        self.lag_seconds = None if lag is None else lag.seconds

    def as_json(self) -> dict[str, object]:
        return asdict(self)


@dataclass(slots=True)
class Meter:
    """Turns the progress reports of one flow into its status."""

    status: FlowStatus
    letters: bool
    _progress: Progress = field(default_factory=Progress)

    def take(self, reports: list[Any]) -> bool:
        """Count the reports not seen yet; true when there was one, so that the flow is known to work."""
        moved = False
        for report in self._progress.unseen(reports):
            self._gauges(report)
            self._count(report)
            self._rates(report)
            moved = True
        return moved

    def _count(self, report: Any) -> None:
        status = self.status
        counts = [pair for row in (report.observedMetrics or {}).values() for pair in row.asDict().items()]
        rows_out = max(0, int(report.sink.numOutputRows)) if report.sink is not None else 0
        rows_out += sum(count for name, count in counts if name == WRITTEN)
        status.rows_in += int(report.numInputRows)
        status.rows_out += rows_out
        if "addBatch" in report.durationMs:  # else Spark has looked and found nothing new
            status.batch = int(report.batchId)
            status.batch_seconds = report.batchDuration / 1000
        if self.letters:
            status.dead_letters += rows_out
        for name, count in counts:
            kind = name.partition(" ")[0]
            status.dropped += count if kind == "drop" else 0
            status.kept += count if kind == "keep" else 0
            status.dead_letters += count if kind == "dead_letter" else 0

    def _gauges(self, report: Any) -> None:
        self.status.state_rows = sum(each.numRowsTotal for each in report.stateOperators)
        self.status.state_bytes = sum(each.memoryUsedBytes for each in report.stateOperators)
        self.status.watermark = _watermark(report)

    def _rates(self, report: Any) -> None:
        """Spark reports each batch and, when nothing comes, every ten seconds."""
        status = self.status
        status.rows_in_per_second, status.rows_out_per_second = self._progress.pace(
            began_at(report), report.batchDuration / 1000, [status.rows_in, status.rows_out]
        )


def waits_for_the_clock(reports: list[Any]) -> bool:
    """Whether the last batch had nothing to read, and no watermark that had moved asked for it. Then timers of
    processing time did: for those Spark makes one batch after the other, and never has caught up."""
    if len(reports) < 2 or "addBatch" not in reports[-1].durationMs:
        return False
    before, last = reports[-2:]
    has_nothing_to_read = all(source.startOffset == source.endOffset for source in last.sources)
    return has_nothing_to_read and _watermark(before) == _watermark(last)


def _watermark(report: Any) -> str | None:
    mark = (report.eventTime or {}).get("watermark")
    return None if mark is None or mark.startswith(_EPOCH) else str(mark)
