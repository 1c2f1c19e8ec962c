"""What the systems that do not speak Kafka's protocol share: their load program also deletes streams."""

from collections.abc import Mapping
from pathlib import Path

from bench.processes import Watched
from bench.provision import need_load_program
from bench.systems.base import Running


class RunningOther(Running):
    """A started system whose streams come into being when they are first written."""

    def __init__(self, port: int, processes: list[Watched], program: str, ready_seconds: float) -> None:
        super().__init__(f"127.0.0.1:{port}", processes, need_load_program(program), ready_seconds)

    def create(self, topic: str, partitions: int = 1, config: Mapping[str, str] | None = None) -> None:
        """Nothing to do: the first write makes the stream."""

    def delete(self, topic: str) -> None:
        self.load("delete", topic=topic)


def output_beside(data: Path) -> Path:
    """Where the output of a system with this data directory goes."""
    data.mkdir(parents=True, exist_ok=True)
    return data.with_name(data.name + ".out")
