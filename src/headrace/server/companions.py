"""Processes that `headrace up` runs beside its brokers: started when those are ready, started again when they end, stopped first."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from headrace.clock import Clock
from headrace.server.restarts import Restarts
from headrace.server.supervised import SUPERVISOR_VARIABLE

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Companion:
    """A command of Headrace that takes --bootstrap-server."""

    name: str
    arguments: tuple[str, ...]


class Companions:
    def __init__(self, companions: Sequence[Companion], clock: Clock) -> None:
        self._companions = companions
        self._clock = clock
        self._processes: dict[str, asyncio.subprocess.Process] = {}
        self._tasks: list[asyncio.Task[None]] = []
        self._stopping = False

    def start(self, addresses: Sequence[str]) -> None:
        """They are told these addresses of the cluster."""
        servers = ",".join(addresses)
        self._tasks = [asyncio.create_task(self._keep(each, servers)) for each in self._companions]

    async def stop(self) -> None:
        self._stopping = True
        running = [process for process in self._processes.values() if process.returncode is None]
        for process in running:
            with contextlib.suppress(ProcessLookupError):
                process.terminate()
        await asyncio.gather(*(process.wait() for process in running))
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _keep(self, companion: Companion, servers: str) -> None:
        restarts = Restarts()
        while not self._stopping:
            began = self._clock.monotonic()
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "headrace.cli",
                *companion.arguments,
                "--bootstrap-server",
                servers,
                stdin=asyncio.subprocess.DEVNULL,
                # Ctrl-C reaches only this process, which then stops it before the brokers.
                start_new_session=True,
                env={**os.environ, SUPERVISOR_VARIABLE: str(os.getpid())},
            )
            self._processes[companion.name] = process
            code = await process.wait()
            if self._stopping:
                return
            how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
            pause = restarts.pause_after(self._clock.monotonic() - began)
            log.error(
                "%s ended (%s); starting it again %s",
                companion.name,
                how,
                f"in {pause:.0f} s" if pause else "at once",
            )
            await self._clock.sleep(pause)
