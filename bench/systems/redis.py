"""Redis Streams: one redis-server whose append-only file is synced every second."""

import re
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from bench.processes import Watched, free_port
from bench.provision import REDIS, need_load_program, need_packages, run
from bench.systems.base import ReadyCheck, Running, System, until_ready
from bench.systems.other import RunningOther, output_beside


class _Pong(ReadyCheck):
    def __init__(self, port: int) -> None:
        self._port = port

    def __call__(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self._port), timeout=5) as connection:
                connection.sendall(b"PING\r\n")
                return connection.recv(64).startswith(b"+PONG")
        except OSError:
            return False


class Redis(System):
    name: ClassVar[str] = "redis"
    title: ClassVar[str] = "Redis Streams"

    def prepare(self) -> None:
        need_packages([REDIS])
        need_load_program("redis-load")

    def version(self) -> str:
        found = re.search(r"v=([\d.]+)", run(["redis-server", "--version"]))
        return found[1] if found else "unknown"

    def start(self, data: Path, settings: Mapping[str, str] | None = None) -> Running:
        port = free_port()
        command = [
            "redis-server",
            "--port",
            str(port),
            "--bind",
            "127.0.0.1",
            "--dir",
            str(data),
            "--save",
            "",
        ]
        command += ["--appendonly", "yes", "--appendfsync", "everysec"]
        process = Watched(command, output_beside(data))
        return RunningOther(port, [process], "redis-load", until_ready(process, _Pong(port)))
