"""Many seeds on all cores: a fork for each, from a process that has imported everything, so that no seed sees another's state."""

from __future__ import annotations

import os
import pickle
import resource
import selectors
import signal
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from headrace.server.api.registry import APIS
from tests.simulation.scenario import FULL, Storm, Verdict, simulate

MOST_CPU = 60
"""Seconds of CPU after which a run counts as hanging."""


@dataclass(frozen=True, slots=True)
class Job:
    seed: int
    kept: tuple[int, ...] | None = None
    """The faults to leave in; None for all."""
    storm: Storm = FULL


@dataclass(slots=True)
class _Child:
    job: Job
    pid: int
    data: bytearray


def _import_everything() -> None:
    """Handlers are imported with the first request; here that would be once a seed."""
    for api in APIS.values():
        api.load()


def run_jobs(
    jobs: Iterable[Job], cores: int, go_on: Callable[[], bool] = lambda: True
) -> Iterator[tuple[Job, Verdict]]:
    """Verdicts as they come in; no further job is begun once `go_on` is false."""
    _import_everything()
    waiting = iter(jobs)
    running: dict[int, _Child] = {}
    selector = selectors.DefaultSelector()
    exhausted = False
    try:
        while running or not exhausted:
            while not exhausted and len(running) < cores:
                job = next(waiting, None) if go_on() else None
                if job is None:
                    exhausted = True
                    break
                child, descriptor = _start(job)
                running[descriptor] = child
                selector.register(descriptor, selectors.EVENT_READ)
            for key, _ in selector.select():
                child = running[key.fd]
                part = os.read(key.fd, 1 << 20)
                child.data += part
                if not part:
                    selector.unregister(key.fd)
                    os.close(key.fd)
                    del running[key.fd]
                    os.waitpid(child.pid, 0)
                    yield child.job, _verdict(child)
    finally:
        for child in running.values():
            os.kill(child.pid, signal.SIGKILL)
            os.waitpid(child.pid, 0)


def _start(job: Job) -> tuple[_Child, int]:
    readable, writable = os.pipe()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            os.close(readable)
            resource.setrlimit(resource.RLIMIT_CPU, (MOST_CPU, MOST_CPU))
            verdict = simulate(job.seed, kept=job.kept, storm=job.storm)
            with os.fdopen(writable, "wb") as pipe:
                pickle.dump(verdict, pipe)
            code = 0
        finally:
            os._exit(code)
    os.close(writable)
    return _Child(job, pid, bytearray()), readable


def _verdict(child: _Child) -> Verdict:
    if child.data:
        verdict: Verdict = pickle.loads(child.data)
        return verdict
    return Verdict(
        child.job.seed, ["the simulator itself died, or did not end"], 0, 0.0, 0.0, 0, 0, 0, [], []
    )
