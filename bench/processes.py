"""The processes of a broker under measurement: started, watched through /proc and stopped,
and nothing left behind.
"""

import os
import random
import signal
import socket
import subprocess
import time
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from types import FrameType

_TICKS = os.sysconf("SC_CLK_TCK")


class Broken(Exception):
    """A broker or a load that did not do its work; the message says which and what it printed last."""


def free_port() -> int:
    """A port that is free, and stays so: below those that the system gives to outgoing connections."""
    return free_ports(1)


def free_ports(count: int) -> int:
    """The first of so many such ports in a row."""
    for _ in range(100):
        first = random.randrange(10_000, 32_000)
        with ExitStack() as probes:
            try:
                for port in range(first, first + count):
                    probes.enter_context(socket.socket()).bind(("127.0.0.1", port))
            except OSError:
                continue
            return first
    raise Broken(f"no {count} free ports in a row")


class Watched:
    """One broker process and its children. Its output goes to `log`, whose end is quoted when it fails."""

    def __init__(self, command: list[str], log: Path, *, env: Mapping[str, str] | None = None) -> None:
        self.command = command
        self.log = log
        self.started = time.monotonic()
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**os.environ, **(env or {})},
                start_new_session=True,
            )
        self.pid = self._process.pid

    def running(self) -> bool:
        return self._process.poll() is None

    def last_words(self) -> str:
        lines = self.log.read_text(errors="replace").strip().splitlines()
        return "\n".join(lines[-8:]) or "nothing"

    def check(self) -> None:
        if not self.running():
            code = self._process.returncode
            raise Broken(f"{self.command[0]} ended with code {code}; it printed last:\n{self.last_words()}")

    def cpu_seconds(self) -> float:
        """User and system time of the process, its living children and those it has waited for."""
        return sum(_cpu_seconds(pid) for pid in self.family())

    def rss_mb(self) -> float:
        return sum(_rss_mb(pid) for pid in self.family())

    def family(self) -> list[int]:
        """The process, its living children and theirs."""
        return _descendants(self.pid)

    def stop(self, limit: float = 60) -> float:
        """A clean stop: SIGTERM, then waits; returns the seconds it took. What does not stop
        is killed and named.
        """
        begun = time.monotonic()
        self.terminate()
        try:
            self._process.wait(limit)
        except subprocess.TimeoutExpired:
            self.kill()
            raise Broken(f"{self.command[0]} did not stop within {limit:g} s of SIGTERM") from None
        return time.monotonic() - begun

    def terminate(self) -> None:
        """Asks it to stop, without waiting."""
        if self.running():
            self._process.terminate()

    def kill(self) -> None:
        """Ends the process and everything in its session, at once."""
        if self.running():
            os.killpg(self.pid, signal.SIGKILL)
            self._process.wait()


def _descendants(pid: int) -> list[int]:
    """The process and its living children, children's children and so on."""
    family = [pid]
    for listing in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            children = listing.read_text().split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        for child in children:
            family += _descendants(int(child))
    return family


def _cpu_seconds(pid: int) -> float:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return 0.0
    fields = stat.rpartition(")")[2].split()
    return sum(int(field) for field in fields[11:15]) / _TICKS


def _rss_mb(pid: int) -> float:
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return 0.0
    for line in status.splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    return 0.0


def drop_from_page_cache(directory: Path) -> None:
    """Writes the files to disk and asks the kernel to forget their pages, so that the next read is cold."""
    for path in directory.rglob("*"):
        if not path.is_file():
            continue
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fdatasync(descriptor)
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(descriptor)


def end_cleanly_on_sigterm() -> None:
    """SIGTERM unwinds the stack like Ctrl-C does, so that brokers are stopped and their data removed."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, interrupt)
