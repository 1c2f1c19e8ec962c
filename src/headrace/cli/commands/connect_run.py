"""What `connect check` and `connect run` do: from the command line to connectors, and back to sentences."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headrace.cli.cluster.connection import connect
from headrace.cli.cluster.trouble import Names
from headrace.cli.failure import Exit, Failure
from headrace.cli.parsing import properties
from headrace.cli.view import output
from headrace.cli.view.checked import to_fix
from headrace.connectors.errors import ConnectorError

if TYPE_CHECKING:
    from headrace.connectors.config import Declaration
    from headrace.connectors.topic import TopicIn, TopicOut
    from headrace.connectors.work import Connectors

_NAMES = Names("topic.bootstrap (or -b)", "topic.client")


class _Unreachable(ConnectorError):
    """The command's own failure to reach a cluster, on its way through the connectors."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.sentence)
        self.code = failure.code


def problems_of(file: Path, bootstrap: str | None, offline: bool, beside: Sequence[Path] = ()) -> list[str]:
    """``beside`` are the files it would run with: their sources may create what it reads."""
    from headrace.connectors import checks

    return checks.problems_of(file, bootstrap, offline=offline, beside=beside, reach=_reach)


def run_files(
    files: Sequence[Path],
    *,
    bootstrap: str | None,
    once: bool,
    reset: bool,
    master: str,
    conf: Sequence[str],
    state: Path | None,
    metrics: str | None,
    json: bool,
) -> None:
    _let_libraries_speak()
    with _speaking():
        from headrace.connectors.work import Connectors

        declared = [_load(file, bootstrap) for file in files]
        connectors = Connectors(
            declared,
            once=once,
            reset=reset,
            master=master,
            settings=properties.from_arguments(conf, "--conf"),
            state=state,
            reach=_reach,
            opening=lambda: _announce_spark(master),
            tell=output.note,
        )
        _run(connectors, metrics, json)


def _run(connectors: Connectors, metrics: str | None, json: bool) -> None:
    from headrace.cli.view.connectors import show
    from headrace.streaming.metrics import serving
    from headrace.streaming.supervision import Run

    is_stopped = False

    def stopping() -> None:
        nonlocal is_stopped
        is_stopped = True
        if sys.stderr.isatty():
            output.note("Stopping; what a batch has begun, the next run does again.")

    def statuses() -> list[tuple[str, Mapping[str, object]]]:
        return [(each.name, {**each.facts, "state": each.state}) for each in run.statuses]

    with Run(connectors) as run, serving(metrics, "connector", statuses):
        run.start()
        with show(json=json) as draw:
            try:
                run.supervise(lambda: draw([each.facts for each in run.statuses]), stopping)
            finally:
                draw([each.facts for each in run.statuses], last=True, troubles=is_stopped)


def _reach(topic: TopicIn | TopicOut) -> None:
    """A cluster that is away is seen at once, where a client of the connector's own would wait for it."""
    try:
        connect(topic.bootstrap, extra=topic.client, names=_NAMES)
    except Failure as failure:
        raise _Unreachable(failure) from None


def _announce_spark(master: str) -> None:
    from headrace.streaming.session import LOG

    if sys.stderr.isatty():
        output.note(f"Starting Spark ({master}); what it says is in {LOG}.")


def _load(file: Path, bootstrap: str | None) -> Declaration:
    from headrace.connectors.config import load
    from headrace.connectors.errors import ConfigError

    try:
        return load(file, bootstrap=bootstrap)
    except ConfigError as error:
        for problem in error.problems:
            output.note(f"{file}: {problem}")
        raise to_fix(len(error.problems), str(file)) from None


@contextmanager
def _speaking() -> Iterator[None]:
    """Whatever goes wrong becomes the command's one sentence."""
    from headrace.connectors.sentences import sentence

    try:
        yield
    except (BrokenPipeError, Failure):  # of the former the command's frame knows what it means
        raise
    except Exception as error:
        text = sentence(error)
        if text is None:
            raise
        cause = error.__cause__
        raise Failure(f"{text}.", cause.code if isinstance(cause, _Unreachable) else Exit.FAILED) from None


def _let_libraries_speak() -> None:
    """Warnings in our voice, on whatever stderr is then: a live table puts its own in place."""

    class Stderr(logging.StreamHandler[Any]):
        def emit(self, record: logging.LogRecord) -> None:
            self.stream = sys.stderr
            super().emit(record)

    logging.basicConfig(level=logging.WARNING, format="headrace: %(message)s", handlers=[Stderr()])
    # The connectors' state says that a cluster is away; the client would at every try.
    logging.getLogger("headrace.client").setLevel(logging.CRITICAL)
    # It logs each call of a Spark that is gone, with its stack.
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
