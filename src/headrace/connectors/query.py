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

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

log = logging.getLogger("headrace.connectors")
_FIRST_DELAY, _LONGEST_DELAY = 1.0, 30.0


class Query(Running):
    def __init__(
        self, start: Callable[[], StreamingQuery], connector: Connector, retry_for: float, waiting: Path
    ) -> None:
        self._start = start
        self._waiting = waiting  # where the tasks say what they wait for
        self._connector = connector
        self._retry_for = retry_for
        self._tally = Tally()
        self._delay = _FIRST_DELAY
        self._again_at: float | None = None
        self._failing_since: float | None = None
        self._query = start()

    def is_active(self) -> bool:
        """Also while it waits to be started again."""
        if self._query.isActive:
            return True
        error = self._query.exception()
        if error is None or not self._may_pass(str(error)):
            return False
        now = time.monotonic()
        if self._again_at is None:
            log.warning("%s: %s; starting again in %g s", self._connector.name, _why(error), self._delay)
            self._again_at = now + self._delay
            self._delay = min(2 * self._delay, _LONGEST_DELAY)
        elif now >= self._again_at:
            self._again_at = None
            self._query = self._start()
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
            self._failing_since, self._delay = None, _FIRST_DELAY
        error = None if self._again_at is None else self._query.exception()
        why = waits_because(self._waiting) if error is None else _why(error)
        return facts if why is None else {**facts, "waits_because": why}

    def stop(self) -> None:
        self._query.stop()
        if isinstance(self._connector, Sink):
            self._connector.stop()

    def _may_pass(self, text: str) -> bool:
        """Somebody is away or busy, and was not for too long since the last rows."""
        from headrace.pipelines.spark_errors import is_transient

        given_up = "(run.retry_for)" in text
        if given_up or not (is_transient(ConnectorError(text)) or "Unavailable: " in text):
            return False
        if self._failing_since is None:
            self._failing_since = time.monotonic()
        return time.monotonic() - self._failing_since < self._retry_for


def _why(error: Exception) -> str:
    """Without its full stop; where Spark's users set an option, a connector has a setting or a command."""
    from headrace.spark.read import IF_LOST, IF_RECREATED

    sentence = reason(str(error))
    sentence = sentence.replace(IF_LOST, "To go on with what is there, start it once with --reset.")
    sentence = sentence.replace(
        IF_RECREATED, 'to read the new one from its beginning, set topic.recreated to "read".'
    )
    return sentence.rstrip(".")
