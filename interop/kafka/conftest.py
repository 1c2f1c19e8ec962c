"""One broker for the whole run, the topics every client has written, and Kafka's own tools as functions."""

from collections.abc import Callable, Iterator

import pytest

from bench.provision import java
from bench.systems import Headrace, Kafka
from bench.systems.kafka_protocol import KafkaProtocolSystem, RunningKafka
from interop.kafka.dataset import PARTITIONS, Record, dataset, in_order
from interop.kafka.programs import Program, finish

Tool = Callable[..., str]

# Offset and transaction topics get one partition: quick to make, and all that these tests need.
SETTINGS = {"offsets.topic.num.partitions": "1", "group.initial.rebalance.delay.ms": "0"}


@pytest.fixture(scope="session")
def system(request: pytest.FixtureRequest) -> KafkaProtocolSystem:
    """Headrace, or Apache Kafka with --against kafka."""
    return Kafka() if request.config.getoption("--against") == "kafka" else Headrace()


@pytest.fixture(scope="session")
def broker(system: KafkaProtocolSystem, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningKafka]:
    running = system.start(tmp_path_factory.mktemp("broker") / "data", SETTINGS)
    with running:
        yield running


@pytest.fixture(scope="session")
def bootstrap(broker: RunningKafka) -> str:
    return broker.address


@pytest.fixture(scope="session")
def written(broker: RunningKafka) -> Callable[[Program, str], tuple[str, list[Record]]]:
    """The topic that a program wrote with a compression, and what must be in it; written once."""
    topics: dict[tuple[str, str], str] = {}

    def write(program: Program, compression: str) -> tuple[str, list[Record]]:
        place = (program.name, compression)
        records = dataset(null_headers=program.null_headers)
        if place not in topics:
            topic = f"written-by-{program.name}-{compression}"
            broker.create(topic, PARTITIONS, {"retention.ms": "-1"})
            program.write(broker.address, topic, records, compression)
            topics[place] = topic
        return topics[place], in_order(records)

    return write


@pytest.fixture(scope="session")
def tool(bootstrap: str) -> Tool:
    """Runs one of Kafka's tools against the broker: tool("TopicCommand", "--list")."""

    def call(name: str, *arguments: str, stdin: str | None = None, limit: float = 90) -> str:
        main = name if name.startswith("kafka.") else f"org.apache.kafka.tools.{name}"
        where = [] if name in _TOOLS_WITHOUT_BOOTSTRAP else ["--bootstrap-server", bootstrap]
        return finish([*java(main), *where, *arguments], stdin=stdin, limit=limit)

    return call


_TOOLS_WITHOUT_BOOTSTRAP = {"ProducerPerformance", "ClusterTool", "DumpLogSegments"}
