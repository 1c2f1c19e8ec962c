"""What a pipeline's functions need to know about the run they are called in: the cluster, the version of
the outputs, where reading begins, and which flow is asking.

`headrace pipeline` sets it; under `spark-pipelines` it comes from the settings of the Spark session.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from pyspark.errors import PySparkRuntimeError
from pyspark.sql import SparkSession

from headrace.client.dead_letters import SUFFIX
from headrace.client.degrade.rules import Rule
from headrace.link import DEFAULT_BOOTSTRAP
from headrace.pipelines.errors import PipelineError

SETTING = "spark.headrace."
BOOTSTRAP = SETTING + "bootstrap.servers"


@dataclass(frozen=True, slots=True)
class Start:
    """Where a replay begins: options for every topic, or offsets for the partitions of some."""

    options: Mapping[str, str] = field(default_factory=lambda: {"startingOffsets": "earliest"})
    offsets: Mapping[str, Mapping[int, int]] = field(default_factory=dict)
    dead_letters: bool = False  # read each topic's dead letters in its place


@dataclass(frozen=True, slots=True)
class Run:
    bootstrap: str
    connection: Mapping[str, str] = field(default_factory=dict)  # further kafka.* options, as for the source
    pipeline: str | None = None
    version: str | None = None
    start: Start | None = None
    empty: str | None = None
    """An empty directory to read in every topic's place: a project is only checked, and nothing of it will run."""

    def options(self) -> dict[str, str]:
        return {"kafka.bootstrap.servers": self.bootstrap, **self.connection}

    def versioned(self, topic: str) -> str:
        """The topic that this version writes: ``orders.large.v2``, and ``orders.v2.dlq`` for dead letters."""
        if self.version is None:
            return topic
        base = topic.removesuffix(SUFFIX)
        return f"{base}.{self.version}{topic[len(base) :]}"

    @property
    def takes_up_dead_letters(self) -> bool:
        """Whether each topic's dead letters are read in its place."""
        return self.start is not None and self.start.dead_letters

    def client_config(self) -> dict[str, object]:
        """The same connection for headrace.client."""
        return {name.removeprefix("kafka."): value for name, value in self.options().items()}


@dataclass(slots=True)
class Asking:
    """The flow whose function is being called, and the topics it has been seen to read."""

    flow: str
    reads: set[str] = field(default_factory=set)
    rules: dict[str, tuple[Rule, ...]] = field(default_factory=dict)
    """By which it does without some records, for each topic that it reads with rules."""


_run: ContextVar[Run | None] = ContextVar("headrace_pipeline_run", default=None)
_asking: ContextVar[Asking | None] = ContextVar("headrace_pipeline_flow", default=None)


def active_session() -> SparkSession:
    """The session of this thread or, where a thread has none of its own, of the process."""
    try:
        return SparkSession.active()
    except PySparkRuntimeError:
        raise PipelineError(
            "A topic is read inside a flow's function, and there is no Spark session here."
        ) from None


def current_run() -> Run:
    return _run.get() or _from_session(active_session())


def current_flow() -> Asking | None:
    return _asking.get()


@contextmanager
def running(run: Run) -> Iterator[None]:
    token = _run.set(run)
    try:
        yield
    finally:
        _run.reset(token)


@contextmanager
def asking(flow: str) -> Iterator[Asking]:
    """Around a call of a flow's function. Views are called inside the flow that reads them."""
    outer = _asking.get()
    asked = outer if outer is not None and outer.flow == flow else Asking(flow)
    token = _asking.set(asked)
    try:
        yield asked
    finally:
        _asking.reset(token)


def _from_session(session: SparkSession) -> Run:
    return Run(session.conf.get(BOOTSTRAP, None) or os.environ.get("HEADRACE_BOOTSTRAP") or DEFAULT_BOOTSTRAP)
