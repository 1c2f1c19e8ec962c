"""Spark with a connector: Headrace's data source and Spark's own for Kafka, both in one session."""

import importlib.metadata
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from multiprocessing.connection import Client, Connection
from pathlib import Path
from typing import ClassVar

from bench.processes import Broken, Watched
from bench.provision import need_spark_connector
from bench.systems.base import Answer, ReadyCheck, Running, System, until_ready


class RunningConnector(Running):
    """One connector in a session that is up; the CPU and memory are those of Spark and its Python workers."""

    def __init__(self, connector: str, process: Watched, wire: Connection) -> None:
        self.connector = connector
        self.processes = [process]
        self._wire = wire

    def work(self, kind: str, **options: object) -> Answer:
        self._wire.send((kind, {"connector": self.connector, **options}))
        return _answer(self._wire, self.processes[0], 300)

    def create(self, topic: str, partitions: int = 1, config: Mapping[str, str] | None = None) -> None:
        raise NotImplementedError("topics are made at the broker")

    def delete(self, topic: str) -> None:
        raise NotImplementedError("topics are removed at the broker")


class SparkKafka(System):
    """Spark's own connector, from Maven; measured by the part `spark` only."""

    name: ClassVar[str] = "spark-kafka"
    title: ClassVar[str] = "Spark's Kafka connector"

    def prepare(self) -> None:
        need_spark_connector()

    def version(self) -> str:
        return importlib.metadata.version("pyspark")

    def start(self, data: Path, settings: Mapping[str, str] | None = None) -> Running:
        raise NotImplementedError("a connector runs inside a session: use spark_session")


@contextmanager
def spark_session(work: Path, cores: int) -> Iterator[dict[str, Running]]:
    """A Spark session of `cores` cores with both connectors, by the names of the results."""
    jars = need_spark_connector()
    # A Unix socket's path may have 107 characters at most, so this is not below the working directory.
    with tempfile.TemporaryDirectory(prefix="headrace-") as home:
        socket = Path(home) / "spark"
        work.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-m", "bench.spark.load", str(socket), str(cores), jars]
        process = Watched(command, work / f"spark-{cores}.out")
        try:
            connects = _Connects(socket)
            until_ready(process, connects, 180)
            with connects.wire as wire:
                yield {
                    "headrace": RunningConnector("headrace", process, wire),
                    SparkKafka.name: RunningConnector("kafka", process, wire),
                }
        finally:
            process.kill()


class _Connects(ReadyCheck):
    """Ready when the program takes a connection, which is then `wire`."""

    def __init__(self, socket: Path) -> None:
        self._socket = socket
        self.wire: Connection

    def __call__(self) -> bool:
        try:
            self.wire = Client(str(self._socket), "AF_UNIX")
        except OSError:
            return False
        return True


def _answer(wire: Connection, process: Watched, limit: float) -> Answer:
    """The figures of the work that was asked for; a complaint is a Broken."""
    said = _hear(wire, process, limit)
    if not isinstance(said, dict):
        raise Broken(str(said))
    return said


def _hear(wire: Connection, process: Watched, limit: float) -> object:
    """What the program says next; its end, or silence, is a Broken."""
    for _ in range(int(limit)):
        process.check()
        if wire.poll(1):
            break
    else:
        raise Broken(f"Spark did not answer within {limit:g} s; it printed last:\n{process.last_words()}")
    try:
        said: object = wire.recv()
    except EOFError:
        raise Broken(f"Spark ended; it printed last:\n{process.last_words()}") from None
    return said
