"""What `pipeline check`, `run` and `replay` do: from a wish on the command line to a running pipeline."""

from __future__ import annotations

import re
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headrace.cli import output, properties, times
from headrace.cli.cluster import connect
from headrace.cli.failure import Failure, Misuse, did_you_mean

if TYPE_CHECKING:
    from headrace.pipelines.context import Run, Start
    from headrace.pipelines.errors import Problem
    from headrace.pipelines.pipeline import Pipeline
    from headrace.pipelines.project import Project

_LOOK = 0.5
_LOG = ".headrace/spark.log"
_JAVA_OPTIONS = "spark.driver.extraJavaOptions"
_OFFSET = re.compile(r"(?P<topic>[A-Za-z][\w.-]*):(?P<partition>\d+):(?P<offset>\d+)")


@dataclass(frozen=True, slots=True)
class Wish:
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
        from headrace.pipelines.errors import ProjectBroken
        from headrace.pipelines.pipeline import prepare
        from headrace.pipelines.project import load, locate

        project = load(locate(place))
        run = _run_of(project, bootstrap, command_config, None, None)
        settings = properties.from_arguments(conf, "--conf")
        if not offline:
            connect(run.bootstrap, command_config)
        session = _session(project, run, master, settings, is_short=True)
        with tempfile.TemporaryDirectory() as scratch, session as spark:
            tables, empty = Path(scratch, "tables"), Path(scratch, "empty")
            empty.mkdir()
            try:
                pipeline = prepare(project, spark, replace(run, empty=empty.as_uri()), tables.as_uri())
            except ProjectBroken as broken:
                return broken.problems, 0
            problems = pipeline.checkpoints.problems(pipeline.steps)
            if not offline:
                problems += pipeline.missing_topics()
            return problems, len(pipeline.steps)


def run_project(wish: Wish) -> None:
    with _speaking():
        from headrace.pipelines.errors import ProjectBroken
        from headrace.pipelines.pipeline import prepare
        from headrace.pipelines.project import load, locate
        from headrace.pipelines.state import RunState

        project = load(locate(wish.project))
        run = _run_of(project, wish.bootstrap, wish.command_config, wish.version, wish.start)
        settings = properties.from_arguments(wish.conf, "--conf")
        # Spark takes its time to start, and a missing broker is seen at once.
        connect(run.bootstrap, wish.command_config)
        state = RunState(project.root, wish.version)
        with state.held():
            state.write(project.name, "starting", [])
            try:
                with ExitStack() as afterwards, _session(project, run, wish.master, settings) as spark:
                    pipeline = prepare(project, spark, run)
                    _make_ready(pipeline, wish)
                    _fly(pipeline, wish, state, afterwards)
            except ProjectBroken as broken:
                state.write(project.name, "failed", [], error=str(broken))
                raise Failure(_all(broken.problems)) from None
            except BaseException as error:
                if state.read()["state"] == "starting":
                    if isinstance(error, Exception):
                        state.write(project.name, "failed", [], error=str(error))
                    else:  # Ctrl-C or SIGTERM
                        state.write(project.name, "stopped", [])
                raise


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


def _make_ready(pipeline: Pipeline, wish: Wish) -> None:
    steps = {step.name: step for step in pipeline.steps}
    for name in wish.reset:
        if name not in steps:
            raise Misuse(f"There is no flow '{name}' to reset.{did_you_mean(name, steps)}")
        pipeline.reset(steps[name])
    problems = pipeline.missing_topics() + pipeline.checkpoints.problems(pipeline.steps)
    if problems:
        raise Failure(_all(problems))
    for name in pipeline.create_topics():
        output.note(f"Created topic {name}.")


def _fly(pipeline: Pipeline, wish: Wish, state: Any, afterwards: ExitStack) -> None:
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]

    from headrace.cli.pipeline_view import show
    from headrace.pipelines.runner import Runner
    from headrace.pipelines.session import killed_if_slow

    spark = pipeline.graph.spark
    runner = Runner(
        pipeline.steps,
        pipeline.run,
        pipeline.checkpoints,
        pipeline.tables,
        once=wish.once,
        interval=wish.interval,
        refresh=wish.refresh,
    )
    afterwards.callback(runner.settle)
    name, began = pipeline.project.name, time.time()

    def keep(word: str) -> None:
        flows = [status.as_json() for status in runner.statuses]
        state.write(name, word, flows, began=began, master=wish.master)

    ending = "stopped"
    try:
        with show(name, wish.version, json=wish.json) as draw:
            while runner.turn():
                keep("running")
                draw(runner.statuses)
                if state.is_asked_to_stop:
                    return
                time.sleep(_LOOK)
            ending = "done"
            runner.stop()
            draw(runner.statuses, last=True)
    except BrokenPipeError:  # whoever read our output has seen enough
        raise
    except Exception:
        ending = "failed"
        raise
    finally:
        if ending == "stopped":
            output.note("Stopping the flows; what a batch has begun, the next run does again.")
        try:
            with killed_if_slow(spark) if ending == "stopped" else nullcontext():
                runner.stop()
        except (Py4JError, OSError):  # Whoever ended this command may have ended Spark's process, too.
            if ending != "stopped":
                raise
        finally:
            keep(ending)


def _run_of(
    project: Project,
    bootstrap: str | None,
    command_config: Path | None,
    version: str | None,
    start: Start | None,
) -> Run:
    from headrace.cli.options import DEFAULT_BOOTSTRAP
    from headrace.cli.which_cluster import in_use
    from headrace.link.contexts import properties_of
    from headrace.pipelines.context import BOOTSTRAP, Run

    if version is not None and not version.replace("-", "").replace("_", "").isalnum():
        raise Misuse(f"A version is named with letters, digits, - and _, not '{version}'.")
    if bootstrap is None:
        bootstrap = project.spec.configuration.get(BOOTSTRAP) or in_use() or DEFAULT_BOOTSTRAP
    client = properties_of(bootstrap)
    if command_config is not None:
        client |= properties.load(command_config)
    connection = {f"kafka.{key}": value for key, value in client.items()}
    return Run(bootstrap, connection, project.name, version, start)


@contextmanager
def _session(
    project: Project, run: Run, master: str, conf: Mapping[str, str], *, is_short: bool = False
) -> Iterator[Any]:
    """A short one ends before what makes a long run fast pays."""
    from headrace.pipelines.context import BOOTSTRAP
    from headrace.pipelines.session import SHORT_LIVED, close_session, open_session

    settings = {**project.spec.configuration, BOOTSTRAP: str(run.bootstrap), **conf}
    if is_short:
        settings[_JAVA_OPTIONS] = f"{SHORT_LIVED} {settings.get(_JAVA_OPTIONS, '')}".strip()
    if sys.stderr.isatty():
        output.note(f"Starting Spark ({master}); what it says is in {_LOG}.")
    spark = open_session(project.name, master, settings, project.root)
    try:
        yield spark
    finally:
        close_session(spark)


@contextmanager
def _speaking() -> Iterator[None]:
    """Whatever goes wrong becomes the command's one sentence."""
    try:
        import pyspark.errors
        import pyspark.pipelines
        import pyspark.sql.datasource
        from py4j.protocol import Py4JError
    except ImportError as error:
        raise Failure(
            f"Pipelines need the extra: pip install 'headrace[spark]', or make setup in a checkout ({error.name} is missing)."
        ) from None
    from headrace.client.errors import ClientError
    from headrace.pipelines.errors import PipelineError
    from headrace.pipelines.spark_errors import sentence

    try:
        yield
    except (PipelineError, ClientError) as error:
        raise Failure(str(error)) from None
    except pyspark.errors.PySparkException as error:
        raise Failure(sentence(error)) from None
    except Py4JError:
        raise Failure(f"Spark ended before the pipeline did; what it said is in {_LOG}.") from None


def _all(problems: Sequence[Problem]) -> str:
    lines = [str(problem) for problem in problems]
    return lines[0] if len(lines) == 1 else "\n  ".join([f"{len(lines)} problems to mend first:", *lines])
