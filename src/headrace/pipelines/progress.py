"""What a flow is doing, in numbers: summed up from Spark's progress reports and the lag of the flow's group."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from headrace.client import LagMonitor
from headrace.client.errors import ClientError
from headrace.pipelines.context import Run
from headrace.pipelines.resolve import Step
from headrace.pipelines.source import group_of
from headrace.pipelines.topics import WRITTEN

_WINDOW = 10.0
_LAG_INTERVAL, _LAST_MEASURE = 2.0, 5.0
_EPOCH = "1970-01-01"


@dataclass(slots=True)
class FlowStatus:
    """The numbers of one flow; None is "not known"."""

    flow: str
    output: str
    state: str = "starting"
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

    def as_json(self) -> dict[str, object]:
        return asdict(self)


@dataclass(slots=True)
class Meter:
    """Turns the progress reports of one flow into its status."""

    status: FlowStatus
    letters: bool
    _last: str = ""
    _recent: deque[tuple[float, int, int]] = field(default_factory=deque)

    def take(self, reports: list[Any]) -> bool:
        """Count the reports not seen yet; true when a batch was completed."""
        moved = False
        for report in reports:
            if (at := str(report.timestamp)) <= self._last:
                continue
            self._last = at
            self._gauges(report)
            self._count(report)
            moved = True
        self._rates()
        return moved

    def _count(self, report: Any) -> None:
        status = self.status
        counts = [pair for row in (report.observedMetrics or {}).values() for pair in row.asDict().items()]
        rows_out = max(0, int(report.sink.numOutputRows)) if report.sink is not None else 0
        rows_out += sum(count for name, count in counts if name == WRITTEN)
        status.rows_in += int(report.numInputRows)
        status.rows_out += rows_out
        status.batch = int(report.batchId)
        status.batch_seconds = report.batchDuration / 1000
        if self.letters:
            status.dead_letters += rows_out
        for name, count in counts:
            kind = name.partition(" ")[0]
            status.dropped += count if kind == "drop" else 0
            status.kept += count if kind == "keep" else 0
            status.dead_letters += count if kind == "dead_letter" else 0
        self._recent.append((time.monotonic(), int(report.numInputRows), rows_out))

    def _gauges(self, report: Any) -> None:
        self.status.state_rows = sum(each.numRowsTotal for each in report.stateOperators)
        self.status.state_bytes = sum(each.memoryUsedBytes for each in report.stateOperators)
        mark = (report.eventTime or {}).get("watermark")
        self.status.watermark = None if mark is None or mark.startswith(_EPOCH) else mark

    def _rates(self) -> None:
        now = time.monotonic()
        while self._recent and self._recent[0][0] < now - _WINDOW:
            self._recent.popleft()
        self.status.rows_in_per_second = sum(each[1] for each in self._recent) / _WINDOW
        self.status.rows_out_per_second = sum(each[2] for each in self._recent) / _WINDOW


class Lags:
    """Measures how far flows are behind, by the offsets they commit to their groups, in a thread of its own: asking a
    cluster that is away takes long, and nothing else shall wait for it."""

    def __init__(self, run: Run, flows: Sequence[tuple[Step, FlowStatus]]) -> None:
        self._run = run
        self._flows = [(step, status) for step, status in flows if step.topics and step.rows.isStreaming]
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._work, name="lag", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Measure once more, if the cluster answers soon, and end."""
        self._closed.set()
        self._thread.join(_LAST_MEASURE)

    def _work(self) -> None:
        with LagMonitor(self._run.client_config()) as monitor:
            while not self._closed.wait(_LAG_INTERVAL):
                self._measure(monitor)
            self._measure(monitor)

    def _measure(self, monitor: LagMonitor) -> None:
        for step, status in self._flows:
            try:
                lag = monitor.measure(group_of(self._run, step.name))
            except ClientError:
                status.lag_rows = status.lag_seconds = None  # the flow itself will say what is wrong
                continue
            if lag.partitions:
                status.lag_rows, status.lag_seconds = lag.records, lag.seconds
