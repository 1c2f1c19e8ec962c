"""Several brokers on one machine without ZooKeeper: one process each, and the store with their cluster's metadata in this one.

The supervisor starts the brokers, restarts one that died, and stops them all on SIGTERM or SIGINT. Brokers end when the
supervisor does, so nothing is left behind.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import re
import signal
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from headrace import __version__
from headrace.clock import Clock, SystemClock
from headrace.link.addresses import join_address
from headrace.server.cluster.embedded import FILE_NAME, EmbeddedStore
from headrace.server.cluster.store import StoreError
from headrace.server.cluster.store_server import StoreServer
from headrace.server.companions import Companion, Companions
from headrace.server.config.broker import BrokerConfig
from headrace.server.config.listeners import Listener
from headrace.server.identity import StartError, refuse_standalone_data
from headrace.server.log_lines import log_to_stderr
from headrace.server.restarts import Restarts
from headrace.server.security.exposure import exposure, openness
from headrace.server.stop_signals import StopSignals
from headrace.server.supervised import SUPERVISOR_VARIABLE

log = logging.getLogger(__name__)

LONGEST_SOCKET_PATH = 100
DEFAULT_REPLICAS = "default.replication.factor"
USUAL_REPLICAS = 3
"""With several brokers a topic should survive the loss of one; Kafka's default is one replica."""
_READY = re.compile(rb"is ready: broker \d+ on ([^\n]*), data in ")
_METRICS = re.compile(rb"; metrics at (\S+?),?(?:;|\s|$)")


@dataclass(slots=True)
class BrokerCommand:
    """What it takes to start brokers: a settings file and what was given besides it."""

    file: Path | None
    overrides: Mapping[str, str]

    def arguments(self, own: Mapping[str, str]) -> list[str]:
        arguments = [sys.executable, "-m", "headrace.cli", "up"]
        if self.file is not None:
            arguments += ["--config", str(self.file)]
        for name, value in {**self.overrides, **own}.items():
            arguments += ["--set", f"{name}={value}"]
        return arguments


def settings_of(broker_id: int, count: int, config: BrokerConfig, socket: Path) -> dict[str, str]:
    """What makes one of `count` brokers with the same settings: its id, its ports, its data, the store."""
    own = {
        "node.id": str(broker_id),
        "headrace.store": str(socket),
        "log.dirs": ",".join(str(path / f"broker-{broker_id}") for path in config.log_dirs),
        "listeners": _shifted(config.listeners, broker_id - 1),
    }
    if config.advertised_listeners:
        own["advertised.listeners"] = _shifted(config.advertised_listeners, broker_id - 1)
    metrics = config.metrics_address
    if metrics is not None:
        host, port = metrics
        own["headrace.metrics.listener"] = join_address(host, port + broker_id - 1 if port else 0)
    # A cluster of fewer brokers than the usual three can still keep offsets and transactions.
    for name, most in (
        ("offsets.topic.replication.factor", count),
        ("transaction.state.log.replication.factor", count),
        ("transaction.state.log.min.isr", count),
    ):
        if name not in config.static:
            own[name] = str(min(config.integer(name), most))
    if DEFAULT_REPLICAS not in config.static:
        own[DEFAULT_REPLICAS] = str(min(USUAL_REPLICAS, count))
    return own


def _shifted(listeners: tuple[Listener, ...], by: int) -> str:
    """The same addresses `by` ports further on; any free port stays any free port."""
    moved = []
    for listener in listeners:
        port = listener.port + by if listener.port else 0
        moved.append(str(Listener(listener.name, listener.host, port, listener.protocol)))
    return ",".join(moved)


@dataclass(slots=True)
class _Child:
    broker_id: int
    arguments: list[str]
    process: asyncio.subprocess.Process | None = None
    ready: asyncio.Event = field(default_factory=asyncio.Event)
    address: str = ""
    metrics: str = ""


class Supervisor:
    def __init__(
        self,
        command: BrokerCommand,
        config: BrokerConfig,
        count: int,
        clock: Clock,
        companions: Sequence[Companion] = (),
    ) -> None:
        self._command = command
        self._config = config
        self._count = count
        self._clock = clock
        self._companions = Companions(companions, clock)
        self._children: list[_Child] = []
        self._tasks: list[asyncio.Task[None]] = []
        self._failure: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._stopping = False

    async def run(self, stop: asyncio.Event) -> None:
        """Until `stop`; StartError when the brokers cannot start."""
        for path in self._config.log_dirs:
            refuse_standalone_data(path)
        data = self._config.log_dirs[0]
        data.mkdir(parents=True, exist_ok=True)
        try:
            store = await EmbeddedStore.open(data / FILE_NAME)
        except StoreError as error:
            raise StartError(str(error)) from None
        with tempfile.TemporaryDirectory(prefix="headrace-") as directory:
            socket = data / "store.sock"
            if len(str(socket.absolute())) > LONGEST_SOCKET_PATH:
                socket = Path(directory) / "store.sock"
            timeout = self._config.integer("zookeeper.session.timeout.ms") / 1000
            server = StoreServer(store, socket.absolute(), timeout, self._clock)
            await server.start()
            try:
                await self._supervise(socket.absolute(), stop)
            finally:
                await self._stop_children()
                await server.stop()
                await store.close()

    async def _supervise(self, socket: Path, stop: asyncio.Event) -> None:
        started = self._clock.monotonic()
        for broker_id in range(1, self._count + 1):
            own = settings_of(broker_id, self._count, self._config, socket)
            child = _Child(broker_id, self._command.arguments(own))
            self._children.append(child)
            self._tasks.append(asyncio.create_task(self._keep(child)))
        stopped = asyncio.ensure_future(stop.wait())
        ready = asyncio.ensure_future(self._all_ready())
        first: list[asyncio.Future[Any]] = [ready, stopped, self._failure]
        try:
            await asyncio.wait(first, return_when=asyncio.FIRST_COMPLETED)
            if self._failure.done():
                await self._failure
            if ready.done():
                where = ", ".join(child.address for child in self._children)
                print(
                    f"Headrace {__version__} is ready: brokers 1 to {self._count} on {where}, data in "
                    f"{self._config.log_dirs[0]} ({self._clock.monotonic() - started:.2f} s){self._replicas()}{self._metrics()}"
                    f"{exposure(self._config)}",
                    flush=True,
                )
                self._companions.start([child.address for child in self._children])
                await stopped
        finally:
            await self._companions.stop()
            ready.cancel()
            stopped.cancel()

    def _replicas(self) -> str:
        """Said where it is not what Kafka does by itself."""
        if self._count == 1 or DEFAULT_REPLICAS in self._config.static:
            return ""
        return f"; new topics have {min(USUAL_REPLICAS, self._count)} replicas"

    def _metrics(self) -> str:
        address = self._config.metrics_address
        if address is None:
            return ""
        where = " ".join(child.metrics for child in self._children)
        return f"; metrics at {where}{openness(address[0])}"

    async def _all_ready(self) -> None:
        for child in self._children:
            await child.ready.wait()

    async def _keep(self, child: _Child) -> None:
        """Run a broker, again and again until the supervisor stops."""
        restarts = Restarts()
        while True:
            code, served = await self._run_once(child)
            if self._stopping:
                return
            if not child.ready.is_set():
                # It never served: restarting it would only repeat the same error.
                if not self._failure.done():
                    self._failure.set_exception(
                        StartError(f"Broker {child.broker_id} did not start; see above.")
                    )
                return
            pause = restarts.pause_after(served)
            when = f"in {pause:.0f} s" if pause else "at once"
            log.error("broker %d ended (%s); starting it again %s", child.broker_id, code, when)
            await self._clock.sleep(pause)

    async def _run_once(self, child: _Child) -> tuple[str, float]:
        """How it ended, and for how many seconds it served."""
        child.process = await asyncio.create_subprocess_exec(
            *child.arguments,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            # Ctrl-C reaches only the supervisor, which then stops the brokers cleanly.
            start_new_session=True,
            env={**os.environ, SUPERVISOR_VARIABLE: str(os.getpid())},
        )
        assert child.process.stdout is not None
        serves_since: float | None = None
        async for line in child.process.stdout:
            found = _READY.search(line)
            if found is not None:
                child.address = found[1].decode()
                metrics = _METRICS.search(line)
                child.metrics = metrics[1].decode() if metrics is not None else ""
                child.ready.set()
                serves_since = self._clock.monotonic()
        code = await child.process.wait()
        served = self._clock.monotonic() - serves_since if serves_since is not None else 0.0
        return f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}", served

    async def _stop_children(self) -> None:
        self._stopping = True
        for child in self._children:
            if child.process is not None and child.process.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    child.process.terminate()
        running = [child.process for child in self._children if child.process is not None]
        await asyncio.gather(*(process.wait() for process in running))
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


def supervise(
    command: BrokerCommand,
    config: BrokerConfig,
    count: int,
    signals: StopSignals,
    companions: Sequence[Companion] = (),
) -> int:
    """Run `count` brokers until SIGTERM or SIGINT; the process's exit code."""
    log_to_stderr()

    async def main() -> None:
        await Supervisor(command, config, count, SystemClock(), companions).run(signals.event())
        log.info("all %d brokers have stopped; everything written is on disk", count)

    try:
        asyncio.run(main())
    except StartError as error:
        print(f"headrace: {error}", file=sys.stderr)
        return 1
    return 0
