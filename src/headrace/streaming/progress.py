"""Spark's progress reports, each read once, and the pace of what they count."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, TypeVar

from headrace.client.pace import Pace

Report = TypeVar("Report", bound=Mapping[str, Any])


class Progress:
    """The reports of one query, also when it is started again. Spark keeps the last few only, and hands them out again and
    again."""

    def __init__(self) -> None:
        self._seen = ""
        self._pace: Pace | None = None

    def unseen(self, reports: Iterable[Report]) -> Iterator[Report]:
        for report in reports:
            if (at := str(report["timestamp"])) > self._seen:
                self._seen = at
                yield report

    def pace(self, began: float, seconds: float, totals: Sequence[int]) -> list[float]:
        """How much each total grows in a second, now that a batch has begun at a time and taken so long."""
        self._pace = self._pace or Pace(began, len(totals))
        self._pace.take(began + seconds, totals)
        return self._pace.rates


def began_at(report: Mapping[str, Any]) -> float:
    return datetime.fromisoformat(report["timestamp"]).timestamp()
