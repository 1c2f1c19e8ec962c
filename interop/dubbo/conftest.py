"""Both sides of these tests: Java Dubbo, compiled once with Maven, and the Python provider, each as a process."""

from __future__ import annotations

import json
import queue
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any

import psutil
import pytest

from headrace.testing.zookeeper import ZooKeeperServer
from tests.waiting import until

HERE = Path(__file__).parent
BUILD = HERE.parent / "build" / "dubbo"
OPENED = ["java.lang", "java.util", "java.math", "java.text"]


class JavaPrograms:
    """The programs of package headrace.interop."""

    def __init__(self, log: Path) -> None:
        self._log = log

    def command(self, program: str, *args: str) -> list[str]:
        opens = [f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in OPENED]
        classpath = f"{BUILD}/classes:{BUILD}/lib/*"
        quiet = "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"
        return ["java", "-Xmx512m", quiet, *opens, "-cp", classpath, f"headrace.interop.{program}", *args]

    def run(self, program: str, *args: str, timeout: float = 240) -> subprocess.CompletedProcess[str]:
        return subprocess.run(self.command(program, *args), capture_output=True, text=True, timeout=timeout)

    def provider(self, *args: str) -> Conversation:
        return Conversation(self.command("Provider", *args), self._log)

    def consumer(self, *args: str) -> Conversation:
        return Conversation(self.command("Consumer", *args), self._log)


class Conversation:
    """A running program that answers on its standard output what is said on its input; ends with its `with`."""

    def __init__(self, command: list[str], log: Path) -> None:
        self._log = log
        with log.open("ab") as errors:
            self.process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True, bufsize=1
            )
        self._lines: queue.Queue[str | None] = queue.Queue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self.ready = self.hear("READY").removeprefix("READY").strip()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._lines.put(line.rstrip("\n"))
        self._lines.put(None)

    def hear(self, start: str, timeout: float = 180) -> str:
        """The next line that begins with `start`."""
        while True:
            line = self._lines.get(timeout=timeout)
            assert line is not None, f"a program ended without saying {start}, see {self._log}"
            if line.startswith(start):
                return line

    def ask(self, command: str, timeout: float = 180) -> dict[str, Any]:
        assert self.process.stdin is not None
        self.process.stdin.write(command + "\n")
        answer: dict[str, Any] = json.loads(self.hear("{", timeout))
        return answer

    def connections(self) -> set[int]:
        """The ports its established connections come from."""
        found = psutil.Process(self.process.pid).net_connections("tcp")
        return {each.raddr.port for each in found if each.status == "ESTABLISHED"}

    def kill(self) -> None:
        """End at once, as a crash would."""
        self.process.kill()
        self.process.wait()

    def __enter__(self) -> Conversation:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


class PythonPrograms:
    """The Python side as a process of its own, with the arguments of its Java counterpart."""

    def __init__(self, log: Path) -> None:
        self._log = log

    def provider(self, *args: str) -> Conversation:
        return Conversation([sys.executable, str(HERE / "python_provider.py"), *args], self._log)


@pytest.fixture(scope="session")
def python(tmp_path_factory: pytest.TempPathFactory) -> PythonPrograms:
    return PythonPrograms(tmp_path_factory.mktemp("python") / "stderr.log")


@pytest.fixture(scope="session")
def java(tmp_path_factory: pytest.TempPathFactory) -> JavaPrograms:
    for tool in ("java", "mvn"):
        if shutil.which(tool) is None:
            pytest.fail(f"`{tool}` is not on the PATH: install Java 17 and Maven to run the Dubbo tests.")
    built = subprocess.run(
        ["mvn", "-q", "-B", "process-classes"], cwd=HERE, capture_output=True, text=True, timeout=600
    )
    assert built.returncode == 0, built.stdout
    return JavaPrograms(tmp_path_factory.mktemp("java") / "stderr.log")


@pytest.fixture
def eventually() -> Callable[[Callable[[], bool]], None]:
    """Wait until something holds, for at most half a minute."""
    return until


@pytest.fixture(scope="session")
def zookeeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZooKeeperServer]:
    with ZooKeeperServer(tmp_path_factory.mktemp("zookeeper")) as server:
        yield server
