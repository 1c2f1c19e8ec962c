"""A progress bar on stderr for long work, when stderr is a terminal; nothing otherwise."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Any

_QUIET_FIRST = 0.5  # seconds: short work needs no bar
_REFRESH = 0.1


class Progress:
    """`with Progress("Writing", total, "records") as p: p.advance(n)`; cheap enough to call for every record."""

    def __init__(self, title: str, total: int | None, unit: str, *, shown: bool = True) -> None:
        self._title = title
        self._total = total
        self._unit = unit
        self._enabled = shown and sys.stderr.isatty()
        self._done = 0
        self._due = time.monotonic() + _QUIET_FIRST
        self._bar: Any = None
        self._task: Any = None

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.update(self._task, completed=self._done)
            self._bar.stop()

    def advance(self, amount: int) -> None:
        self._done += amount
        if self._enabled and time.monotonic() >= self._due:
            self._draw()

    def _draw(self) -> None:
        self._due = time.monotonic() + _REFRESH
        if self._bar is None:
            self._bar, self._task = _start_bar(self._title, self._total, self._unit)
        self._bar.update(self._task, completed=self._done)


def _start_bar(title: str, total: int | None, unit: str) -> tuple[Any, Any]:
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    amount = DownloadColumn() if unit == "bytes" else MofNCompleteColumn()
    bar = Bar(
        TextColumn("{task.description}"),
        BarColumn(),
        amount,
        TextColumn(unit if unit != "bytes" else ""),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    )
    bar.start()
    return bar, bar.add_task(title, total=total)
