"""Connectors that run together on one Spark, from their declarations to their end."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from headrace.connectors.checks import Reach, check, check_topics, create_topics, filled_by
from headrace.connectors.config import Declaration
from headrace.connectors.errors import ConnectorError
from headrace.connectors.job import Condition, Job
from headrace.connectors.launch import start
from headrace.connectors.sentences import sentence
from headrace.connectors.state import DIRECTORY, State, Status
from headrace.connectors.topic import TopicIn, TopicOut
from headrace.streaming.masters import LOCAL
from headrace.streaming.session import Session
from headrace.streaming.starts import Starts
from headrace.streaming.supervision import Ending

log = logging.getLogger("headrace.connectors")
_LOOK = 0.1


class StartFailed(ConnectorError):
    """One of several connectors cannot start, so none does; the cause is the error's."""


class Connectors:
    """The work of a run (see streaming/supervision.py)."""

    def __init__(
        self,
        declarations: Sequence[Declaration],
        *,
        once: bool = False,
        reset: bool = False,
        master: str = LOCAL,
        settings: Mapping[str, str] | None = None,
        state: Path | None = None,
        reach: Reach = lambda topic: None,
        opening: Callable[[], None] = lambda: None,
        tell: Callable[[str], None] = log.warning,
    ) -> None:
        """``settings`` are Spark's, ``state`` is where states are kept if not beside the files; ``opening`` is called before
        Spark is started, ``tell`` with what is worth knowing while the connectors are started."""
        _check_names([each.name for each in declarations])
        homes = [Path.cwd() if each.file is None else each.file.absolute().parent for each in declarations]
        self._jobs = [
            Job(declared, State(home / DIRECTORY if state is None else state, declared.name))
            for declared, home in zip(declarations, homes, strict=True)
        ]
        of_files = {name: value for each in declarations for name, value in each.spark.items()}
        self._session = Session(
            "headrace connect",
            master,
            {**of_files, **(settings or {})},
            homes[0] if state is None else state,
            opening=opening,
        )
        self._starts = Starts()
        self._once = once
        self._reset = reset
        self._reach = reach
        self._tell = tell

    def start(self) -> None:
        for job in self._jobs:
            job.state.lock()
        try:
            self._start()
        except BaseException:
            self.end(Ending.STOPPED, None)
            raise

    def turn(self) -> Ending | None:
        self._session.be_active()
        for job in self._jobs:
            job.look_after()
        return Ending.DONE if all(job.is_over for job in self._jobs) else None

    def end(self, ending: Ending, error: Exception | None) -> None:
        """With an error, Spark is gone, and with it all that still ran."""
        with self._session.killed_if_slow():
            for job in self._jobs:
                if job.is_over:
                    continue
                if error is None:
                    job.stop()
                else:
                    job.failed(sentence(error) or f"{type(error).__name__}: {error}")

    def failure(self) -> ConnectorError | None:
        failed = [job for job in self._jobs if job.condition is Condition.FAILED]
        lines = [f"{str(job.error).rstrip('.')}." for job in failed]
        return ConnectorError("\n".join(lines)) if lines else None

    def close(self) -> None:
        try:
            self._session.close()
        finally:
            for job in self._jobs:
                job.state.release()

    def statuses(self) -> list[Status]:
        return [job.status for job in self._jobs]

    def _start(self) -> None:
        """Look at all of them first, so that nothing moves when one of them cannot."""
        for job in self._jobs:
            if self._reset:
                job.reset()
            job.report()
        created = filled_by(job.declaration for job in self._jobs)
        for job in self._jobs:
            with self._blaming(job):
                check(job.declaration, created, self._reach)
        self._create_what_sinks_read()
        for job in self._jobs:
            with self._blaming(job):
                check_topics(job.declaration)
                job.started(
                    start(job.declaration, job.state, self._session.get, once=self._once, starts=self._starts)
                )
            self._wait_for_its_processes(job)

    def _create_what_sinks_read(self) -> None:
        topics = [job.declaration.topic for job in self._jobs]
        read = {name for topic in topics if isinstance(topic, TopicIn) for name in topic.name}
        for job in self._jobs:
            if isinstance(topic := job.declaration.topic, TopicOut):
                with self._blaming(job):
                    create_topics(topic, read)

    def _wait_for_its_processes(self, job: Job) -> None:
        """Before the next connector is started (see streaming/starts.py)."""
        is_announced = False
        while self._starts.is_one_under_way and not job.state.is_asked_to_stop:
            job.report()
            if job.status.state == "waiting" and not is_announced:
                is_announced = True
                self._tell(f"{job.declaration.name}: waiting for Spark to start its Python processes.")
            time.sleep(_LOOK)

    @contextmanager
    def _blaming(self, job: Job) -> Iterator[None]:
        """A failure is this connector's; among several, the sentence names its file."""
        try:
            yield
        except Exception as error:
            text = sentence(error)
            if text is None:
                raise
            job.failed(text)
            named = job.declaration.file or job.declaration.name
            raise StartFailed(text if len(self._jobs) == 1 else f"{named}: {text}") from error


def _check_names(names: Sequence[str]) -> None:
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise ConnectorError(
            f"Two of these files declare a connector named {twice}; give one of them another name"
        )
