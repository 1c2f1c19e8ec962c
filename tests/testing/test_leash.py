"""What a test program has started does not outlive it, however it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from headrace.testing.leash import let_go, start_on_leash

ZOOKEEPER = """
import pathlib, sys, time
from headrace.testing.zookeeper import ZooKeeperServer
server = ZooKeeperServer(pathlib.Path(sys.argv[1]))
server.start()
print(server._process.pid, flush=True)
time.sleep(600)
"""
BROKER = """
import pathlib, sys, time
from headrace.testing.process import BrokerProcess
broker = BrokerProcess(pathlib.Path(sys.argv[1]) / "data").start()
print(broker.process.pid, flush=True)
time.sleep(600)
"""
Start = Callable[[str], tuple[subprocess.Popen[str], int]]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Runs a program that starts a server; returns it and the number of the server's process."""
    servers: list[int] = []

    def run(program: str) -> tuple[subprocess.Popen[str], int]:
        started = subprocess.Popen(
            [sys.executable, "-c", program, str(tmp_path)], stdout=subprocess.PIPE, text=True
        )
        assert started.stdout is not None
        servers.append(int(started.stdout.readline()))
        return started, servers[-1]

    yield run
    for server in servers:
        if is_running(server):
            os.kill(server, signal.SIGKILL)


def is_running(process: int) -> bool:
    try:
        # After the name in brackets comes the state; a zombie has ended, whoever should have asked for it.
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def until_it_has_ended(process: int) -> None:
    deadline = time.monotonic() + 60
    while is_running(process):
        assert time.monotonic() < deadline, "it still runs"
        time.sleep(0.01)


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("program", [ZOOKEEPER, BROKER], ids=["zookeeper", "broker"])
def test_a_server_ends_with_its_program(start: Start, program: str, how: signal.Signals) -> None:
    started, server = start(program)
    assert is_running(server)
    started.send_signal(how)
    started.wait()
    until_it_has_ended(server)


def test_a_process_outlives_the_thread_that_started_it() -> None:
    started: list[subprocess.Popen[bytes]] = []
    thread = threading.Thread(target=lambda: started.append(start_on_leash(["sleep", "600"])))
    thread.start()
    task = Path(f"/proc/self/task/{thread.native_id}")
    while task.exists():
        time.sleep(0.01)
    assert started[0].poll() is None
    started[0].kill()
    started[0].wait()
    let_go(started[0])


def test_nothing_is_left_of_a_process_that_was_let_go() -> None:
    process = start_on_leash(["true"], process_group=0)
    process.wait()
    let_go(process)
    let_go(process)
    deadline = time.monotonic() + 60
    while has_members(process.pid):
        assert time.monotonic() < deadline, "the shell beside it still runs"
        time.sleep(0.01)


def has_members(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True
