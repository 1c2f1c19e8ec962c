"""Threads as greenlets: each runs from one access to the disk, or from one lock, to the next, and the world decides when it goes on.

So two threads, or a thread and the loop, meet in the middle of what they do, in an order that the seed repeats.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import TYPE_CHECKING, Any

import greenlet

if TYPE_CHECKING:
    from tests.simulation.process import Process

FIRST_STEP = 200e-6
STEP = 40e-6


class Job(greenlet.greenlet):
    """One call in a thread."""

    def __init__(self, pool: Threads, future: PoolFuture, call: Callable[[], object]) -> None:
        super().__init__(self._work)
        self.process = pool.process
        self._pool = pool
        self._future = future
        self._call = call
        self._steps = 0
        self._world = pool.process.world
        self.process.jobs.append(self)

    def _work(self) -> None:
        result, failure = None, None
        try:
            result = self._call()
        except greenlet.GreenletExit:
            raise
        except BaseException as error:
            failure = error
        self.process.jobs.remove(self)
        self._pool.job_ended()
        if failure is not None:
            self._future.set_exception(failure)
        else:
            self._future.set_result(result)

    def schedule(self, seconds: float) -> None:
        self._steps += 1
        self._world.after(seconds, self._go_on, self._steps)

    def _go_on(self, step: int) -> None:
        if step == self._steps and not self.dead and not self.process.dead:
            if self.process.running:
                self.step()
            else:
                self.schedule(0.01)

    def step(self) -> None:
        """Run to the next place where it waits."""
        self._steps += 1
        self.parent = greenlet.getcurrent()
        self._world.acting = self.process.name
        self.switch()

    def wait(self, seconds: float) -> None:
        """From inside the job: let others run meanwhile."""
        self.schedule(seconds)
        assert self.parent is not None
        self.parent.switch()


def pass_time(seconds: float = 0.0) -> None:
    """From anywhere: a thread lets others run; a loop does not."""
    current = greenlet.getcurrent()
    if isinstance(current, Job):
        current.wait(seconds + current._world._jitter() * STEP)


class PoolFuture(Future[Any]):
    """A future whose reader, if it cannot wait, has the job done first."""

    job: Job

    def _finish(self) -> None:
        while not self.done():
            self.job.step()

    def result(self, timeout: float | None = None) -> Any:
        self._finish()
        return super().result(timeout)

    def exception(self, timeout: float | None = None) -> BaseException | None:
        self._finish()
        return super().exception(timeout)


class Threads(Executor):
    """A pool of so many threads of a process."""

    def __init__(self, process: Process, count: int, name: str = "") -> None:
        self.process = process
        self._free = count
        self._queue: deque[Job] = deque()
        self._all: list[PoolFuture] = []

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future = PoolFuture()
        future.job = Job(self, future, lambda: fn(*args, **kwargs))
        self._all = [each for each in self._all if not each.done()]
        self._all.append(future)
        if self._free > 0:
            self._free -= 1
            future.job.schedule(self.process.world._jitter() * FIRST_STEP)
        else:
            self._queue.append(future.job)
        return future

    def job_ended(self) -> None:
        while self._queue:
            job = self._queue.popleft()
            if not job.dead:
                job.schedule(self.process.world._jitter() * FIRST_STEP)
                return
        self._free += 1

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        if wait:
            for future in self._all:
                future._finish()


class SimulatedLock:
    """A lock of threading, for jobs and loops; may be taken again by its owner."""

    def __init__(self) -> None:
        self._owner: greenlet.greenlet | None = None
        self._depth = 0

    def acquire(self) -> bool:
        current = greenlet.getcurrent()
        me: greenlet.greenlet | None = current if isinstance(current, Job) else _LOOPS
        while self._owner not in (None, me):
            if isinstance(self._owner, Job) and self._owner.process.dead:
                self._depth = 0  # The lock died with its process.
                break
            if isinstance(current, Job):
                pass_time()
            elif isinstance(self._owner, Job):
                self._owner.step()
            else:
                raise AssertionError("a loop waits for a lock that a loop holds")
        self._owner = me
        self._depth += 1
        return True

    def release(self) -> None:
        self._depth -= 1
        if self._depth == 0:
            self._owner = None

    def locked(self) -> bool:
        return self._owner is not None

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()


_LOOPS = greenlet.greenlet(lambda: None)
"""Stands for whatever is no thread: loops never wait with a lock in hand."""


class SimulatedThreading:
    """What the broker uses of the module."""

    Lock = RLock = SimulatedLock
