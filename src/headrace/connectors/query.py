"""A streaming query that runs a connector, and is restarted when a failure may be temporary.

What is delivered does not depend on it: a restarted query continues from its checkpoint.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from enum import Enum, auto
from pathlib import Path
from typing import TYPE_CHECKING

from headrace.connectors.base import Connector, Running, Sink
from headrace.connectors.errors import ConnectorError
from headrace.connectors.progress import Tally
from headrace.connectors.waiting import waits_because
from headrace.streaming.restarts import Restarts
from headrace.streaming.spark_errors import TOO_BUSY, is_busy, is_transient, reason
from headrace.streaming.starts import Starts, is_starting

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

log = logging.getLogger("headrace.connectors")
_LONG = 3.0
"""Seconds after which a query that is still being started says so."""
_GIVEN_UP = "(run.retry_for)"
"""In what a task says when it has tried for long enough itself."""


class Phase(Enum):
    RUNNING = auto()  # as far as was last seen; on to PAUSED or ENDED
    PAUSED = auto()  # it failed and is started again: on to RUNNING
    ENDED = auto()


class ConnectorQuery(Running):
    def __init__(
        self,
        start: Callable[[], StreamingQuery],
        connector: Connector,
        retry_for: float,
        waiting: Path,
        starts: Starts,
    ) -> None:
        self._starts = starts
        self._start = start
        self._waiting = waiting  # where the tasks say what they wait for
        self._connector = connector
        self._tally = Tally()
        self._restarts = Restarts(retry_for, _may_pass)
        self._phase = Phase.RUNNING
        self._query = self._begin()

    def is_active(self) -> bool:
        """Also while it waits to be started again."""
        if self._phase is Phase.PAUSED:
            if self._restarts.is_due and not self._starts.is_one_under_way:
                self._query = self._begin()
        elif self._phase is Phase.RUNNING and not self._query.isActive:
            self._phase = self._phase_after(self._query.exception())
        return self._phase is not Phase.ENDED

    def failure(self) -> Exception | None:
        error = self._query.exception()
        if error is None:
            return None
        name, why = self._connector.name, _why(error)
        return ConnectorError(why if why.startswith(f"{name} ") else f"{name} failed: {why}")

    def facts(self) -> dict[str, object]:
        rows = self._tally.rows
        facts = self._tally.update(self._query.recentProgress)
        if self._tally.rows > rows:
            self._restarts.got_something_done()
        error = self._query.exception() if self._phase is Phase.PAUSED else None
        why = self._awaits() if error is None else _why(error)
        return facts if why is None else {**facts, "waits_because": why}

    def stop(self) -> None:
        self._query.stop()
        if isinstance(self._connector, Sink):
            self._connector.stop()

    def _begin(self) -> StreamingQuery:
        self._started_at = time.monotonic()
        self._phase = Phase.RUNNING
        return self._starts.started(self._start())

    def _phase_after(self, error: Exception | None) -> Phase:
        if error is None:
            return Phase.ENDED
        pause = self._restarts.after(str(error))
        if pause is None:
            return Phase.ENDED
        log.warning("%s: %s; starting again in %.1f s", self._connector.name, _why(error), pause)
        return Phase.PAUSED

    def _awaits(self) -> str | None:
        if time.monotonic() > self._started_at + _LONG and is_starting(self._query):
            return "Spark is starting its Python processes, which takes long on a busy machine"
        return waits_because(self._waiting)


def _may_pass(failure: str) -> bool:
    """Whether the other side is away or busy, and no task has already waited long enough itself."""
    return _GIVEN_UP not in failure and (is_transient(failure) or "Unavailable: " in failure)


def _why(error: Exception) -> str:
    """Without its full stop; where Spark's users set an option, a connector has a setting or a command."""
    from headrace.spark.read import IF_LOST, IF_RECREATED

    text = str(error)
    sentence = TOO_BUSY if is_busy(text) else reason(text)
    sentence = sentence.replace(IF_LOST, "To go on with what is there, start it once with --reset.")
    sentence = sentence.replace(
        IF_RECREATED, 'to read the new one from its beginning, set topic.recreated to "read".'
    )
    return sentence.rstrip(".")
