"""One connector of a `connect run`: what became of it, and what it reports to the screen and to `connect status`."""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from headrace.client.lag_watch import LagWatch
    from headrace.connectors.base import Running
    from headrace.connectors.config import Declaration
    from headrace.connectors.state import State


@dataclass(slots=True)
class Job:
    """One connector of this run."""

    declaration: Declaration
    state: State
    file: Path
    running: Running | None = None
    lags: LagWatch | None = None
    condition: str = "starting"
    error: str | None = None
    said: dict[str, Any] = field(default_factory=lambda: {"rows": 0})
    began: float = field(default_factory=time.time)

    def facts(self) -> dict[str, Any]:
        """What there is to say now; one that waits to be started again says why in ``error``, too."""
        if self.running is not None:
            with suppress(*spark_errors()):  # when Spark is gone, what was said last stands
                self.said = self.running.facts()
        waits = self.condition == "running" and (self.said.get("waits_because") or self._absence())
        return {
            "connector": self.declaration.name,
            "type": self.declaration.type,
            "direction": self.declaration.connector.direction,
            "topic": self.declaration.topic.name,
            "file": str(self.file.absolute()),
            "state": "waiting" if waits else self.condition,
            "began": self.began,
            "updated": time.time(),
            "error": waits or self.error,
            **{name: fact for name, fact in self.said.items() if name != "waits_because"},
            **self._lag(),
        }

    def _absence(self) -> str | None:
        """Spark itself tries again for a while, without a word."""
        if self.lags is None or not self.lags.is_cluster_away:
            return None
        return f"the cluster at {self.declaration.topic.bootstrap} does not answer"

    def watch_lag(self) -> None:
        """A sink commits how far it is to a group; of a source, only the absence of its cluster is noticed."""
        from headrace.client.lag_watch import LagWatch
        from headrace.connectors.topic import TopicIn, connection

        topic = self.declaration.topic
        group = topic.group if isinstance(topic, TopicIn) else None
        self.lags = LagWatch(connection(topic), [group or f"connect-{self.declaration.name}"])

    def stop_watching(self) -> None:
        if self.lags is not None:
            self.lags.close()

    def _lag(self) -> dict[str, Any]:
        if self.lags is None or self.declaration.connector.direction != "sink":
            return {}  # a group that has the name of a source's is somebody else's
        lag = self.lags.lag(self.lags.groups[0])
        return {} if lag is None else {"lag_rows": lag.records, "lag_seconds": lag.seconds}

    def report(self) -> dict[str, Any]:
        facts = self.facts()
        if self.state.is_held:  # else it may run elsewhere by now
            self.state.report(facts)
        return facts


def spark_errors() -> tuple[type[Exception], ...]:
    """What talking to Spark may raise, also when its process is gone."""
    try:
        from py4j.protocol import Py4JError  # type: ignore[import-untyped]
        from pyspark.errors import PySparkException
    except ImportError:
        return (OSError,)
    return (PySparkException, Py4JError, OSError)
