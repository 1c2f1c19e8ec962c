"""NATS JetStream: one nats-server with file storage."""

import re
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from bench.processes import Watched, free_port
from bench.provision import NATS, need_load_program, need_packages, run
from bench.systems.base import ReadyCheck, Running, System, until_ready
from bench.systems.other import RunningOther, output_beside


class _Info(ReadyCheck):
    def __init__(self, port: int) -> None:
        self._port = port

    def __call__(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self._port), timeout=5) as connection:
                return connection.recv(64).startswith(b"INFO")
        except OSError:
            return False


class Nats(System):
    name: ClassVar[str] = "nats"
    title: ClassVar[str] = "NATS JetStream"

    def prepare(self) -> None:
        need_packages([NATS])
        need_load_program("nats-load")

    def version(self) -> str:
        found = re.search(r"([\d.]+)", run(["nats-server", "--version"]))
        return found[1] if found else "unknown"

    def start(self, data: Path, settings: Mapping[str, str] | None = None) -> Running:
        port = free_port()
        command = ["nats-server", "-a", "127.0.0.1", "-p", str(port), "-js", "-sd", str(data)]
        process = Watched(command, output_beside(data))
        return RunningOther(port, [process], "nats-load", until_ready(process, _Info(port)))
