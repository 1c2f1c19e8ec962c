"""A webhook's other end, and alerters: in this process, or as processes of their own that can be killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from headrace.watch.alerts.alerter import Alerter
from headrace.watch.alerts.file import read


@dataclass
class Received:
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def document(self) -> Any:
        return json.loads(self.body)


@dataclass
class Inbox:
    """A real HTTP server; ``answers`` are the status codes for the next requests, 200 when there are none left."""

    received: list[Received] = field(default_factory=list)
    answers: list[int] = field(default_factory=list)
    answer_always: int | None = None
    hold: threading.Event = field(default_factory=threading.Event)
    """While cleared, nothing is answered."""
    url: str = ""

    def __post_init__(self) -> None:
        self.hold.set()

    def of(self, rule: str) -> list[str]:
        """What was told of a rule, in order."""
        return [each.document["status"] for each in list(self.received) if each.document["rule"] == rule]


@pytest.fixture
def inbox() -> Iterator[Inbox]:
    inbox = Inbox()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            inbox.hold.wait()
            status = inbox.answer_always or (inbox.answers.pop(0) if inbox.answers else 200)
            if status == 200:
                inbox.received.append(Received(self.path, dict(self.headers), body))
            self.send_response(status)
            if status == 302:
                self.send_header("Location", "/elsewhere")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            """Quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    inbox.url = f"http://127.0.0.1:{server.server_address[1]}/hook"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    yield inbox
    inbox.hold.set()
    server.shutdown()
    server.server_close()


def rules(inbox: Inbox, text: str, general: str = "") -> str:
    """An alerts.toml with a quick pace whose only receiver is the inbox."""
    return f"""
[alerts]
interval = "0.2s"
window = "1s"
failover = "6s"
cluster = "test"
{general}

[[receiver]]
name = "inbox"
kind = "webhook"
url = "{inbox.url}"

{text}
"""


@pytest.fixture
def alerter() -> Iterator[Callable[..., Alerter]]:
    """Runs alerters in threads: `alerter(bootstrap, text)`; ended with the test."""
    ends: list[Callable[[], None]] = []

    def start(bootstrap: str, text: str, name: str | None = None) -> Alerter:
        made = Alerter(read(text, "alerts.toml"), {"bootstrap.servers": bootstrap}, name)
        stop = threading.Event()
        thread = threading.Thread(target=made.run, args=(stop,), daemon=True)
        thread.start()

        def end() -> None:
            stop.set()
            thread.join(60)
            assert not thread.is_alive()

        made.end = end  # type: ignore[attr-defined]
        ends.append(end)
        return made

    yield start
    for end in ends:
        end()


@dataclass
class Instance:
    process: subprocess.Popen[str]
    log: Path

    @property
    def said(self) -> str:
        return self.log.read_text()

    def signal(self, number: signal.Signals) -> None:
        os.kill(self.process.pid, number)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


@pytest.fixture
def instance(tmp_path: Path) -> Iterator[Callable[..., Instance]]:
    """`headrace alerts run` as a process."""
    started: list[Instance] = []

    def start(bootstrap: str, text: str) -> Instance:
        number = len(started)
        config, log = tmp_path / f"alerts-{number}.toml", tmp_path / f"alerts-{number}.log"
        config.write_text(text)
        with log.open("w") as stderr:
            process = subprocess.Popen(
                [sys.executable, "-m", "headrace.cli", "alerts", "run", "-c", str(config), "-b", bootstrap],
                stderr=stderr,
                text=True,
                env={**os.environ, "HEADRACE_CONTEXT": ""},
            )
        started.append(Instance(process, log))
        return started[-1]

    yield start
    for each in started:
        each.kill()
        assert "Traceback" not in each.said, each.said
