"""Running a pipeline from a program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from headrace.streaming.masters import LOCAL

if TYPE_CHECKING:
    from headrace.pipelines.context import Start
    from headrace.pipelines.progress import FlowStatus
    from headrace.streaming.supervision import Run


def run(
    project: str | Path = ".",
    *,
    bootstrap: str | None = None,
    client: Mapping[str, str] | None = None,
    once: bool = False,
    interval: float = 1.0,
    refresh: float = 60.0,
    reset: Sequence[str] = (),
    version: str | None = None,
    start: Start | None = None,
    master: str = LOCAL,
    settings: Mapping[str, str] | None = None,
) -> Run[FlowStatus]:
    """Check a project, create its missing topics, and run its flows in a thread; returns when they are about to start.

    ``project`` is its directory, or one inside it. ``bootstrap`` are any brokers of the cluster, by default the project's;
    ``client`` further client settings by Kafka's names. ``once`` processes what is there now and ends; batches start every
    ``interval`` seconds, and materialized views are computed every ``refresh`` seconds. The flows in ``reset`` begin anew.
    ``version`` and ``start`` are those of a replay. Spark is started on ``master`` with ``settings``; a session that the
    program already has is used unchanged.

    Raises ProjectBroken, with all problems, for a project that cannot run, and another StreamingError or ClientError for
    what keeps it from starting.
    """
    from headrace.client import Admin
    from headrace.pipelines.project import load, locate
    from headrace.pipelines.work import ProjectRun, run_of, session_of
    from headrace.streaming.supervision import Run

    found = load(locate(Path(project)))
    context = run_of(found, bootstrap=bootstrap, client=client, version=version, start=start)
    # Spark takes its time to start, and a missing broker is seen sooner.
    with Admin({**context.client_config(), "default.api.timeout.ms": 15_000}) as admin:
        admin.topics()
    session = session_of(found, context, master, settings or {})
    return Run(
        ProjectRun(found, context, session, once=once, interval=interval, refresh=refresh, reset=tuple(reset))
    ).in_background()
