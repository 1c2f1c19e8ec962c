"""A broker as a process of its own, for tests that kill it, starve it or measure it. It does not outlive the program."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from headrace.testing.leash import let_go, start_on_leash

_READY = re.compile(r"is ready: broker \d+ on [^,\n]*:(\d+)[,\n]")


class BrokerProcess:
    """`start()` returns when it serves; start again after `kill()` to find the same data and the same port."""

    def __init__(self, data: Path, settings: Mapping[str, str] | None = None) -> None:
        self.data = data
        self.settings = dict(settings or {})
        self.port = 0
        self.process: subprocess.Popen[str]

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.port}"

    def command(self) -> list[str]:
        """What starts it; a subclass may start it in surroundings of its own."""
        command = [sys.executable, "-m", "headrace.cli", "up"]
        command += ["--listen", f"127.0.0.1:{self.port}", "--data", str(self.data)]
        for name, value in self.settings.items():
            command += ["--set", f"{name}={value}"]
        return command

    def start(self) -> BrokerProcess:
        errors = (self.data.parent / f"{self.data.name}.stderr").open("a")
        # In a group of its own: a Ctrl-C at the terminal is for the program that started it, which stops the broker in order.
        self.process = start_on_leash(
            self.command(), stdout=subprocess.PIPE, stderr=errors, text=True, process_group=0
        )
        errors.close()
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        ready = _READY.search(line)
        if ready is None:
            self._ended()
            said = (self.data.parent / f"{self.data.name}.stderr").read_text()
            raise RuntimeError(f"the broker did not start: {line}{said}")
        self.port = int(ready[1])
        return self

    def stop(self) -> int:
        """Ask it to stop; its exit code."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        return self._ended()

    def kill(self) -> None:
        if self.process.poll() is None:
            os.kill(self.process.pid, signal.SIGKILL)
        self._ended()

    def _ended(self) -> int:
        code = self.process.wait(30)
        let_go(self.process)
        if self.process.stdout is not None:
            self.process.stdout.close()
        return code
