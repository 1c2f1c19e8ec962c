"""Hosts and the processes on them: clocks that drift and jump, and processes that are killed, paused and resumed.

A killed process never runs again: no `finally`, no close, no flush. Its tasks and threads are kept until the run is over, because
a coroutine that is collected would run its `finally`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

from headrace.clock import Timer
from tests.simulation.disk import Disk, SimulatedFiles
from tests.simulation.loop import SimulatedLoop
from tests.simulation.threads import Threads
from tests.simulation.world import World

if TYPE_CHECKING:
    from tests.simulation.network import Network

T = TypeVar("T")

BEGINNING_MS = 1_700_000_000_000
"""What wall clocks say when a run begins."""


class Host:
    def __init__(self, world: World, name: str, address: str, network: Network) -> None:
        self.world = world
        self.name = name
        self.address = address
        self.network = network
        network.hosts[address] = self
        self.disk = Disk(world, name)
        self.up = True
        self.pace = 1.0
        """Seconds of its clocks in a true second."""
        self._skew_ms = 0.0
        self._since, self._read = 0.0, 0.0
        self.processes: list[Process] = []

    def monotonic(self) -> float:
        return 1000.0 + self._read + (self.world.now - self._since) * self.pace

    def now_ms(self) -> int:
        return int(
            BEGINNING_MS + self._skew_ms + (self._read + (self.world.now - self._since) * self.pace) * 1000
        )

    def drift(self, pace: float) -> None:
        """Timers that run already keep the old pace."""
        self._read += (self.world.now - self._since) * self.pace
        self._since = self.world.now
        self.pace = pace

    def jump(self, milliseconds: float) -> None:
        """Of the wall clock alone: a monotonic clock never jumps."""
        self._skew_ms += milliseconds

    def process(self, name: str) -> Process:
        process = Process(self, name)
        self.processes.append(process)
        return process

    def kill(self) -> None:
        for process in self.processes:
            process.kill()
        self.processes = []

    def lose_power(self) -> None:
        """Its peers hear nothing; what was not synced may be lost."""
        self.up = False
        self.kill()
        self.disk.lose_power()

    def boot(self) -> None:
        self.up = True
        self.network.booted(self)


class Process:
    def __init__(self, host: Host, name: str) -> None:
        self.host = host
        self.world = host.world
        self.name = name
        self.running = True
        self.dead = False
        self.loop = SimulatedLoop(self)
        self.clock = ProcessClock(self)
        self.files = SimulatedFiles(host.disk, self)
        self.default_threads = Threads(self, 32)
        self.jobs: list[object] = []
        """Threads that have begun and not ended."""
        self._kept: list[object] = []

    def start(self, work: Coroutine[Any, Any, T], name: str | None = None) -> asyncio.Task[T]:
        return self.loop.create_task(work, name=name)

    def pause(self) -> None:
        self.running = False

    def resume(self) -> None:
        if not self.dead:
            self.running = True
            self.loop.wake()

    def kill(self) -> None:
        if self.dead:
            return
        self.running = False
        self.dead = True
        self._kept = [*asyncio.all_tasks(self.loop), *self.jobs]
        self.host.network.process_died(self)
        self.host.disk.unlock(self)


class ProcessClock:
    """The clock that the code of a process is given."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self.now_ms = process.host.now_ms
        self.monotonic = process.host.monotonic

    def call_later(self, seconds: float, callback: Callable[[], object]) -> Timer:
        return self._process.loop.call_later(seconds, callback)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def wait_for(self, awaitable: Awaitable[T], seconds: float) -> T:
        async with asyncio.timeout(seconds):
            return await awaitable
