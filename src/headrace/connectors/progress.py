"""Spark's progress reports of a connector, in the few facts people ask for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from headrace.streaming.progress import Progress, began_at


class Tally:
    """Rows since the connector started, and their pace."""

    def __init__(self) -> None:
        self.rows = 0
        self._progress = Progress()
        self._last: dict[str, object] = {}

    def update(self, recent: Iterable[Mapping[str, Any]]) -> dict[str, object]:
        for report in self._progress.unseen(recent):
            began = began_at(report)
            seconds = int(report["durationMs"].get("triggerExecution", 0)) / 1000
            self.rows += int(report["numInputRows"])
            if report["numInputRows"]:  # else Spark has looked and found nothing new
                self._last = {"batch": report["batchId"], "batch_seconds": seconds, "at": began + seconds}
            (rate,) = self._progress.pace(began, seconds, [self.rows])
            self._last["rows_per_second"] = round(rate, 1)
        return {"rows": self.rows, **self._last}
