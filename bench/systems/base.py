"""What every system under measurement offers: start, load, usage, stop."""

import json
import subprocess
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import ClassVar

from bench.processes import Broken, Watched

Option = str | int | float
Answer = dict[str, float]


@dataclass(slots=True)
class Usage:
    """What a stretch of work cost the broker."""

    cpu_seconds: float = 0.0
    rss_mb: float = 0.0


class Metered(AbstractContextManager[Usage]):
    """Adds up the broker's CPU time over a `with` block and takes its resident memory at the end."""

    def __init__(self, running: "Running") -> None:
        self._running = running
        self._usage = Usage()

    def __enter__(self) -> Usage:
        self._before = self._running.cpu_seconds()
        return self._usage

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._usage.cpu_seconds = self._running.cpu_seconds() - self._before
        self._usage.rss_mb = self._running.rss_mb()


class Running(ABC):
    """A started system. `load` runs its compiled load program against it and returns the program's answer."""

    # Options of the produce load that make it send one record, wait for its acknowledgement, send the next.
    one_by_one: ClassVar[Mapping[str, Option]] = {"in_flight": 1, "batch_records": 1}

    def __init__(self, address: str, processes: list[Watched], program: Path, ready_seconds: float) -> None:
        self.address = address
        self.processes = processes
        self.ready_seconds = ready_seconds
        self.program = program

    def cpu_seconds(self) -> float:
        return sum(process.cpu_seconds() for process in self.processes)

    def rss_mb(self) -> float:
        return sum(process.rss_mb() for process in self.processes)

    def metered(self) -> Metered:
        return Metered(self)

    @abstractmethod
    def create(self, topic: str, partitions: int = 1, config: Mapping[str, str] | None = None) -> None:
        """Makes a topic ready to be written."""

    @abstractmethod
    def delete(self, topic: str) -> None:
        """Removes a topic and what it holds."""

    def start_load(self, kind: str, **options: Option) -> "Load":
        return Load(self, [str(self.program), kind, "--address", self.address, *_flags(options)])

    def load(self, kind: str, **options: Option) -> Answer:
        return self.start_load(kind, **options).answer()

    def stop(self) -> float:
        """A clean stop; returns the seconds the slowest process took."""
        return max(process.stop() for process in reversed(self.processes))

    def kill(self) -> None:
        for process in self.processes:
            process.kill()

    def __enter__(self) -> "Running":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.stop()
        self.kill()


class Load:
    """A load program at work, so that several can run at once."""

    def __init__(self, running: Running, command: list[str]) -> None:
        self._running = running
        self._command = command
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def running(self) -> bool:
        return self._process.poll() is None

    def answer(self) -> Answer:
        """Waits for the program's end (it bounds itself) and returns its figures; any error in them is
        raised.
        """
        output, complaint = self._process.communicate()
        for process in self._running.processes:
            process.check()
        if self._process.returncode != 0:
            raise Broken(f"{' '.join(self._command)}: {complaint.strip() or self._process.returncode}")
        answer: Answer = json.loads(output.strip().splitlines()[-1])
        if answer.get("errors"):
            raise Broken(
                f"{' '.join(self._command)}: {answer['errors']} errors, the first: {answer['first_error']}"
            )
        return answer

    def answer_and_memory(self) -> tuple[Answer, float]:
        """Its figures at its end, and the most memory that the system had meanwhile, in MB."""
        most = 0.0
        try:
            while self.running():
                most = max(most, self._running.rss_mb())
                time.sleep(0.2)
            return self.answer(), most
        finally:
            self.cancel()

    def cancel(self) -> None:
        if self.running():
            self._process.kill()
        self._process.wait()


class System(ABC):
    """A kind of broker. `name` is its key in the results, `title` what tables call it."""

    name: ClassVar[str]
    title: ClassVar[str]
    speaks_kafka: ClassVar[bool] = False

    @abstractmethod
    def prepare(self) -> None:
        """Fetches and builds whatever starting needs."""

    @abstractmethod
    def version(self) -> str:
        """The version measured."""

    @abstractmethod
    def start(self, data: Path, settings: Mapping[str, str] | None = None) -> Running:
        """Starts it on `data` (made if need be) and returns once it answers."""


def until_ready(process: Watched, answers: "ReadyCheck", limit: float = 120) -> float:
    """Polls until the system answers; returns the seconds since its process was started."""
    deadline = time.monotonic() + limit
    while not answers():
        process.check()
        if time.monotonic() > deadline:
            process.kill()
            said = process.last_words()
            raise Broken(f"{process.command[0]} did not answer within {limit:g} s; it printed last:\n{said}")
        time.sleep(0.002)
    return time.monotonic() - process.started


class ReadyCheck(ABC):
    """Asks a starting system whether it serves yet."""

    @abstractmethod
    def __call__(self) -> bool: ...


def _flags(options: Mapping[str, Option]) -> list[str]:
    return [part for name, value in options.items() for part in (f"--{name.replace('_', '-')}", str(value))]
