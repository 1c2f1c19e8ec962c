"""Calls of a small service: Headrace's provider beside Java Dubbo's and grpcio's, under one Java load program."""

import shutil
from contextlib import ExitStack
from functools import partial

from bench.rows import Bar, Row, Sample
from bench.session import Session
from bench.systems import Running
from bench.systems.services import JavaDubbo, PythonGrpc, PythonServices, RunningService, ServiceSystem

ORDER = 80
TITLE = "Service calls"

_SIZES = {16: "16 B", 1024: "1 KiB"}
_CALLERS = {1: "one at a time", 64: "64 at once"}
_AHEAD_OF_GRPC = Bar(1.0, "at least", against="grpcio")


def run(session: Session) -> list[Row]:
    systems: list[ServiceSystem] = [PythonServices(), JavaDubbo(), PythonGrpc()]
    rows: list[Row] = []
    with ExitStack() as stack:
        running: dict[str, Running] = {}
        for system in systems:
            if session.only and system.name not in session.only:
                continue
            system.prepare()
            data = session.fresh(system, "services")
            stack.callback(shutil.rmtree, data.parent, ignore_errors=True)
            running[system.name] = stack.enter_context(system.start(data))
        for size in _SIZES:
            for concurrent in _CALLERS:
                pair = _rows(size, concurrent)
                measure = partial(_measure, session, size, concurrent)
                session.compare(running, pair, measure, rounds=session.rounds(5))
                rows += pair
        memory = Row(
            "services-memory", "resident memory after the calls", "MB", "less", "all calls", against="dubbo"
        )
        memory.bars = [Bar(0.3, "at most")]
        session.compare(
            running,
            [memory],
            lambda service: {"services-memory": Sample(service.rss_mb(), None, service.rss_mb())},
            rounds=1,
            warm_up=False,
        )
    return [*rows, memory]


def _rows(size: int, concurrent: int) -> list[Row]:
    what = f"{_SIZES[size]}, {_CALLERS[concurrent]}"
    key = f"services-{size}-{concurrent}"
    fast = Bar(1.0 if concurrent == 1 else 0.7, "at least")
    return [
        Row(f"{key}-rate", what, "calls/s", "more", "10 k calls", [fast, _AHEAD_OF_GRPC], against="dubbo"),
        Row(f"{key}-p99", f"{what}, p99", "ms", "less", "10 k calls", [Bar(1.5, "at most")], against="dubbo"),
    ]


def _measure(session: Session, size: int, concurrent: int, service: Running) -> dict[str, Sample]:
    assert isinstance(service, RunningService)
    warm_up, seconds = session.seconds(2), session.seconds(4)
    with service.metered() as usage:
        answer = service.calls(size=size, concurrent=concurrent, warm_up=warm_up, seconds=seconds)
    # The warm-up is work too, at about the same rate.
    cpu = usage.cpu_seconds * 1e4 / (answer["calls"] * (1 + warm_up / seconds))
    key = f"services-{size}-{concurrent}"
    return {
        f"{key}-rate": Sample(answer["calls_per_second"], cpu, usage.rss_mb),
        f"{key}-p99": Sample(answer["p99_us"] / 1000, cpu, usage.rss_mb),
    }
