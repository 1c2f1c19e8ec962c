"""The cluster under test: three hosts with a broker each, ZooKeeper, and a host for clients.

The brokers are the ones `headrace up` runs, on simulated machines; here is where their settings stand.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import traceback
from collections.abc import AsyncGenerator
from typing import Any

from headrace.server.cluster.join import CloseStore
from headrace.server.config.broker import BrokerConfig
from headrace.server.config.listeners import Listener
from headrace.server.identity import StartError
from headrace.server.log import directory, life, snapshot_files, store
from headrace.server.log.cleaner_process import clean
from headrace.server.log.cleaning_task import Answer, CleaningTask
from headrace.server.log.environment import Environment
from headrace.server.machine import Machine
from headrace.server.node import Node
from tests.simulation.ensemble import Ensemble, SimulatedStore
from tests.simulation.network import Network
from tests.simulation.process import Host, Process
from tests.simulation.threads import SimulatedLock, SimulatedThreading, Threads
from tests.simulation.world import World

BROKERS = (1, 2, 3)
PORT = 9092
SESSION_SECONDS = 3.0

SETTINGS = {
    "log.dirs": "/data",
    "default.replication.factor": "3",
    "min.insync.replicas": "2",
    "offsets.topic.replication.factor": "3",
    "offsets.topic.num.partitions": "3",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
    "transaction.state.log.num.partitions": "3",
    "zookeeper.session.timeout.ms": str(int(SESSION_SECONDS * 1000)),
    "replica.lag.time.max.ms": "3000",
    "request.timeout.ms": "4000",
    "controller.socket.timeout.ms": "4000",
    "socket.connection.setup.timeout.ms": "2000",
    "log.roll.ms": "4000",
    "log.flush.offset.checkpoint.interval.ms": "2000",
    "log.retention.check.interval.ms": "5000",
    "log.cleaner.backoff.ms": "3000",
    "group.initial.rebalance.delay.ms": "300",
    "group.min.session.timeout.ms": "1000",
    "group.consumer.min.session.timeout.ms": "1000",
    "group.consumer.session.timeout.ms": "6000",
    "group.consumer.min.heartbeat.interval.ms": "200",
    "group.consumer.heartbeat.interval.ms": "1000",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "2000",
    "auto.create.topics.enable": "false",
    "unclean.leader.election.enable": "false",
    "delete.topic.enable": "true",
    "log.segment.delete.delay.ms": "2000",
    "num.io.threads": "4",
}


def use_simulated_locks() -> None:
    """The locks that loop and threads of a broker share; for this whole process."""
    for module in (directory, life, snapshot_files, store):
        module.threading = SimulatedThreading  # type: ignore[attr-defined]
    life._OPENING = [SimulatedLock() for _ in life._OPENING]  # type: ignore[misc]


class Broker:
    """A host with a broker, started again as often as it dies."""

    def __init__(
        self, number: int, host: Host, ensemble: Ensemble, changes: dict[str, dict[int, str]]
    ) -> None:
        self._changes = changes
        self.number = number
        self.host = host
        self.settings = {
            **SETTINGS,
            "node.id": str(number),
            "listeners": f"PLAINTEXT://{host.address}:{PORT}",
        }
        self.starts = 0
        self.process: Process | None = None
        self.node: Node | None = None
        self.ready = False
        self.refused: str | None = None
        """Why it would not start."""
        self._ensemble = ensemble
        self._stopping: asyncio.Task[None] | None = None

    @property
    def alive(self) -> bool:
        return self.process is not None and not self.process.dead

    def start(self) -> None:
        if not self.host.up:
            self.host.boot()
        self.starts += 1
        self.ready = False
        process = self.process = self.host.process(f"broker-{self.number}.{self.starts}")
        machine = Machine(
            lambda count, name: Threads(process, count, name),
            lambda config: _bind(process, config),
            lambda config, clock: self._open_store(process, config),
            lambda task: _compact(process, task),
        )
        node = self.node = Node(
            BrokerConfig.load(self.settings), process.clock, process.files, machine=machine
        )
        process.world.trace(f"{process.name}: starts")
        process.start(self._run(process, node))

    async def _run(self, process: Process, node: Node) -> None:
        try:
            await node.start()
        except StartError as error:
            self.refused = str(error)
            process.world.trace(f"{process.name}: {error}")
            process.kill()
            return
        except OSError as error:
            process.world.trace(f"{process.name}: {error}")
            process.kill()
            return
        self.ready = True
        process.world.trace(f"{process.name}: serves")
        learned = self._changes.setdefault(process.name, {})
        node.cluster.subscribe(lambda _, image, changes: learned.setdefault(image.offset, str(changes)))

    def stop(self) -> None:
        """SIGTERM: the broker hands over and marks the stop as clean."""
        process, node = self.process, self.node
        if process is not None and node is not None and not process.dead and self.ready:
            self.ready = False
            process.world.trace(f"{process.name}: stops")
            self._stopping = process.start(self._stop(process, node))

    async def _stop(self, process: Process, node: Node) -> None:
        with contextlib.suppress(OSError):
            await node.stop()
        process.world.trace(f"{process.name}: has stopped")
        process.kill()

    def kill(self) -> None:
        if self.process is not None and not self.process.dead:
            self.host.world.trace(f"{self.process.name}: killed")
            self.host.kill()
        self.ready = False

    def lose_power(self) -> None:
        self.ready = False
        self.host.lose_power()

    async def _open_store(
        self, process: Process, config: BrokerConfig
    ) -> tuple[SimulatedStore, CloseStore | None]:
        session = self._ensemble.connect(process, config.integer("zookeeper.session.timeout.ms") / 1000)
        while not session.session_id:
            await process.clock.sleep(0.05)
        return session, None


def _bind(process: Process, config: BrokerConfig) -> list[tuple[Listener, Any]]:
    return [(each, process.host.network.bind(each.host, each.port)) for each in config.listeners]


async def _compact(process: Process, task: CleaningTask) -> AsyncGenerator[Answer, None]:
    """The cleaner's process, as a thread."""
    answers: list[Answer] = []
    environment = Environment(process.files, process.clock)
    await process.loop.run_in_executor(None, lambda: answers.extend(clean(environment, task)))
    for answer in answers:
        yield answer


class Cluster:
    def __init__(self, world: World) -> None:
        self.world = world
        self.network = Network(world)
        self.changes: dict[str, dict[int, str]] = {}
        """By life of a broker: what it learned of the metadata, by the number of the change."""
        self.ensemble = Ensemble(world, self.network)
        self.brokers = {
            number: Broker(
                number,
                Host(world, f"host-{number}", f"10.0.0.{number}", self.network),
                self.ensemble,
                self.changes,
            )
            for number in BROKERS
        }
        self.client_hosts = [
            Host(world, f"clients-{number}", f"10.0.1.{number}", self.network) for number in (1, 2)
        ]

    def start(self) -> None:
        for broker in self.brokers.values():
            broker.start()

    @property
    def addresses(self) -> list[tuple[str, int]]:
        return [(broker.host.address, PORT) for broker in self.brokers.values()]


class Complaints(logging.Handler):
    """What brokers log with a traceback is a bug, unless the disk was told to fail."""

    def __init__(self, world: World) -> None:
        super().__init__(logging.INFO)
        self._world = world

    def emit(self, record: logging.LogRecord) -> None:
        text = record.getMessage()
        if record.exc_info and record.exc_info[1] is not None:
            error = record.exc_info[1]
            if not isinstance(error, OSError):
                self._world.trouble(f"{self._world.acting} logged a traceback: {text}: {error!r}")
                self._world.trace("".join(traceback.format_exception(error)))
                return
        self._world.trace(f"{self._world.acting} {record.levelname} {text}")
