"""A streaming query that runs a connector, and is started again when a failure may pass by itself.

What is delivered does not depend on it: a query that starts again goes on from its checkpoint.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from headrace.connectors.base import Connector, Running, Sink
from headrace.connectors.errors import ConnectorError
from headrace.connectors.progress import Tally, reason
from headrace.connectors.waiting import waits_because
from headrace.spark.retrying import delay

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

log = logging.getLogger("headrace.connectors")
_PATIENCE_WHILE_BUSY = 3600.0
"""Seconds to try again while this machine is too busy for Spark, if run.retry_for is shorter."""
_LONG = 3.0
"""Seconds after which a query that is still being started says so."""


class Starts:
    """The queries of one session that Spark is still starting the Python processes for: each of them takes all of a busy
    machine, so that they are started one after the other."""

    def __init__(self) -> None:
        self._last: StreamingQuery | None = None

    @property
    def is_one_under_way(self) -> bool:
        last = self._last
        return last is not None and last.isActive and last.status["message"].startswith("Initializing")

    def started(self, query: StreamingQuery) -> StreamingQuery:
        self._last = query
        return query


class Query(Running):
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
        self._retry_for = retry_for
        self._tally = Tally()
        self._failures = 0
        self._again_at: float | None = None
        self._failing_since: float | None = None
        self._query = self._begin()

    @property
    def is_setting_out(self) -> bool:
        """Whether Spark is still starting the Python processes that it needs."""
        return self._query.isActive and self._query.status["message"].startswith("Initializing")

    def is_active(self) -> bool:
        """Also while it waits to be started again."""
        if self._query.isActive:
            return True
        error = self._query.exception()
        if error is None or not self._may_pass(str(error)):
            return False
        now = time.monotonic()
        if self._again_at is None:
            pause = delay(self._failures)
            log.warning("%s: %s; starting again in %.1f s", self._connector.name, _why(error), pause)
            self._again_at = now + pause
            self._failures += 1
        elif now >= self._again_at and not self._starts.is_one_under_way:
            self._again_at = None
            self._query = self._begin()
        return True

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
            self._failing_since, self._failures = None, 0
        error = None if self._again_at is None else self._query.exception()
        why = self._awaits() if error is None else _why(error)
        return facts if why is None else {**facts, "waits_because": why}

    def _awaits(self) -> str | None:
        if self.is_setting_out and time.monotonic() > self._started_at + _LONG:
            return "Spark is starting its Python processes, which takes long on a busy machine"
        return waits_because(self._waiting)

    def _begin(self) -> StreamingQuery:
        self._started_at = time.monotonic()
        return self._starts.started(self._start())

    def stop(self) -> None:
        self._query.stop()
        if isinstance(self._connector, Sink):
            self._connector.stop()

    def _may_pass(self, text: str) -> bool:
        """Somebody is away or busy, and was not for too long since the last rows."""
        from headrace.pipelines.spark_errors import is_busy, is_transient

        given_up = "(run.retry_for)" in text
        if given_up or not (is_transient(ConnectorError(text)) or "Unavailable: " in text):
            return False
        if self._failing_since is None:
            self._failing_since = time.monotonic()
        patience = self._retry_for
        if is_busy(ConnectorError(text)):
            patience = max(patience, _PATIENCE_WHILE_BUSY)
        return time.monotonic() - self._failing_since < patience


def _why(error: Exception) -> str:
    """Without its full stop; where Spark's users set an option, a connector has a setting or a command."""
    from headrace.pipelines.spark_errors import TOO_BUSY, is_busy
    from headrace.spark.read import IF_LOST, IF_RECREATED

    sentence = TOO_BUSY if is_busy(error) else reason(str(error))
    sentence = sentence.replace(IF_LOST, "To go on with what is there, start it once with --reset.")
    sentence = sentence.replace(
        IF_RECREATED, 'to read the new one from its beginning, set topic.recreated to "read".'
    )
    return sentence.rstrip(".")
