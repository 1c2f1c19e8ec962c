"""Headrace from this checkout: one broker, `headrace up`, as a user starts it."""

import sys
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import ClassVar

from bench.processes import Watched, free_port
from bench.provision import Missing, need_load_program
from bench.systems.kafka_protocol import KafkaProtocolSystem


class Headrace(KafkaProtocolSystem):
    name: ClassVar[str] = "headrace"
    title: ClassVar[str] = "Headrace"

    def prepare(self) -> None:
        need_load_program("kafka-load")
        if not self._command().exists():
            raise Missing(f"{self._command()} is not there: run make setup first")

    def version(self) -> str:
        return version("headrace")

    def _command(self) -> Path:
        return Path(sys.executable).parent / "headrace"

    def _spawn(self, data: Path, settings: Mapping[str, str], listeners: str) -> tuple[int, Watched]:
        port = free_port()
        command = [str(self._command()), "up", "--data", str(data)]
        for name, value in {"listeners": f"PLAINTEXT://127.0.0.1:{port}{listeners}", **settings}.items():
            command += ["--set", f"{name}={value}"]
        return port, Watched(command, data.with_name(data.name + ".out"))
