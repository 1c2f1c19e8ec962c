"""Commands as a user runs them: a process of their own, with a real broker behind them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from headrace.testing.broker import BrokerThread


@dataclass
class Ran:
    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def json_lines(self) -> list[Any]:
        return [json.loads(line) for line in self.lines]


Headrace = Callable[..., Ran]


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerThread]:
    """One broker for a module, which lets groups start at once: nobody else is coming."""
    running = BrokerThread(
        tmp_path_factory.mktemp("broker"), {"group.initial.rebalance.delay.ms": "0"}
    ).start()
    yield running
    running.stop()


def command(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "headrace.cli", *map(str, arguments)]


def environment(bootstrap: str) -> dict[str, str]:
    return {
        **os.environ,
        "HEADRACE_BOOTSTRAP": bootstrap,
        "HEADRACE_CONTEXT": "",
        "COLUMNS": "120",
        "PYTHONIOENCODING": "utf-8",
    }


@pytest.fixture
def headrace(bootstrap: str) -> Headrace:
    """Run `headrace …` to its end. A failure with a traceback fails the test."""

    def run(*arguments: object, stdin: str | bytes = "", env: Mapping[str, str] | None = None) -> Ran:
        given = stdin.encode() if isinstance(stdin, str) else stdin
        done = subprocess.run(
            command(*arguments),
            input=given,
            capture_output=True,
            timeout=90,
            env={**environment(bootstrap), **(env or {})},
            check=False,
        )
        ran = Ran(done.returncode, done.stdout.decode(), done.stderr.decode())
        assert "Traceback" not in ran.err, ran.err
        return ran

    return run


@pytest.fixture
def start(bootstrap: str) -> Any:
    """Start `headrace …` and leave it running; ended with the test if it has not ended itself."""
    started: list[subprocess.Popen[str]] = []

    def run(*arguments: object) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            command(*arguments),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment(bootstrap),
        )
        started.append(process)
        return process

    yield run
    for process in started:
        process.kill()
        process.communicate()


@pytest.fixture
def name() -> str:
    """A name nobody else uses."""
    return f"t-{uuid.uuid4().hex[:12]}"
