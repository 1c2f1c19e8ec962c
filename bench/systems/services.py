"""Providers of one small service under calls: Headrace's, Java Dubbo's and grpcio's asyncio server.

All are called by the same Java program (interop/dubbo's Load), over one connection, with the same payloads. Headrace's
echo is a plain function called directly, as docs/services.md advises for short ones; the others' are as they usually are.
"""

import importlib.metadata
import json
import socket
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from bench.processes import Broken, Watched, free_port
from bench.provision import JAVA, MAVEN, need_packages, run
from bench.systems.base import Answer, ReadyCheck, Running, System, until_ready
from bench.systems.headrace import Headrace

INTEROP = Path(__file__).resolve().parents[2] / "interop"
DUBBO_VERSION = "2.7.3"
_OPENED = ("java.lang", "java.util", "java.math", "java.text")


def java_program(name: str, *arguments: str) -> list[str]:
    """The command line of a program of interop/dubbo."""
    build = INTEROP / "build" / "dubbo"
    opens = [f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in _OPENED]
    quiet = "-Dorg.slf4j.simpleLogger.defaultLogLevel=error"
    classpath = f"{build}/classes:{build}/lib/*"
    return ["java", "-Xmx512m", quiet, *opens, "-cp", classpath, f"headrace.interop.{name}", *arguments]


class Listening(ReadyCheck):
    def __init__(self, port: int) -> None:
        self._port = port

    def __call__(self) -> bool:
        try:
            socket.create_connection(("127.0.0.1", self._port), timeout=5).close()
        except OSError:
            return False
        return True


class RunningService(Running):
    """A provider that was started; `calls` loads it."""

    def __init__(self, address: list[str], process: Watched, port: int) -> None:
        super().__init__(" ".join(address), [process], Path("java"), until_ready(process, Listening(port)))
        self._where = address

    def create(self, topic: str, partitions: int = 1, config: Mapping[str, str] | None = None) -> None:
        """Nothing to do: a service has no topics."""

    def delete(self, topic: str) -> None:
        """Nothing to do: a service has no topics."""

    def calls(self, *, size: int, concurrent: int, warm_up: int, seconds: int) -> Answer:
        """Calls with `size` characters from `concurrent` threads; returns the load program's figures."""
        options = {"bytes": size, "concurrent": concurrent, "warmup": warm_up, "seconds": seconds}
        flags = [part for name, value in options.items() for part in (f"--{name}", str(value))]
        done = subprocess.run(
            java_program("Load", *self._where, *flags), capture_output=True, text=True, check=False
        )
        for process in self.processes:
            process.check()
        if done.returncode != 0:
            raise Broken(f"the load on {self.address} failed: {done.stderr.strip()[-500:]}")
        answer: Answer = json.loads(done.stdout.strip().splitlines()[-1])
        if answer["failures"]:
            raise Broken(f"{answer['failures']:g} of {answer['calls']:g} calls to {self.address} failed")
        return answer


class ServiceSystem(System):
    """A provider of Echo."""

    def prepare(self) -> None:
        need_packages([JAVA, MAVEN])
        run(["mvn", "-q", "-B", "process-classes"], cwd=INTEROP / "dubbo", limit=900)

    def launch(self, data: Path, command: list[str]) -> Watched:
        data.mkdir(parents=True, exist_ok=True)
        return Watched(command, data.with_name(data.name + ".out"))


class PythonServices(ServiceSystem):
    name: ClassVar[str] = "headrace"
    title: ClassVar[str] = "Headrace"

    def version(self) -> str:
        return Headrace().version()

    def start(self, data: Path, settings: Mapping[str, str] | None = None) -> RunningService:
        port = free_port()
        program = str(INTEROP / "dubbo" / "python_provider.py")
        process = self.launch(
            data, [sys.executable, program, "--port", str(port), "--direct", "--wait", "signal"]
        )
        return RunningService(["--url", f"dubbo://127.0.0.1:{port}"], process, port)


class JavaDubbo(ServiceSystem):
    name: ClassVar[str] = "dubbo"
    title: ClassVar[str] = "Java Dubbo"

    def version(self) -> str:
        return DUBBO_VERSION

    def start(self, data: Path, settings: Mapping[str, str] | None = None) -> RunningService:
        port = free_port()
        process = self.launch(data, java_program("Provider", "--port", str(port), "--wait", "signal"))
        return RunningService(["--url", f"dubbo://127.0.0.1:{port}"], process, port)


class PythonGrpc(ServiceSystem):
    name: ClassVar[str] = "grpcio"
    title: ClassVar[str] = "grpcio (asyncio)"

    def version(self) -> str:
        return importlib.metadata.version("grpcio")

    def start(self, data: Path, settings: Mapping[str, str] | None = None) -> RunningService:
        port = free_port()
        process = self.launch(data, [sys.executable, "-m", "bench.grpc_server", str(port)])
        return RunningService(["--grpc", f"127.0.0.1:{port}"], process, port)
