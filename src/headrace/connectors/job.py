"""One connector of a run: what became of it, and what it reports."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from contextlib import suppress
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from headrace.connectors.errors import ConnectorError
from headrace.connectors.state import State, Status
from headrace.connectors.topic import TopicIn, connection
from headrace.streaming.spark_errors import talking_to_spark

if TYPE_CHECKING:
    from headrace.client.lag_watch import LagWatch
    from headrace.connectors.base import Running
    from headrace.connectors.config import Declaration


class Condition(StrEnum):
    """What a connector is, in the words of its report; one that runs may be reported as waiting."""

    STARTING = "starting"
    RUNNING = "running"
    DONE = "done"
    STOPPED = "stopped"
    FAILED = "failed"


_NEXT: Mapping[Condition, frozenset[Condition]] = {
    Condition.STARTING: frozenset({Condition.RUNNING, Condition.STOPPED, Condition.FAILED}),
    Condition.RUNNING: frozenset({Condition.DONE, Condition.STOPPED, Condition.FAILED}),
    Condition.DONE: frozenset(),
    Condition.STOPPED: frozenset(),
    Condition.FAILED: frozenset(),
}


class Job:
    def __init__(self, declaration: Declaration, state: State) -> None:
        self.declaration = declaration
        self.state = state
        self.condition = Condition.STARTING
        self.error: str | None = None
        self._running: Running | None = None
        self._lags: LagWatch | None = None
        self._said: dict[str, Any] = {"rows": 0}
        self._began = time.time()
        self._reported: dict[str, Any] = self._facts()

    @property
    def is_over(self) -> bool:
        return not _NEXT[self.condition]

    @property
    def status(self) -> Status:
        """As it was last reported."""
        return Status(self.declaration.name, None if self.is_over else os.getpid(), self._reported)

    def reset(self) -> None:
        """Forget the checkpoint, if it is ours to forget."""
        elsewhere, name = self.declaration.run.checkpoint, self.declaration.name
        if elsewhere is not None:
            raise ConnectorError(
                f"run.checkpoint is {elsewhere}, which --reset leaves alone: delete {elsewhere}/{name}"
            )
        self.state.reset()

    def started(self, running: Running) -> None:
        self._running = running
        self._become(Condition.RUNNING)
        self._watch_lag()
        self.report()

    def failed(self, error: str) -> None:
        """It could not be started, or Spark is gone."""
        self._end(Condition.FAILED, error)

    def stop(self) -> None:
        self._end(Condition.STOPPED)

    def look_after(self) -> None:
        """See what has become of it since the last look, and report. When it is over, another process may run it."""
        if self.is_over or self._running is None:
            return
        if self.state.is_asked_to_stop:
            self.stop()
        elif self._running.is_active():
            self.report()
        else:
            failure = self._running.failure()
            if failure is None:
                self._end(Condition.DONE)
            else:
                self._end(Condition.FAILED, str(failure))
        if self.is_over:
            self.state.release()

    def report(self) -> None:
        """Leave for `status` what there is to say now."""
        self._reported = self._facts()
        if self.state.is_held:  # else it may run elsewhere by now
            self.state.report(self._reported)

    def _watch_lag(self) -> None:
        """A sink commits how far it is to a group; of a source, only the absence of its cluster is noticed."""
        from headrace.client.lag_watch import LagWatch

        topic = self.declaration.topic
        group = topic.group if isinstance(topic, TopicIn) else None
        self._lags = LagWatch(connection(topic), [group or f"connect-{self.declaration.name}"])

    def _end(self, condition: Condition, error: str | None = None) -> None:
        if self._running is not None:
            with suppress(*talking_to_spark()):  # whatever ended this run may have ended Spark's process, too
                self._running.stop()
        self._become(condition)
        self.error = error
        if self._lags is not None:
            self._lags.close()  # after a last look, so that the last report is true
        self.report()

    def _become(self, condition: Condition) -> None:
        assert condition in _NEXT[self.condition], f"{self.condition} cannot become {condition}"
        self.condition = condition

    def _facts(self) -> dict[str, Any]:
        """What there is to say now; one that waits to be started again says why in ``error``, too."""
        if self._running is not None:
            with suppress(*talking_to_spark()):  # when Spark is gone, the last report stays
                self._said = self._running.facts()
        waits = self.condition is Condition.RUNNING and (self._said.get("waits_because") or self._absence())
        file = self.declaration.file
        return {
            "connector": self.declaration.name,
            "type": self.declaration.type,
            "direction": self.declaration.connector.direction,
            "topic": self.declaration.topic.name,
            "file": None if file is None else str(file.absolute()),
            "state": "waiting" if waits else str(self.condition),
            "began": self._began,
            "updated": time.time(),
            "error": waits or self.error,
            **{name: fact for name, fact in self._said.items() if name != "waits_because"},
            **self._lag(),
        }

    def _absence(self) -> str | None:
        """Spark itself tries again for a while, without a word."""
        if self._lags is None or not self._lags.is_cluster_away:
            return None
        return f"the cluster at {self.declaration.topic.bootstrap} does not answer"

    def _lag(self) -> dict[str, Any]:
        if self._lags is None or self.declaration.connector.direction != "sink":
            return {}  # a group with the name of a source's does not belong to it
        lag = self._lags.lag(self._lags.groups[0])
        return {} if lag is None else {"lag_rows": lag.records, "lag_seconds": lag.seconds}
