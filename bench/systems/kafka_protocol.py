"""What Headrace and Apache Kafka share under measurement: the load program, the admin
client, the readiness question.
"""

import time
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from bench.metadata import ask_metadata
from bench.processes import Broken, Watched
from bench.provision import need_load_program
from bench.systems.base import Load, Option, ReadyCheck, Running, System, until_ready

# Deleted topics leave the disk at once, so that their dirty pages do not disturb the next round.
QUICK_DELETION = {"log.segment.delete.delay.ms": "1"}


class MetadataAnswers(ReadyCheck):
    """Ready when a Metadata reply names the broker and a leader for each of `partitions` partitions."""

    def __init__(self, port: int, partitions: int = 0) -> None:
        self._port = port
        self._partitions = partitions

    def __call__(self) -> bool:
        view = ask_metadata(self._port)
        return view is not None and view.brokers > 0 and view.led_partitions >= self._partitions


class RunningKafka(Running):
    """A started broker that speaks Kafka's protocol; `data` is its log directory."""

    # The short queue keeps what is unsent when the time is up from stretching the measurement.
    one_by_one: ClassVar[Mapping[str, Option]] = {
        "in_flight": 1,
        "batch_records": 1,
        "linger_ms": 0,
        "queue_records": 2000,
    }

    def __init__(self, port: int, process: Watched, data: Path, ready_seconds: float) -> None:
        super().__init__(f"127.0.0.1:{port}", [process], need_load_program("kafka-load"), ready_seconds)
        self.data = data
        self._admin: AdminClient | None = None

    @property
    def admin(self) -> AdminClient:
        if self._admin is None:
            self._admin = AdminClient({"bootstrap.servers": self.address, "log_level": 2})
        return self._admin

    def create(self, topic: str, partitions: int = 1, config: Mapping[str, str] | None = None) -> None:
        wanted = NewTopic(topic, partitions, 1, config=dict(config or {}))
        try:
            self.admin.create_topics([wanted], operation_timeout=60)[topic].result()
        except KafkaException as error:
            raise Broken(f"{topic} could not be created at {self.address}: {error}") from error
        self._await_leaders(topic, partitions)

    def _await_leaders(self, topic: str, partitions: int) -> None:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            described = self.admin.list_topics(topic, timeout=10).topics[topic]
            if (
                described.error is None
                and sum(p.leader >= 0 for p in described.partitions.values()) == partitions
            ):
                return
            time.sleep(0.02)
        raise Broken(f"{topic} had no leaders at {self.address} after 60 s")

    def delete(self, topic: str) -> None:
        try:
            self.admin.delete_topics([topic], operation_timeout=60)[topic].result()
        except KafkaException as error:
            raise Broken(f"{topic} could not be deleted at {self.address}: {error}") from error
        deadline = time.monotonic() + 60
        while list(self.data.glob(f"{topic}-*")):
            if time.monotonic() > deadline:
                raise Broken(f"{topic} was still in {self.data} 60 s after its deletion")
            time.sleep(0.02)


class OverTls(RunningKafka):
    """A running broker as clients of one of its secured listeners see it; topics are made over the plain one."""

    def __init__(self, plain: RunningKafka, port: int, options: Mapping[str, Option]) -> None:
        Running.__init__(self, f"127.0.0.1:{port}", plain.processes, plain.program, plain.ready_seconds)
        self.data = plain.data
        self._plain = plain
        self._options = options

    @property
    def admin(self) -> AdminClient:
        return self._plain.admin

    def start_load(self, kind: str, **options: Option) -> Load:
        return super().start_load(kind, **self._options, **options)


class KafkaProtocolSystem(System):
    """A broker that the Kafka load program and admin client can drive."""

    speaks_kafka: ClassVar[bool] = True

    def start(
        self,
        data: Path,
        settings: Mapping[str, str] | None = None,
        *,
        partitions: int = 0,
        listeners: str = "",
    ) -> RunningKafka:
        """Starts it; ready means a Metadata answer that names a leader for each of `partitions`
        partitions. `listeners` are those beside the plain one.
        """
        data.parent.mkdir(parents=True, exist_ok=True)
        further = f",{listeners}" if listeners else ""
        port, process = self._spawn(data, {**QUICK_DELETION, **(settings or {})}, further)
        try:
            ready = until_ready(process, MetadataAnswers(port, partitions))
        except BaseException:
            process.kill()
            raise
        return RunningKafka(port, process, data, ready)

    def _spawn(self, data: Path, settings: Mapping[str, str], listeners: str) -> tuple[int, Watched]:
        raise NotImplementedError
