"""What `connect check` and `connect run` do: from files to running connectors, and back to sentences."""

from __future__ import annotations

import logging
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headrace.cli import output, properties
from headrace.cli.checked import to_mend
from headrace.cli.failure import Failure

if TYPE_CHECKING:
    from headrace.client.lag_watch import LagWatch
    from headrace.connectors.base import Running
    from headrace.connectors.config import Declaration
    from headrace.connectors.state import State

_LOOK = 0.5


@dataclass(frozen=True, slots=True)
class Wish:
    files: Sequence[Path]
    bootstrap: str | None
    once: bool
    reset: bool
    master: str
    conf: Sequence[str]
    state: Path | None
    json: bool


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
    began: float = field(default_factory=time.time)

    def facts(self) -> dict[str, Any]:
        return {
            "connector": self.declaration.name,
            "type": self.declaration.type,
            "direction": self.declaration.connector.direction,
            "topic": self.declaration.topic.name,
            "file": str(self.file.absolute()),
            "state": self.condition,
            "began": self.began,
            "updated": time.time(),
            "error": self.error,
            **(self.running.facts() if self.running is not None else {"rows": 0}),
            **self._lag(),
        }

    def watch_lag(self) -> None:
        """A sink commits how far it is to a group."""
        from headrace.client.lag_watch import LagWatch
        from headrace.connectors.topic import TopicIn, connection

        topic = self.declaration.topic
        if isinstance(topic, TopicIn):
            self.lags = LagWatch(connection(topic), [topic.group or f"connect-{self.declaration.name}"])

    def stop_watching(self) -> None:
        if self.lags is not None:
            self.lags.close()

    def _lag(self) -> dict[str, Any]:
        lag = None if self.lags is None else self.lags.lag(self.lags.groups[0])
        return {} if lag is None else {"lag_rows": lag.records, "lag_seconds": lag.seconds}

    def report(self) -> dict[str, Any]:
        facts = self.facts()
        self.state.report(facts)
        return facts


def problems_of(file: Path, bootstrap: str | None, offline: bool) -> list[str]:
    from headrace.client.errors import ClientError
    from headrace.connectors.config import load
    from headrace.connectors.errors import ConfigError, ConnectorError

    _make_importable([file])
    try:
        declared = load(file, bootstrap=bootstrap)
        if not offline:
            from headrace.connectors.run import check

            check(declared)
    except ConfigError as error:
        return error.problems
    except (ConnectorError, ClientError) as error:
        return [str(error)]
    return []


def run_files(wish: Wish) -> None:
    logging.basicConfig(level=logging.WARNING, format="headrace: %(message)s")
    with _speaking():
        from headrace.connectors.state import DIRECTORY, State

        _make_importable(wish.files)
        jobs: list[Job] = []
        for file in wish.files:
            declared = _load(file, wish.bootstrap)
            root = wish.state if wish.state is not None else file.absolute().parent / DIRECTORY
            jobs.append(Job(declared, State(root, declared.name), file))
        _check_names(jobs)
        try:
            for job in jobs:
                job.state.lock()
            _run(jobs, wish)
        finally:
            for job in jobs:
                job.state.release()


def _run(jobs: list[Job], wish: Wish) -> None:
    from headrace.cli.connect_view import show
    from headrace.connectors.run import check, start

    session = _Session(jobs, wish)
    try:
        for job in jobs:
            if wish.reset:
                _reset(job)
            job.report()
            check(job.declaration)
            job.running = start(job.declaration, job.state, session.get, once=wish.once)
            job.condition = "running"
            job.watch_lag()
        with show(json=wish.json) as draw:
            while any(job.condition == "running" for job in jobs):
                for job in jobs:
                    _look_after(job)
                draw([job.report() for job in jobs])
                time.sleep(_LOOK)
            draw([job.report() for job in jobs], last=True)
    except BaseException as error:
        for job in jobs:
            if job.condition == "starting":
                job.condition, job.error = "failed", str(error)
        raise
    finally:
        for job in jobs:
            if job.running is not None and job.condition == "running":
                job.running.stop()
                job.condition = "stopped"
            job.stop_watching()
            job.report()
        session.stop()
    failed = [f"{job.error}." for job in jobs if job.condition == "failed"]
    if failed:
        raise Failure("\n".join(failed).replace("..", "."))


def _reset(job: Job) -> None:
    elsewhere = job.declaration.run.checkpoint
    if elsewhere is not None:
        raise Failure(
            f"run.checkpoint is {elsewhere}, which --reset leaves alone: delete {elsewhere}/{job.declaration.name}."
        )
    job.state.reset()


def _look_after(job: Job) -> None:
    """What has become of a connector since the last look."""
    running = job.running
    if running is None or job.condition != "running":
        return
    if job.state.is_asked_to_stop:
        running.stop()
        job.condition = "stopped"
    elif not running.is_active():
        failure = running.failure()
        job.condition = "done" if failure is None else "failed"
        job.error = None if failure is None else str(failure)
        running.stop()
    if job.condition != "running":
        job.report()
        job.state.release()


class _Session:
    """Spark, started when the first connector needs it: an HTTP endpoint does not."""

    def __init__(self, jobs: Sequence[Job], wish: Wish) -> None:
        self._settings: dict[str, str] = {}
        for job in jobs:
            self._settings |= job.declaration.spark
        self._settings |= properties.from_arguments(wish.conf, "--conf")
        self._master = wish.master
        self._root = jobs[0].file.absolute().parent if wish.state is None else wish.state
        self._spark: Any = None

    def get(self) -> Any:
        if self._spark is None:
            from headrace.pipelines.session import open_session

            self._spark = open_session("headrace connect", self._master, self._settings, self._root)
        return self._spark

    def stop(self) -> None:
        if self._spark is not None:
            self._spark.stop()


def _load(file: Path, bootstrap: str | None) -> Declaration:
    from headrace.connectors.config import load
    from headrace.connectors.errors import ConfigError

    try:
        return load(file, bootstrap=bootstrap)
    except ConfigError as error:
        for problem in error.problems:
            output.note(f"{file}: {problem}")
        raise to_mend(len(error.problems), str(file)) from None


def _make_importable(files: Sequence[Path]) -> None:
    """A class in a module beside a connector's file is found here and, through the environment, by local workers."""
    for directory in {str(file.absolute().parent) for file in files}:
        if directory not in sys.path:
            sys.path.append(directory)
            known = os.environ.get("PYTHONPATH")
            os.environ["PYTHONPATH"] = f"{known}{os.pathsep}{directory}" if known else directory


def _check_names(jobs: Sequence[Job]) -> None:
    names = [job.declaration.name for job in jobs]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise Failure(f"Two of these files declare a connector named {twice}; give one of them another name.")


@contextmanager
def _speaking() -> Iterator[None]:
    """Whatever goes wrong becomes the command's one sentence."""
    from headrace.client.errors import ClientError
    from headrace.connectors.errors import ConnectorError

    kinds: tuple[type[Exception], ...] = (ConnectorError, ClientError, OSError)
    sentence: Callable[[str], str] = str
    try:
        import pyspark.errors
        from py4j.protocol import Py4JError  # type: ignore[import-untyped]
    except ImportError:
        pass
    else:
        from headrace.connectors.progress import reason

        kinds = (*kinds, pyspark.errors.PySparkException, Py4JError)
        sentence = reason
    try:
        yield
    except BrokenPipeError:  # nobody reads our output any more, and the frame knows what that means
        raise
    except ImportError as error:
        raise Failure(
            f"Connectors on Spark need the extra: pip install 'headrace[spark]' ({error})."
        ) from None
    except kinds as error:
        own = isinstance(error, ConnectorError | ClientError)
        raise Failure(f"{(str(error) if own else sentence(str(error))).rstrip('.')}.") from None
