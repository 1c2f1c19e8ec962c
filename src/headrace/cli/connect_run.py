"""What `connect check` and `connect run` do: from files to running connectors, and back to sentences."""

from __future__ import annotations

import logging
import os
import sys
import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headrace.cli import output, properties
from headrace.cli.checked import to_mend
from headrace.cli.cluster import connect
from headrace.cli.connect_job import Job, spark_errors
from headrace.cli.failure import Exit, Failure
from headrace.cli.frame import Terminated
from headrace.cli.trouble import Names

if TYPE_CHECKING:
    from headrace.connectors.config import Declaration

_LOOK = 0.5
_LOG = ".headrace/spark.log"
_NAMES = Names("topic.bootstrap (or -b)", "topic.client")


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


def problems_of(file: Path, bootstrap: str | None, offline: bool, beside: Sequence[Path] = ()) -> list[str]:
    """``beside`` are the files it would be run with: their sources may create what it reads."""
    from headrace.client.errors import ClientError
    from headrace.connectors.config import load
    from headrace.connectors.errors import ConfigError, ConnectorError

    _make_importable([file])
    try:
        declared = load(file, bootstrap=bootstrap)
        if not offline:
            _check(declared, _topics_of_sources(beside, bootstrap))
    except ConfigError as error:
        return error.problems
    except (ConnectorError, ClientError, Failure) as error:
        return [str(error).rstrip(".")]
    return []


def _topics_of_sources(files: Sequence[Path], bootstrap: str | None) -> set[str]:
    from headrace.connectors.config import load
    from headrace.connectors.errors import ConfigError

    found: set[str] = set()
    for file in files:
        with suppress(ConfigError):  # told when it is that file's turn
            found |= _filled([load(file, bootstrap=bootstrap)])
    return found


def _filled(declarations: Iterable[Declaration]) -> set[str]:
    """The topics that sources among them write."""
    from headrace.connectors.run import topics_filled
    from headrace.connectors.topic import TopicOut

    topics = [each.topic for each in declarations]
    return {name for topic in topics if isinstance(topic, TopicOut) for name in topics_filled(topic)}


def _check(declaration: Declaration, created: Collection[str]) -> None:
    """Look at both sides. A cluster that is away is seen at once, where a client of its own would wait for it."""
    from headrace.connectors.run import check_connector, check_topics

    check_connector(declaration)
    topic = declaration.topic
    connect(topic.bootstrap, extra=topic.client, names=_NAMES)
    check_topics(declaration, created)


def run_files(wish: Wish) -> None:
    _let_libraries_speak()
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

    session = _Session(jobs, wish)
    try:
        _start(jobs, wish, session)
        with show(json=wish.json) as draw:
            is_interrupted = False
            try:
                while any(job.condition == "running" for job in jobs):
                    for job in jobs:
                        _look_after(job)
                    draw([job.report() for job in jobs])
                    time.sleep(_LOOK)
            except (KeyboardInterrupt, Terminated):
                is_interrupted = True
                if sys.stderr.isatty():
                    output.note("Stopping; what a batch has begun, the next run does again.")
                raise
            except BrokenPipeError:
                raise
            except Exception as error:  # Spark is gone, and with it all of them
                for job in jobs:
                    if job.condition == "running":
                        job.condition, job.error = "failed", _sentence(error)
                raise
            finally:
                _stop(jobs, session)
                draw([job.report() for job in jobs], last=True, troubles=is_interrupted)
    finally:
        session.stop()
    failed = [str(job.error).rstrip(".") + "." for job in jobs if job.condition == "failed"]
    if failed:
        raise Failure("\n".join(failed))


def _start(jobs: Sequence[Job], wish: Wish, session: _Session) -> None:
    """Look at all of them first, so that nothing moves when one of them cannot."""
    from headrace.connectors.run import check_topics, start

    filled = _filled(job.declaration for job in jobs)
    try:
        for job in jobs:
            if wish.reset:
                _reset(job)
            job.report()
        for job in jobs:
            with _blaming(job, jobs):
                _check(job.declaration, filled)
        _create_what_sinks_read(jobs)
        for job in jobs:
            with _blaming(job, jobs):
                check_topics(job.declaration)
                job.running = start(
                    job.declaration, job.state, session.get, once=wish.once, starts=session.starts
                )
            job.condition = "running"
            job.watch_lag()
            _wait_for_its_processes(job, session)
    except BaseException:
        _stop(jobs, session)
        raise


def _wait_for_its_processes(job: Job, session: _Session) -> None:
    """Before the next one is started: Spark gives each of its Python processes ten seconds, however busy the machine is."""
    told = False
    while session.starts.is_one_under_way and not job.state.is_asked_to_stop:
        waits = job.report()["state"] == "waiting"
        if waits and not told:
            told = True
            output.note(f"{job.declaration.name}: waiting for Spark to start its Python processes.")
        time.sleep(_LOOK / 5)


def _create_what_sinks_read(jobs: Sequence[Job]) -> None:
    from headrace.connectors.run import create_topics
    from headrace.connectors.topic import TopicIn, TopicOut

    topics = [job.declaration.topic for job in jobs]
    read = {name for topic in topics if isinstance(topic, TopicIn) for name in topic.name}
    for job in jobs:
        if isinstance(topic := job.declaration.topic, TopicOut):
            with _blaming(job, jobs):
                create_topics(topic, read)


@contextmanager
def _blaming(job: Job, jobs: Sequence[Job]) -> Iterator[None]:
    """A failure is this connector's; among several its file is named."""
    try:
        yield
    except Exception as error:
        told = _sentence(error)
        if told is None:
            raise
        job.condition, job.error = "failed", told
        code = error.code if isinstance(error, Failure) else Exit.FAILED
        raise Failure(f"{told if len(jobs) == 1 else f'{job.file}: {told}'}.", code) from None


def _stop(jobs: Sequence[Job], session: _Session) -> None:
    with session.killed_if_slow():
        _stop_all(jobs)


def _stop_all(jobs: Sequence[Job]) -> None:
    for job in jobs:
        if job.running is not None and job.condition == "running":
            with suppress(*spark_errors()):  # Whoever ended this command may have ended Spark's process, too.
                job.running.stop()
        if job.condition in ("starting", "running"):
            job.condition = "stopped"
        job.stop_watching()
        job.report()


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
        job.stop_watching()  # after a last look, so that what is left for `status` is true at the end
        job.report()
        job.state.release()


class _Session:
    """Spark, started when the first connector needs it: an HTTP endpoint does not."""

    def __init__(self, jobs: Sequence[Job], wish: Wish) -> None:
        from headrace.connectors.query import Starts

        self._settings: dict[str, str] = {}
        for job in jobs:
            self._settings |= job.declaration.spark
        self._settings |= properties.from_arguments(wish.conf, "--conf")
        self._master = wish.master
        self._root = jobs[0].file.absolute().parent if wish.state is None else wish.state
        self._spark: Any = None
        self.starts = Starts()

    def get(self) -> Any:
        if self._spark is None:
            from headrace.connectors.errors import ConnectorError
            from headrace.pipelines.errors import PipelineError
            from headrace.pipelines.session import open_session

            if sys.stderr.isatty():
                output.note(f"Starting Spark ({self._master}); what it says is in {_LOG}.")
            try:
                self._spark = open_session("headrace connect", self._master, self._settings, self._root)
            except PipelineError as error:
                raise ConnectorError(str(error)) from None
        return self._spark

    @contextmanager
    def killed_if_slow(self) -> Iterator[None]:
        if self._spark is None:
            yield
            return
        from headrace.pipelines.session import killed_if_slow

        with killed_if_slow(self._spark):
            yield

    def stop(self) -> None:
        if self._spark is not None:
            from headrace.pipelines.session import close_session

            close_session(self._spark)


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
    try:
        yield
    except BrokenPipeError:  # nobody reads our output any more, and the frame knows what that means
        raise
    except Failure:
        raise
    except Exception as error:
        told = _sentence(error)
        if told is None:
            raise
        raise Failure(f"{told}.") from None


def _sentence(error: Exception) -> str | None:
    """What went wrong, without its full stop; None for what is not the user's to know."""
    from headrace.client.errors import ClientError
    from headrace.connectors.errors import ConnectorError

    if isinstance(error, ConnectorError | ClientError | Failure):
        told = str(error)
    elif isinstance(error, ImportError):
        told = f"Connectors on Spark need the extra: pip install 'headrace[spark]' ({error})"
    elif isinstance(error, ConnectionError) or type(error).__name__ in ("Py4JError", "Py4JNetworkError"):
        told = f"Spark ended before the connectors did; what it said is in {_LOG}"
    elif isinstance(error, OSError):
        told = f"{error.filename or 'The state of the connectors'} cannot be used: {error.strerror}"
    elif isinstance(error, spark_errors()):
        from headrace.connectors.progress import reason

        told = reason(str(error))
    else:
        return None
    return told.rstrip(".")


def _let_libraries_speak() -> None:
    """Warnings in our voice, on whatever stderr is then: a live table puts its own in place."""

    class Stderr(logging.StreamHandler[Any]):
        def emit(self, record: logging.LogRecord) -> None:
            self.stream = sys.stderr
            super().emit(record)

    logging.basicConfig(level=logging.WARNING, format="headrace: %(message)s", handlers=[Stderr()])
    # A cluster that is away is told by the connectors' state; the client would say so at every try.
    logging.getLogger("headrace.client").setLevel(logging.CRITICAL)
    logging.getLogger("py4j").setLevel(
        logging.CRITICAL
    )  # it logs each call to a Spark that is gone, with its stack
