"""What `pipeline check`, `run` and `replay` do: from the command line to a pipeline, and back to sentences."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from headrace.cli.cluster.connection import connect
from headrace.cli.failure import Failure, Misuse
from headrace.cli.parsing import properties, times
from headrace.cli.view import output

if TYPE_CHECKING:
    from headrace.pipelines.context import Start
    from headrace.pipelines.errors import Problem
    from headrace.pipelines.project import Project
    from headrace.pipelines.work import ProjectRun

_OFFSET = re.compile(r"(?P<topic>[A-Za-z][\w.-]*):(?P<partition>\d+):(?P<offset>\d+)")


@dataclass(frozen=True, slots=True)
class Request:
    """What the command line asks to run."""

    project: Path
    bootstrap: str | None
    """None: the project's, or the default."""
    command_config: Path | None
    master: str
    conf: Sequence[str]
    version: str | None = None
    start: Start | None = None
    once: bool = False
    interval: float = 1.0
    refresh: float = 60.0
    reset: tuple[str, ...] = ()
    metrics: str | None = None
    json: bool = False


def check_project(
    place: Path,
    *,
    bootstrap: str | None,
    command_config: Path | None,
    offline: bool,
    master: str,
    conf: Sequence[str],
) -> tuple[list[Problem], int]:
    """The problems of a project, and how many flows it has when there are none."""
    with _speaking():
        from headrace.pipelines.project import load, locate
        from headrace.pipelines.work import check, run_of, session_of

        project = load(locate(place))
        servers = _servers(project, bootstrap)
        run = run_of(project, bootstrap=servers, client=_client(servers, command_config))
        settings = properties.from_arguments(conf, "--conf")
        if not offline:
            connect(run.bootstrap, command_config)
        session = session_of(project, run, master, settings, is_short=True, opening=_announcing(master))
        return check(project, run, session, offline=offline)


def run_project(request: Request) -> None:
    with _speaking():
        from headrace.pipelines.project import load, locate
        from headrace.pipelines.work import ProjectRun, run_of, session_of

        project = load(locate(request.project))
        servers = _servers(project, request.bootstrap)
        run = run_of(
            project,
            bootstrap=servers,
            client=_client(servers, request.command_config),
            version=request.version,
            start=request.start,
        )
        settings = properties.from_arguments(request.conf, "--conf")
        # Spark takes its time to start, and a missing broker is seen at once.
        connect(run.bootstrap, request.command_config)
        session = session_of(project, run, request.master, settings, opening=_announcing(request.master))
        work = ProjectRun(
            project,
            run,
            session,
            once=request.once,
            interval=request.interval,
            refresh=request.refresh,
            reset=request.reset,
            tell=output.note,
        )
        _run(work, project.name, request)


def _run(work: ProjectRun, name: str, request: Request) -> None:
    from headrace.cli.view.pipelines import show
    from headrace.streaming.metrics import serving
    from headrace.streaming.supervision import Ending, Run

    def statuses() -> list[tuple[str, dict[str, object]]]:
        return [(each.flow, each.as_json()) for each in run.statuses]

    with Run(work) as run, serving(request.metrics, "flow", statuses), ExitStack() as screen:
        run.start()
        draw = screen.enter_context(show(name, request.version, json=request.json))

        def stopping() -> None:
            screen.close()
            output.note("Stopping the flows; what a batch has begun, the next run does again.")

        if run.supervise(lambda: draw(run.statuses), stopping) is Ending.DONE:
            draw(run.statuses, last=True)


def start_of(places: Sequence[str]) -> Start:
    """Where to begin, as users write it."""
    from headrace.pipelines.context import Start

    if places == ["dead-letters"]:
        return Start(dead_letters=True)
    if len(places) == 1 and places[0] in ("earliest", "latest"):
        return Start({"startingOffsets": places[0]})
    if len(places) == 1 and not _OFFSET.fullmatch(places[0]):
        return Start(
            {
                "startingTimestamp": str(times.milliseconds_of(places[0])),
                "startingOffsetsByTimestampStrategy": "latest",
            }
        )
    offsets: dict[str, dict[int, int]] = {}
    for place in places:
        match = _OFFSET.fullmatch(place)
        if match is None:
            raise Misuse(
                f"--from takes earliest, latest, a time, dead-letters or TOPIC:PARTITION:OFFSET, not '{place}'."
            )
        offsets.setdefault(match["topic"], {})[int(match["partition"])] = int(match["offset"])
    return Start(offsets=offsets)


def _servers(project: Project, given: str | None) -> str | None:
    """The brokers given, else the project's, else those of the context in use."""
    from headrace.cli.parsing.which_cluster import in_use
    from headrace.pipelines.context import BOOTSTRAP

    return given or project.spec.configuration.get(BOOTSTRAP) or in_use()


def _client(servers: str | None, command_config: Path | None) -> dict[str, str]:
    """The settings of the context that the servers come from, if any, and those of the file, which win."""
    from headrace.link.contexts import properties_of

    return properties_of(servers) | ({} if command_config is None else properties.load(command_config))


def _announcing(master: str) -> Callable[[], None]:
    def announce() -> None:
        from headrace.streaming.session import LOG

        if sys.stderr.isatty():
            output.note(f"Starting Spark ({master}); what it says is in {LOG}.")

    return announce


@contextmanager
def _speaking() -> Iterator[None]:
    """Whatever goes wrong becomes the command's one sentence."""
    try:
        import pyspark.errors
        import pyspark.pipelines
        import pyspark.sql.datasource
        from py4j.protocol import Py4JError  # type: ignore[import-untyped]
    except ImportError as error:
        raise Failure(
            f"Pipelines need the extra: pip install 'headrace[spark]', or make setup in a checkout ({error.name} is missing)."
        ) from None
    from headrace.client.errors import ClientError
    from headrace.pipelines.errors import BadArgument, ProjectBroken
    from headrace.pipelines.spark_errors import sentence
    from headrace.streaming.errors import StreamingError
    from headrace.streaming.session import LOG

    try:
        yield
    except BadArgument as error:
        raise Misuse(str(error)) from None
    except ProjectBroken as broken:
        raise Failure(_all(broken.problems)) from None
    except (StreamingError, ClientError) as error:
        raise Failure(str(error)) from None
    except pyspark.errors.PySparkException as error:
        raise Failure(sentence(error)) from None
    except Py4JError:
        raise Failure(f"Spark ended before the pipeline did; what it said is in {LOG}.") from None


def _all(problems: Sequence[Problem]) -> str:
    lines = [str(problem) for problem in problems]
    return lines[0] if len(lines) == 1 else "\n  ".join([f"{len(lines)} problems to fix first:", *lines])
