"""A pipeline that runs, from its project to its end; and a look at what would run."""

from __future__ import annotations

import logging
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import closing, nullcontext
from dataclasses import replace
from pathlib import Path

from py4j.protocol import Py4JError  # type: ignore[import-untyped]

from headrace.link import DEFAULT_BOOTSTRAP
from headrace.nearest import nearest
from headrace.pipelines.context import BOOTSTRAP, Run, Start
from headrace.pipelines.errors import BadArgument, Problem, ProjectBroken
from headrace.pipelines.pipeline import Pipeline, prepare
from headrace.pipelines.progress import FlowStatus
from headrace.pipelines.project import Project
from headrace.pipelines.runner import Runner
from headrace.pipelines.state import RunState
from headrace.streaming.session import SHORT_LIVED, Session
from headrace.streaming.supervision import Ending

log = logging.getLogger("headrace.pipelines")
_JAVA_OPTIONS = "spark.driver.extraJavaOptions"


class ProjectRun:
    """The work of a run (see streaming/supervision.py)."""

    def __init__(
        self,
        project: Project,
        run: Run,
        session: Session,
        *,
        once: bool = False,
        interval: float = 1.0,
        refresh: float = 60.0,
        reset: tuple[str, ...] = (),
        tell: Callable[[str], None] = log.info,
    ) -> None:
        """``interval`` is the seconds from the start of one batch to the next, ``refresh`` those between two computations of a
        materialized view. ``reset`` names flows that begin anew; ``tell`` is called with what is worth knowing at the start."""
        self._project = project
        self._run = run
        self._session = session
        self._once = once
        self._interval = interval
        self._refresh = refresh
        self._reset = reset
        self._tell = tell
        self._state = RunState(project.root, run.version)
        self._began = time.time()
        self._runner: Runner | None = None

    def start(self) -> None:
        self._state.hold()
        self._state.write(self._project.name, "starting", [])
        try:
            pipeline = prepare(self._project, self._session.get(), self._run)
            self._make_ready(pipeline)
            self._runner = self._runner_of(pipeline)
        except BaseException as error:
            if isinstance(error, Exception):
                self._state.write(self._project.name, Ending.FAILED, [], error=str(error))
            else:  # Ctrl-C or SIGTERM
                self._state.write(self._project.name, Ending.STOPPED, [])
            raise
        self._began = time.time()

    def turn(self) -> Ending | None:
        self._session.be_active()
        assert self._runner is not None
        if not self._runner.turn():
            return Ending.DONE
        self._report("running")
        return Ending.STOPPED if self._state.is_asked_to_stop else None

    def end(self, ending: Ending, error: Exception | None) -> None:
        """A run that is stopped ends in bounded time. Whatever ended it may have ended Spark's process, too."""
        assert self._runner is not None
        try:
            with self._session.killed_if_slow() if ending is Ending.STOPPED else nullcontext():
                self._runner.stop()
        except (Py4JError, OSError):
            if ending is not Ending.STOPPED:
                ending = Ending.FAILED
                raise
        finally:
            self._report(ending)

    def failure(self) -> None:
        """One flow that fails ends them all, so there is nothing left to say."""
        return

    def close(self) -> None:
        try:
            self._session.close()
        finally:
            try:
                if self._runner is not None:
                    self._runner.settle()
            finally:
                self._state.release()

    def statuses(self) -> list[FlowStatus]:
        return [] if self._runner is None else [replace(status) for status in self._runner.statuses]

    def _runner_of(self, pipeline: Pipeline) -> Runner:
        return Runner(
            pipeline.steps,
            pipeline.run,
            pipeline.checkpoints,
            pipeline.tables,
            once=self._once,
            interval=self._interval,
            refresh=self._refresh,
        )

    def _make_ready(self, pipeline: Pipeline) -> None:
        steps = {step.name: step for step in pipeline.steps}
        for name in self._reset:
            if name not in steps:
                near = nearest(name, steps)
                hint = f" Did you mean '{near}'?" if near else ""
                raise BadArgument(f"There is no flow '{name}' to reset.{hint}")
            pipeline.reset(steps[name])
        problems = pipeline.missing_topics() + pipeline.checkpoints.problems(pipeline.steps)
        if problems:
            raise ProjectBroken(problems)
        for name in pipeline.create_topics():
            self._tell(f"Created topic {name}.")

    def _report(self, state: str) -> None:
        flows = [status.as_json() for status in self.statuses()]
        self._state.write(self._project.name, state, flows, began=self._began, master=self._session.master)


def run_of(
    project: Project,
    *,
    bootstrap: str | None = None,
    client: Mapping[str, str] | None = None,
    version: str | None = None,
    start: Start | None = None,
) -> Run:
    """What the project's functions will know about the run. ``client`` are further settings by Kafka's names."""
    if version is not None and not version.replace("-", "").replace("_", "").isalnum():
        raise BadArgument(f"A version is named with letters, digits, - and _, not '{version}'.")
    if bootstrap is None:
        bootstrap = project.spec.configuration.get(BOOTSTRAP, DEFAULT_BOOTSTRAP)
    connection = {f"kafka.{key}": value for key, value in (client or {}).items()}
    return Run(bootstrap, connection, project.name, version, start)


def session_of(
    project: Project,
    run: Run,
    master: str,
    settings: Mapping[str, str],
    *,
    is_short: bool = False,
    opening: Callable[[], None] = lambda: None,
) -> Session:
    """``settings`` are Spark's and win over the project's. A short session ends before what makes a long run fast pays."""
    settings = {**project.spec.configuration, BOOTSTRAP: str(run.bootstrap), **settings}
    if is_short:
        settings[_JAVA_OPTIONS] = f"{SHORT_LIVED} {settings.get(_JAVA_OPTIONS, '')}".strip()
    return Session(project.name, master, settings, project.root, opening=opening)


def check(project: Project, run: Run, session: Session, *, offline: bool) -> tuple[list[Problem], int]:
    """The problems of a project, and how many flows it has when it can be resolved. Nothing runs; ``offline``: and no
    broker is asked."""
    with tempfile.TemporaryDirectory() as scratch, closing(session):
        tables, empty = Path(scratch, "tables"), Path(scratch, "empty")
        empty.mkdir()
        try:
            pipeline = prepare(project, session.get(), replace(run, empty=empty.as_uri()), tables.as_uri())
        except ProjectBroken as broken:
            return broken.problems, 0
        problems = pipeline.checkpoints.problems(pipeline.steps)
        if not offline:
            problems += pipeline.missing_topics()
        return problems, len(pipeline.steps)
