"""The cluster of one machine: `headrace up --brokers 3`, its supervisor and the embedded store.

Brokers are reached directly, and the supervisor starts a dead one again, so only faults of processes can be injected.
"""

from __future__ import annotations

import os
import random
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

from faults.cluster import ROOT, SETTINGS, SIZE, START_SECONDS, Broker, Cluster, Trouble, until
from headrace.testing.wire import WireClient
from headrace.wire.messages.api_versions import ApiVersionsRequest

GROUPS = ["kill", "pause", "reassign"]
_READY = re.compile(r"is ready: brokers 1 to \d+ on (.*), data in ")


class SupervisedBroker(Broker):
    """A child of the supervisor. `start` leaves it to the supervisor, which has begun already."""

    def __init__(self, number: int, directory: Path, supervisor: int, port: int) -> None:
        self.number = number
        self.data = directory / "data" / f"broker-{number}"
        self.errors = directory / "supervisor.log"
        self.ports = {"CLIENTS": port}
        self._supervisor = supervisor

    @property
    def pid(self) -> int | None:
        """The process that the supervisor runs for this broker now."""
        try:
            children = Path(f"/proc/{self._supervisor}/task/{self._supervisor}/children").read_text().split()
            for child in children:
                if f"\0node.id={self.number}\0".encode() in Path(f"/proc/{child}/cmdline").read_bytes():
                    return int(child)
        except OSError:
            return None
        return None

    @property
    def running(self) -> bool:
        return self.pid is not None

    def start(self) -> None:
        pass

    def wait_ready(self, seconds: float = START_SECONDS) -> None:
        until(f"broker {self.number} serves again", self._answers, seconds)

    def _answers(self) -> bool:
        try:
            with WireClient(f"127.0.0.1:{self.ports['CLIENTS']}", timeout=2.0) as client:
                client.call(ApiVersionsRequest(), 0)
        except OSError:
            return False
        return True

    def signal(self, number: signal.Signals) -> None:
        if (pid := self.pid) is not None:
            os.kill(pid, number)

    def kill(self) -> None:
        old = self.pid
        self.signal(signal.SIGKILL)
        until(f"broker {self.number} is gone", lambda: self.pid != old, 30)

    def order(self, **orders: float) -> None:
        if orders:
            raise Trouble("a broker of a supervisor has the machine's own disk and clock")


class SupervisedCluster(Cluster):
    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.brokers = {}
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        command = [sys.executable, "-m", "headrace.cli", "up", "--brokers", str(SIZE)]
        command += ["--listen", f"127.0.0.1:{_free_ports()}", "--data", str(self.directory / "data")]
        for name, value in SETTINGS.items():
            command += ["--set", f"{name}={value}"]
        output = self.directory / "supervisor.out"
        with (self.directory / "supervisor.log").open("ab") as errors, output.open("wb") as printed:
            self._process = process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=printed,
                stderr=errors,
                start_new_session=True,
                cwd=ROOT,
            )
        until("the supervisor starts", lambda: _READY.search(output.read_text()) is not None, START_SECONDS)
        found = _READY.search(output.read_text())
        assert found is not None
        for number, address in enumerate(found[1].split(", "), start=1):
            port = int(address.rpartition(":")[2])
            self.brokers[number] = SupervisedBroker(number, self.directory, process.pid, port)

    @property
    def bootstrap(self) -> str:
        return ",".join(f"127.0.0.1:{broker.ports['CLIENTS']}" for broker in self.brokers.values())

    def heal(self) -> None:
        for broker in self.brokers.values():
            broker.signal(signal.SIGCONT)
        for broker in self.brokers.values():
            broker.wait_ready()

    def stop(self) -> list[str]:
        assert self._process is not None
        self._process.terminate()
        try:
            code = self._process.wait(90)
        except subprocess.TimeoutExpired:
            return ["the supervisor did not stop within 90 s"]
        return [f"the supervisor stopped with exit code {code}"] if code else []

    def close(self) -> None:
        """Its brokers end with it."""
        for broker in self.brokers.values():
            broker.signal(signal.SIGCONT)
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.wait()


def _free_ports() -> int:
    """The first of as many free ports in a row as there are brokers, where no outgoing connection takes one meanwhile."""
    for _ in range(100):
        first = random.randrange(20000, 32000)
        probes = [socket.socket() for _ in range(SIZE)]
        try:
            for port, probe in enumerate(probes, start=first):
                probe.bind(("127.0.0.1", port))
            return first
        except OSError:
            continue
        finally:
            for probe in probes:
                probe.close()
    raise Trouble(f"there are no {SIZE} free ports in a row")
