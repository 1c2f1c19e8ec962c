"""Clusters of three brokers on this machine: Headrace by its supervisor or on ZooKeeper, Apache Kafka as combined KRaft nodes."""

from __future__ import annotations

import os
import re
import signal
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import ClassVar

from confluent_kafka import KafkaException
from confluent_kafka.cimpl import NewTopic

from bench.metadata import ClusterView, ask_metadata
from bench.processes import Broken, Watched, free_port, free_ports
from bench.provision import Missing, java, need_load_program, run
from bench.systems.kafka import CLUSTER_ID, Kafka, broker_command
from bench.systems.kafka_protocol import QUICK_DELETION, RunningKafka
from headrace.testing.zookeeper import ZooKeeperServer

SIZE = 3
IDS = range(1, SIZE + 1)
STOP_SECONDS = 10.0


class RunningCluster(RunningKafka):
    """Three started brokers; `ports` by broker id. Topics have three replicas, of which two must be in sync."""

    def __init__(
        self, ports: Mapping[int, int], processes: list[Watched], data: Path, ready_seconds: float
    ) -> None:
        super().__init__(ports[1], processes[0], data, ready_seconds)
        self.processes = processes
        self.ports = dict(ports)
        self.address_without()

    def address_without(self, away: int = 0) -> None:
        """Where loads connect: not to a broker that is away."""
        self.address = ",".join(f"127.0.0.1:{port}" for number, port in self.ports.items() if number != away)

    def create(self, topic: str, partitions: int = 1, config: Mapping[str, str] | None = None) -> None:
        wanted = NewTopic(topic, partitions, SIZE, config={"min.insync.replicas": "2", **(config or {})})
        try:
            self.admin.create_topics([wanted], operation_timeout=120, request_timeout=180)[topic].result()
        except KafkaException as error:
            raise Broken(f"{topic} could not be created at {self.address}: {error}") from error
        self.await_in_sync(partitions)
        # Metadata tells of a topic before its logs are made.
        self._until(
            f"the logs of {topic} are made",
            lambda: len(list(self.data.glob(f"broker-*/{topic}-*"))) >= SIZE * partitions,
            180,
            pause=0.2,
        )

    def delete(self, topic: str) -> None:
        try:
            self.admin.delete_topics([topic], operation_timeout=60)[topic].result()
        except KafkaException as error:
            raise Broken(f"{topic} could not be deleted at {self.address}: {error}") from error
        self._until(f"{topic} leaves the disks", lambda: not list(self.data.glob(f"broker-*/{topic}-*")), 120)

    def view(self, without: int = 0) -> ClusterView | None:
        """What a broker other than `without` says of the cluster."""
        for broker_id, port in self.ports.items():
            if broker_id != without and (view := ask_metadata(port)) is not None:
                return view
        return None

    def await_in_sync(self, partitions: int, limit: float = 180) -> None:
        """Until so many partitions have a leader and three replicas in sync."""
        self._until(
            f"{partitions} partitions are in sync",
            lambda: (
                (view := self.view()) is not None
                and sum(len(isr) == SIZE for isr in view.in_sync) >= partitions
            ),
            limit,
        )

    def seconds_without_leader(self, dead: int, began: float) -> float:
        """From `began` until every other broker names another leader for each partition that `dead` led."""

        def elected() -> bool:
            for broker_id, port in self.ports.items():
                if broker_id == dead:
                    continue
                view = ask_metadata(port)
                if view is None or any(leader in (dead, -1) for leader in view.leaders):
                    return False
            return True

        self._until(f"what broker {dead} led has new leaders", elected, 120, pause=0.002)
        return time.monotonic() - began

    def leader(self) -> int:
        """The leader of the first partition."""
        view = self.view()
        if view is None or not view.leaders:
            raise Broken(f"no broker at {self.address} tells who leads")
        return view.leaders[0]

    def _until(self, what: str, condition: Callable[[], bool], limit: float, pause: float = 0.02) -> None:
        deadline = time.monotonic() + limit
        while not condition():
            if time.monotonic() > deadline:
                raise Broken(f"{what}: not within {limit:g} s at {self.address}")
            time.sleep(pause)

    @abstractmethod
    def kill_broker(self, broker_id: int) -> None:
        """kill -9."""

    @abstractmethod
    def start_broker(self, broker_id: int) -> None:
        """Start it again on its data, and return; it may not serve yet."""


class ClusterSystem(ABC):
    """A way to start three brokers."""

    name: ClassVar[str]

    @abstractmethod
    def prepare(self) -> None: ...

    @abstractmethod
    def start(self, data: Path, settings: Mapping[str, str] | None = None) -> RunningCluster:
        """Starts them; ready means that each answers Metadata with three brokers."""


def _await_three(ports: Mapping[int, int], processes: list[Watched], limit: float = 120) -> float:
    """Seconds since the first process was started until every broker knows all three."""
    deadline = processes[0].started + limit
    waiting = set(ports.values())
    while waiting:
        for process in processes:
            process.check()
        waiting = {
            port for port in waiting if (view := ask_metadata(port)) is None or view.brokers < len(ports)
        }
        if time.monotonic() > deadline:
            raise Broken(f"three brokers were not ready within {limit:g} s: {processes[0].last_words()}")
        time.sleep(0.002)
    return time.monotonic() - min(process.started for process in processes)


def _headrace() -> Path:
    return Path(sys.executable).parent / "headrace"


class _Supervised(RunningCluster):
    """The supervisor starts a broker again by itself."""

    def kill_broker(self, broker_id: int) -> None:
        for pid in self.processes[0].family():
            try:
                command = Path(f"/proc/{pid}/cmdline").read_bytes().decode()
            except OSError:
                continue
            if re.search(rf"\0node\.id={broker_id}\0", command):
                os.kill(pid, signal.SIGKILL)
                return
        raise Broken(f"broker {broker_id} has no process")

    def start_broker(self, broker_id: int) -> None:
        pass


class HeadraceSupervised(ClusterSystem):
    """`headrace up --brokers 3`: what one machine runs."""

    name: ClassVar[str] = "headrace"

    def prepare(self) -> None:
        need_load_program("kafka-load")
        if not _headrace().exists():
            raise Missing(f"{_headrace()} is not there: run make setup first")

    def start(self, data: Path, settings: Mapping[str, str] | None = None) -> RunningCluster:
        first = free_ports(SIZE)
        command = [str(_headrace()), "up", "--brokers", str(SIZE), "--listen", f"127.0.0.1:{first}"]
        command += ["--data", str(data)]
        for name, value in {**QUICK_DELETION, **(settings or {})}.items():
            command += ["--set", f"{name}={value}"]
        process = Watched(command, data.with_name(data.name + ".out"))
        ports = {broker_id: first + broker_id - 1 for broker_id in IDS}
        try:
            return _Supervised(ports, [process], data, _await_three(ports, [process]))
        except BaseException:
            process.kill()
            raise


class OneByOne(RunningCluster):
    """Brokers that are processes of their own; `commands` start them again."""

    commands: Mapping[int, list[str]]
    own: dict[int, Watched]
    zookeeper: ZooKeeperServer | None = None

    def kill_broker(self, broker_id: int) -> None:
        self.processes.remove(self.own[broker_id])
        os.kill(self.own[broker_id].pid, signal.SIGKILL)

    def stop_broker(self, broker_id: int) -> None:
        self.processes.remove(self.own[broker_id])
        self.own[broker_id].stop()
        self.address_without(broker_id)

    def start_broker(self, broker_id: int) -> None:
        old = self.own[broker_id]
        old.stop()  # it has been told to go, or is gone: wait for it
        self.own[broker_id] = Watched(self.commands[broker_id], old.log)
        self.processes.append(self.own[broker_id])
        self.address_without()

    def stop(self) -> float:
        """All at once. A Kafka node waits minutes for a quorum that is stopping as well, so that what is left is killed."""
        begun = time.monotonic()
        for process in self.processes:
            process.terminate()
        while (
            any(process.running() for process in self.processes) and time.monotonic() < begun + STOP_SECONDS
        ):
            time.sleep(0.05)
        self.kill()
        return time.monotonic() - begun

    def kill(self) -> None:
        super().kill()
        if self.zookeeper is not None:
            self.zookeeper.stop()


def _start_each(
    commands: Mapping[int, list[str]],
    ports: Mapping[int, int],
    data: Path,
    zookeeper: ZooKeeperServer | None = None,
) -> OneByOne:
    own: dict[int, Watched] = {}
    try:
        for broker_id, command in commands.items():
            own[broker_id] = Watched(command, data / f"broker-{broker_id}.out")
        ready = _await_three(ports, list(own.values()))
    except BaseException:
        for process in own.values():
            process.kill()
        if zookeeper is not None:
            zookeeper.stop()
        raise
    running = OneByOne(ports, list(own.values()), data, ready)
    running.commands, running.own, running.zookeeper = commands, own, zookeeper
    return running


class HeadraceOnZooKeeper(HeadraceSupervised):
    """Three brokers as three machines run them, on a ZooKeeper that is not part of any figure."""

    def start(self, data: Path, settings: Mapping[str, str] | None = None) -> OneByOne:
        data.mkdir(parents=True, exist_ok=True)
        zookeeper = ZooKeeperServer(data / "zookeeper", tick_ms=2000, min_session_ms=4000)
        zookeeper.start()
        ports = {broker_id: free_port() for broker_id in IDS}
        commands = {}
        for broker_id, port in ports.items():
            command = [str(_headrace()), "up", "--id", str(broker_id), "--listen", f"127.0.0.1:{port}"]
            command += ["--zookeeper", zookeeper.connect_string, "--data", str(data / f"broker-{broker_id}")]
            for name, value in {**QUICK_DELETION, **(settings or {})}.items():
                command += ["--set", f"{name}={value}"]
            commands[broker_id] = command
        return _start_each(commands, ports, data, zookeeper)


class KafkaCluster(ClusterSystem):
    """Three KRaft nodes, each broker and controller, with the heap of Kafka's own start script."""

    name: ClassVar[str] = "kafka"

    def prepare(self) -> None:
        Kafka().prepare()

    def start(self, data: Path, settings: Mapping[str, str] | None = None) -> OneByOne:
        data.mkdir(parents=True, exist_ok=True)
        ports = {node: free_port() for node in IDS}
        controllers = {node: free_port() for node in IDS}
        voters = ",".join(f"{node}@127.0.0.1:{port}" for node, port in controllers.items())
        commands = {}
        for node, port in ports.items():
            properties = {
                "process.roles": "broker,controller",
                "node.id": str(node),
                "listeners": f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controllers[node]}",
                "advertised.listeners": f"PLAINTEXT://127.0.0.1:{port}",
                "controller.listener.names": "CONTROLLER",
                "controller.quorum.voters": voters,
                "log.dirs": str(data / f"broker-{node}"),
                "log.initial.task.delay.ms": "100",
                **QUICK_DELETION,
                **(settings or {}),
            }
            file = data / f"broker-{node}.properties"
            file.write_text("".join(f"{name}={value}\n" for name, value in properties.items()))
            if not (data / f"broker-{node}" / "meta.properties").exists():
                run(java("kafka.tools.StorageTool", "format", "-t", CLUSTER_ID, "-c", str(file)))
            commands[node] = broker_command(file)
        return _start_each(commands, ports, data)
