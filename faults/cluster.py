"""The cluster under test: broker processes behind doors, their store (ZooKeeper or the supervisor's), and its facts.

It is what the faults act on. Facts (who leads, who is the controller) are asked of the brokers themselves, past the doors.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from faults.links import Door, Network, by_client_id
from headrace.testing.wire import WireClient
from headrace.testing.zookeeper import ZooKeeperEnsemble
from headrace.wire.messages.find_coordinator import FindCoordinatorRequest
from headrace.wire.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from headrace.wire.schema import Request, Response

ROOT = Path(__file__).resolve().parent.parent
SESSION_MS = 3000
SIZE = 3
START_SECONDS = 90.0
SETTINGS = {
    "zookeeper.session.timeout.ms": str(SESSION_MS),
    "replica.lag.time.max.ms": "4000",
    "offsets.topic.num.partitions": "4",
    "transaction.state.log.num.partitions": "2",
    "min.insync.replicas": "2",
    "log.segment.bytes": "1048576",
    "log.retention.ms": "-1",
    "leader.imbalance.check.interval.seconds": "10",
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "3000",
}
"""Short times, so that a campaign of minutes sees much happen; many small segments; everything kept for the verdict."""

_READY = re.compile(r"is ready: broker \d+ on (.*), data in ")


class Trouble(Exception):
    """The cluster did not do what it should; the sentence says what."""


def until(what: str, condition: Callable[[], bool], seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise Trouble(f"{what}: not within {seconds:.0f} s")
        time.sleep(0.05)


class Broker:
    """One broker process. Clients and brokers reach it through its two doors, ZooKeeper through one door a server."""

    def __init__(self, number: int, directory: Path, network: Network, settings: dict[str, str]) -> None:
        self.number = number
        self.data = directory / f"broker-{number}"
        self.errors = directory / f"broker-{number}.log"
        self.output = directory / f"broker-{number}.out"
        self.control = directory / f"broker-{number}.control"
        self.clients = network.door()
        self.peers = network.door(by_client_id)
        self.ports: dict[str, int] = {}
        self._settings = {
            "node.id": str(number),
            "log.dirs": str(self.data),
            "broker.rack": f"rack-{number}",
            "listeners": "CLIENTS://127.0.0.1:0,PEERS://127.0.0.1:0",
            "advertised.listeners": f"CLIENTS://127.0.0.1:{self.clients.port},PEERS://127.0.0.1:{self.peers.port}",
            "listener.security.protocol.map": "CLIENTS:PLAINTEXT,PEERS:PLAINTEXT",
            "inter.broker.listener.name": "PEERS",
            **settings,
        }
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Start it; `wait_ready` waits until it serves."""
        if self._process is not None and not self.running:
            self.order()  # a machine that restarts has its clock and its disk back
        command = [sys.executable, "-m", "faults.broker", str(self.control)]
        command += [f"{name}={value}" for name, value in self._settings.items()]
        with self.errors.open("ab") as errors, self.output.open("wb") as output:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=errors,
                start_new_session=True,
                cwd=ROOT,
            )

    def wait_ready(self, seconds: float = START_SECONDS) -> None:
        until(f"broker {self.number} starts", self._find_ports, seconds)

    def _find_ports(self) -> bool:
        if not self.running:
            raise Trouble(f"broker {self.number} ended while starting; see {self.errors}")
        found = _READY.search(self.output.read_text())
        if found is None:
            return False
        clients, peers = (int(address.rpartition(":")[2]) for address in found[1].split(", "))
        self.ports = {"CLIENTS": clients, "PEERS": peers}
        self.clients.target, self.peers.target = clients, peers
        return True

    def signal(self, number: signal.Signals) -> None:
        assert self._process is not None
        os.kill(self._process.pid, number)

    def kill(self) -> None:
        if self.running:
            self.signal(signal.SIGKILL)
        self._ended(30)

    def stop(self, seconds: float = 60.0) -> int:
        """Ask it to stop; its exit code."""
        if self.running:
            self.signal(signal.SIGTERM)
        return self._ended(seconds)

    def _ended(self, seconds: float) -> int:
        assert self._process is not None
        try:
            return self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            raise Trouble(f"broker {self.number} did not stop within {seconds:.0f} s") from None

    def order(self, **orders: float) -> None:
        """Make its disk slow or full, or its clock wrong; without orders all is well again."""
        whole = self.control.with_suffix(".new")
        whole.write_text(json.dumps(orders))
        whole.rename(self.control)


@dataclass(frozen=True, slots=True)
class PartitionFacts:
    leader: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]


class Cluster:
    """Three brokers on an ensemble of one or three ZooKeeper servers."""

    def __init__(self, directory: Path, zookeepers: int = 1) -> None:
        self.directory = directory
        self.network = Network()
        self.zookeepers = ZooKeeperEnsemble(directory / "zookeeper", zookeepers)
        self.zookeeper_doors: dict[int, list[Door]] = {}
        self.brokers: dict[int, Broker] = {}

    def start(self) -> None:
        self.zookeepers.start()
        for number in range(1, SIZE + 1):
            doors = [self.network.door() for _ in self.zookeepers.servers]
            for door, server in zip(doors, self.zookeepers.servers, strict=True):
                door.target = server.port
            self.zookeeper_doors[number] = doors
            ensemble = ",".join(f"127.0.0.1:{door.port}" for door in doors)
            settings = {
                **SETTINGS,
                "zookeeper.connect": f"{ensemble}/headrace",
                "zookeeper.connection.timeout.ms": "60000",
            }
            self.brokers[number] = Broker(number, self.directory, self.network, settings)
        for broker in self.brokers.values():
            broker.start()
        for broker in self.brokers.values():
            broker.wait_ready()

    @property
    def bootstrap(self) -> str:
        return ",".join(f"127.0.0.1:{broker.clients.port}" for broker in self.brokers.values())

    def stop(self) -> list[str]:
        """Stop the brokers in good order; says what went wrong with that."""
        codes = {broker.number: broker.stop() for broker in self.brokers.values()}
        return [f"broker {number} stopped with exit code {code}" for number, code in codes.items() if code]

    def close(self) -> None:
        """End everything, in whatever state it is."""
        for broker in self.brokers.values():
            if broker.running:
                broker.kill()
        self.zookeepers.stop()
        self.network.close()

    # Facts.

    def _ask(self, request: Request, version: int) -> Iterator[Response]:
        """The answers of the brokers that answer within a second: some are frozen, cut off, or have just come back."""
        for broker in self.brokers.values():
            if broker.running and broker.ports:
                try:
                    with WireClient(f"127.0.0.1:{broker.ports['CLIENTS']}", timeout=1.0) as client:
                        answer = client.call(request, version)
                except (OSError, AssertionError):
                    continue
                yield answer

    def _metadata(self, topics: list[str], trusted: Callable[[MetadataResponse], bool]) -> MetadataResponse:
        """The first answer of a broker that knows enough; brokers that are frozen or cut off may not."""
        deadline = time.monotonic() + 60
        request = MetadataRequest([MetadataRequestTopic(name=topic) for topic in topics], False)
        while time.monotonic() < deadline:
            for answer in self._ask(request, 12):
                if isinstance(answer, MetadataResponse) and trusted(answer):
                    return answer
            time.sleep(0.1)
        raise Trouble(f"no broker tells who leads {', '.join(topics) or 'the cluster'}: not within 60 s")

    def partitions(self, topic: str) -> dict[int, PartitionFacts]:
        answer = self._metadata([topic], lambda answer: bool(answer.topics and answer.topics[0].partitions))
        return {
            each.partition_index: PartitionFacts(
                each.leader_id, tuple(each.replica_nodes), tuple(each.isr_nodes)
            )
            for each in answer.topics[0].partitions
        }

    def leader(self, topic: str, partition: int) -> int:
        """The leader, when there is one that runs."""
        found = -1

        def led(answer: MetadataResponse) -> bool:
            nonlocal found
            for each in answer.topics[0].partitions if answer.topics else ():
                if each.partition_index == partition:
                    found = each.leader_id
            return found in self.brokers

        self._metadata([topic], led)
        return found

    def controller(self) -> int:
        return self._metadata([], lambda answer: answer.controller_id in self.brokers).controller_id

    def coordinator(self, group: str) -> int:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            for answer in self._ask(FindCoordinatorRequest(key=group), 2):
                if answer.error_code == 0:  # type: ignore[attr-defined]
                    return int(answer.node_id)  # type: ignore[attr-defined]
            time.sleep(0.1)
        raise Trouble(f"no broker tells the coordinator of {group}: not within 60 s")

    def whole(self, topics: list[str]) -> bool:
        """Whether every replica of these topics is in sync."""
        for topic in topics:
            for facts in self.partitions(topic).values():
                if facts.leader < 0 or set(facts.isr) != set(facts.replicas):
                    return False
        return True

    def heal(self) -> None:
        """Undo every fault: servers run, links carry, disks and clocks are right."""
        doors = [door for each in self.brokers.values() for door in (each.clients, each.peers)]
        doors += [door for each in self.zookeeper_doors.values() for door in each]
        self.network.heal([link for door in doors for link in door.links])
        self.zookeepers.heal()
        for broker in self.brokers.values():
            if broker.running:
                broker.signal(signal.SIGCONT)
                broker.order()
            else:
                broker.start()
        for broker in self.brokers.values():
            broker.wait_ready()
