"""`headrace pipeline`: make, check, run, look at, stop and replay pipelines on Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from headrace.cli import options
from headrace.cli.failure import Failure, Misuse
from headrace.cli.parsing import times
from headrace.cli.view import output
from headrace.cli.view.checked import conclude
from headrace.streaming.masters import LOCAL

app = options.command_app("Make, check, run and replay pipelines on Spark.")

Project = Annotated[
    Path, typer.Argument(metavar="[PROJECT]", help="The project's directory, or one inside it. [.]")
]
Bootstrap = Annotated[
    str | None,
    typer.Option(
        "--bootstrap-server",
        "-b",
        metavar="HOST:PORT,…",
        envvar="HEADRACE_BOOTSTRAP",
        help=f"Any brokers of the cluster. [the project's, else the context in use, else {options.DEFAULT_BOOTSTRAP}]",
        callback=options.choose_explicitly,
    ),
]
Master = Annotated[
    str,
    typer.Option(
        "--master",
        "-m",
        metavar="URL",
        envvar="HEADRACE_SPARK_MASTER",
        help="Any Spark master: local[N], spark://HOST:PORT, yarn, k8s://…",
    ),
]
Version = Annotated[
    str | None,
    typer.Option("--version", metavar="NAME", help="A version made by 'replay'. [the current one]"),
]
Conf = Annotated[
    list[str] | None,
    typer.Option("--conf", "-c", metavar="KEY=VALUE", help="A Spark setting; may be repeated."),
]
Interval = Annotated[
    str, typer.Option("--interval", metavar="DURATION", help="From the start of one batch to the next.")
]


@app.command(
    epilog=options.examples(
        "headrace pipeline new orders",
        "headrace pipeline new orders --sql",
        "cd orders && headrace pipeline run",
    )
)
def new(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A directory of this name is made.")],
    sql: Annotated[bool, typer.Option("--sql", help="Write the example in SQL.")] = False,
) -> None:
    """Write a small project that works, to be changed into yours."""
    from headrace.pipelines.errors import PipelineError
    from headrace.pipelines.template import write_project

    try:
        written = write_project(Path.cwd() / name, sql=sql)
    except PipelineError as error:
        raise Misuse(str(error)) from None
    for path in written:
        print(path.relative_to(Path.cwd()))
    output.note(f"Next: cd {name} && headrace pipeline run; its README.md says what to type beside it.")


@app.command(
    epilog=options.examples("headrace pipeline check", "headrace pipeline check orders --offline --json")
)
def check(
    project: Project = Path("."),
    bootstrap_server: Bootstrap = None,
    command_config: options.CommandConfig = None,
    offline: Annotated[bool, typer.Option("--offline", help="Do not ask a broker about topics.")] = False,
    master: Master = LOCAL,
    conf: Conf = None,
    json: options.Json = False,
) -> None:
    """Find what is wrong without running anything: one line for each problem, with file and line."""
    from headrace.cli.commands.pipeline_run import check_project

    problems, flows = check_project(
        project,
        bootstrap=bootstrap_server,
        command_config=command_config,
        offline=offline,
        master=master,
        conf=conf or [],
    )
    if json:
        output.json_document(
            [
                {
                    "file": each.place.file if each.place else None,
                    "line": each.place.line if each.place else None,
                    "problem": each.sentence,
                }
                for each in problems
            ]
        )
    else:
        for each in problems:
            print(each)
    conclude(len(problems), "this pipeline", flows, "flow", quiet=json)


@app.command(
    epilog=options.examples(
        "headrace pipeline run",
        "headrace pipeline run orders --once",
        "headrace pipeline run --master spark://10.0.0.5:7077 -b broker1:9092",
        "headrace pipeline run --json | jq .flows",
        "headrace pipeline run --metrics 0.0.0.0:9466",
    )
)
def run(
    project: Project = Path("."),
    bootstrap_server: Bootstrap = None,
    command_config: options.CommandConfig = None,
    once: Annotated[bool, typer.Option("--once", help="Process what is there now, then end.")] = False,
    interval: Interval = "1s",
    refresh: Annotated[
        str, typer.Option("--refresh", metavar="DURATION", help="How often materialized views are computed.")
    ] = "60s",
    reset: Annotated[
        list[str] | None,
        typer.Option("--reset", metavar="FLOW", help="Forget this flow's checkpoint; may be repeated."),
    ] = None,
    version: Version = None,
    master: Master = LOCAL,
    conf: Conf = None,
    metrics: options.Metrics = None,
    json: options.Json = False,
) -> None:
    """Run a pipeline until Ctrl-C, `stop` or, with --once, until it has caught up."""
    from headrace.cli.commands.pipeline_run import Request, run_project

    run_project(
        Request(
            project,
            bootstrap_server,
            command_config,
            master,
            conf or [],
            version=version,
            once=once,
            interval=times.seconds_of(interval),
            refresh=times.seconds_of(refresh),
            reset=tuple(reset or ()),
            metrics=metrics,
            json=json,
        )
    )


@app.command(
    epilog=options.examples(
        "headrace pipeline replay --version v2",
        "headrace pipeline replay --version v2 --from 2026-11-16T08:00:00",
        "headrace pipeline replay --version v2 --from orders:0:1500 --from orders:1:0",
        "headrace pipeline replay --version repaired --from dead-letters",
        "headrace pipeline run --version v2",
    )
)
def replay(
    project: Project = Path("."),
    version: Annotated[
        str, typer.Option("--version", metavar="NAME", help="Outputs become TOPIC.NAME.")
    ] = "",
    start: Annotated[
        list[str] | None,
        typer.Option(
            "--from",
            metavar="PLACE",
            help="earliest, latest, a time, TOPIC:PARTITION:OFFSET (may be repeated), or dead-letters. [earliest]",
        ),
    ] = None,
    bootstrap_server: Bootstrap = None,
    command_config: options.CommandConfig = None,
    follow: Annotated[bool, typer.Option("--follow", help="Go on running when it has caught up.")] = False,
    interval: Interval = "1s",
    master: Master = LOCAL,
    conf: Conf = None,
    json: options.Json = False,
) -> None:
    """Process old records again, into a new version of the outputs; the current one goes on undisturbed."""
    from headrace.cli.commands.pipeline_run import Request, run_project, start_of

    if not version:
        raise Misuse(
            "A replay writes a new version of the outputs: name it with --version, such as --version v2."
        )
    run_project(
        Request(
            project,
            bootstrap_server,
            command_config,
            master,
            conf or [],
            version=version,
            start=start_of(start or ["earliest"]),
            once=not follow,
            interval=times.seconds_of(interval),
            json=json,
        )
    )


@app.command(epilog=options.examples("headrace pipeline status", "headrace pipeline status orders --json"))
def status(project: Project = Path("."), version: Version = None, json: options.Json = False) -> None:
    """Show the last numbers of a pipeline, running or not."""
    from headrace.cli.view.pipelines import print_status
    from headrace.pipelines.state import RunState, versions

    root = _root(project)
    states = [RunState(root, version)] if version is not None else versions(root)
    looks = [{"project": str(root), **state.read()} for state in states]
    if json:
        output.json_document(looks)
        return
    for look in looks:
        print_status(look)


@app.command(epilog=options.examples("headrace pipeline stop", "headrace pipeline stop orders --version v2"))
def stop(
    project: Project = Path("."),
    version: Version = None,
    timeout: Annotated[str, typer.Option("--timeout", metavar="DURATION", help="How long to wait.")] = "60s",
) -> None:
    """Ask a running pipeline to stop, and wait until it has."""
    from headrace.pipelines.state import RunState

    state = RunState(_root(project), version)
    if not state.is_alive:
        raise Failure("This pipeline is not running.")
    state.ask_to_stop()
    if not state.wait_until_over(times.seconds_of(timeout)):
        raise Failure(f"The pipeline (pid {state.read().get('pid')}) is still stopping; look again later.")
    print("stopped")


@app.command("list", epilog=options.examples("headrace pipeline list", "headrace pipeline list ~/pipelines"))
def list_(
    directory: Annotated[Path, typer.Argument(metavar="[DIR]", help="Where to look. [.]")] = Path("."),
    json: options.Json = False,
) -> None:
    """List the projects in a directory and below it, and how each is doing."""
    from headrace.pipelines.project import projects_in
    from headrace.pipelines.state import versions

    if not directory.is_dir():
        raise Misuse(f"There is no directory '{directory}'.")
    looks: list[dict[str, Any]] = [
        {"project": str(root), **state.read()}
        for root in projects_in(directory)
        for state in versions(root.resolve())
    ]
    if json:
        output.json_document(looks)
        return
    if not looks:
        output.note(f"There is no pipeline in {directory}; make one with 'headrace pipeline new NAME'.")
        return
    output.table(
        ("PROJECT", "VERSION", "STATE", "PID", "FLOWS"),
        [
            (look["project"], look["version"], look["state"], look.get("pid"), len(look["flows"]))
            for look in looks
        ],
    )


def _root(project: Path) -> Path:
    from headrace.pipelines.errors import PipelineError
    from headrace.pipelines.project import locate

    try:
        return locate(project).parent
    except PipelineError as error:
        raise Misuse(str(error)) from None
