"""Apache Kafka: one KRaft node with the heap and collector settings of its own start script."""

from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from bench.processes import Watched, free_port
from bench.provision import KAFKA_VERSION, java, need_kafka, need_load_program, run
from bench.systems.kafka_protocol import KafkaProtocolSystem

CLUSTER_ID = "AAAAAAAAAAAAAAAAAAAAAQ"
JVM = [
    "-Xmx1G",
    "-Xms1G",
    "-server",
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent",
    "-Djava.awt.headless=true",
]


class Kafka(KafkaProtocolSystem):
    name: ClassVar[str] = "kafka"
    title: ClassVar[str] = "Apache Kafka"
    release: ClassVar[str] = KAFKA_VERSION

    def prepare(self) -> None:
        need_kafka(self.release)
        need_load_program("kafka-load")

    def version(self) -> str:
        return self.release

    def _spawn(self, data: Path, settings: Mapping[str, str], listeners: str) -> tuple[int, Watched]:
        port, controller = free_port(), free_port()
        properties = {
            "process.roles": "broker,controller",
            "node.id": "1",
            "listeners": f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}{listeners}",
            "advertised.listeners": f"PLAINTEXT://127.0.0.1:{port}{listeners}",
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.voters": f"1@127.0.0.1:{controller}",
            "log.dirs": str(data),
            "offsets.topic.replication.factor": "1",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            "share.coordinator.state.topic.replication.factor": "1",
            "share.coordinator.state.topic.min.isr": "1",
            # Kafka first looks for deleted topics after this time; 30 s would leave them between the rounds.
            "log.initial.task.delay.ms": "100",
            **settings,
        }
        file = data.with_name(data.name + ".properties")
        file.write_text("".join(f"{name}={value}\n" for name, value in properties.items()))
        if not (data / "meta.properties").exists():
            format_ = ("kafka.tools.StorageTool", "format", "-t", CLUSTER_ID, "-c", str(file))
            run(java(*format_, version=self.release))
        return port, Watched(broker_command(file, self.release), data.with_name(data.name + ".out"))


class OldKafka(Kafka):
    """The last release line before Kafka 4: it still speaks to the oldest clients, and many clusters run it."""

    title: ClassVar[str] = "Apache Kafka 3.9"
    release: ClassVar[str] = "3.9.1"


def broker_command(properties: Path, version: str = KAFKA_VERSION) -> list[str]:
    """What starts a node with this file of settings."""
    log4j = Path(__file__).parent.parent / "kafka" / "log4j2.properties"
    options = [*JVM, f"-Dlog4j2.configurationFile={log4j}"]
    return ["java", *options, "-cp", need_kafka(version), "kafka.Kafka", str(properties)]
