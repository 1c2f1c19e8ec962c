"""What people watch Kafka with, unchanged: Burrow from Debian, kafka_exporter and KMinion, which are written in Go.

Each must report the lag that Headrace's own lag monitor measures.
"""

import json
import os
import subprocess
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from bench.processes import free_port
from bench.provision import Missing, Need, need_go, need_packages, run
from bench.systems.kafka_protocol import RunningKafka
from headrace.client import LagMonitor
from headrace.testing.zookeeper import ZooKeeperServer
from interop.kafka.programs import BUILD
from tests.waiting import until

BURROW = Need("Burrow", "burrow")
GO_PROGRAMS = {
    "kafka_exporter": "github.com/danielqsj/kafka_exporter@v1.9.0",
    "kminion": "github.com/cloudhut/kminion/v2@v2.3.5",
}
TOPIC, GROUP = "watched", "watched-readers"
RECORDS, READ = 90, 30


@pytest.fixture(scope="module")
def lagging(broker: RunningKafka) -> str:
    """The address of a broker with a group that has read a third of its topic."""
    broker.create(TOPIC, 3)
    producer = Producer({"bootstrap.servers": broker.address})
    for number in range(RECORDS):
        producer.produce(TOPIC, str(number), partition=number % 3)
    assert producer.flush(60) == 0
    commit(broker.address, READ // 3)
    return broker.address


def commit(bootstrap: str, offset: int) -> None:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": GROUP, "enable.auto.commit": False})
    places = [TopicPartition(TOPIC, number, offset) for number in range(3)]
    consumer.commit(offsets=places, asynchronous=False)
    consumer.close()


def our_lag(bootstrap: str) -> int:
    with LagMonitor(bootstrap) as monitor:
        return monitor.measure(GROUP).records


def test_kafka_exporter_agrees_on_lag_and_offsets(lagging: str, tmp_path: Path) -> None:
    port = free_port()
    command = [
        go_program("kafka_exporter"),
        f"--kafka.server={lagging}",
        f"--web.listen-address=127.0.0.1:{port}",
    ]
    with running(command, tmp_path) as log:
        page = Page(f"http://127.0.0.1:{port}/metrics", log)
        page.wait_for(
            f'kafka_consumergroup_lag_sum{{consumergroup="{GROUP}",topic="{TOPIC}"}} {our_lag(lagging)}'
        )
        assert our_lag(lagging) == RECORDS - READ
        page.wait_for(f'kafka_topic_partitions{{topic="{TOPIC}"}} 3')
        page.wait_for(f'kafka_topic_partition_current_offset{{partition="0",topic="{TOPIC}"}} {RECORDS // 3}')
        page.wait_for(f'kafka_topic_partition_under_replicated_partition{{partition="0",topic="{TOPIC}"}} 0')
        page.wait_for("kafka_brokers 1")


def test_kminion_agrees_on_lag_and_sends_its_own_records_end_to_end(lagging: str, tmp_path: Path) -> None:
    port = free_port()
    settings = {
        "KAFKA_BROKERS": lagging,
        "EXPORTER_HOST": "127.0.0.1",
        "EXPORTER_PORT": str(port),
        "MINION_ENDTOEND_ENABLED": "true",
        "MINION_ENDTOEND_PROBEINTERVAL": "200ms",
    }
    with running([go_program("kminion")], tmp_path, settings) as log:
        page = Page(f"http://127.0.0.1:{port}/metrics", log)
        page.wait_for(
            "kminion_kafka_consumer_group_topic_lag{", f'group_id="{GROUP}"', f"}} {our_lag(lagging)}"
        )
        page.wait_for("kminion_kafka_broker_info{")
        page.wait_for("kminion_kafka_topic_info{", f'topic_name="{TOPIC}"')
        until(lambda: page.sum_of("kminion_end_to_end_messages_received_total") > 3, "KMinion's own records")


def test_burrow_judges_the_group_by_its_commits(lagging: str, tmp_path: Path) -> None:
    """Burrow 1.2 starts only where it finds a ZooKeeper, for the locks of its notifiers."""
    need_packages([BURROW])
    with ZooKeeperServer(tmp_path / "zookeeper") as zookeeper:
        judge_with_burrow(lagging, zookeeper, tmp_path)


def judge_with_burrow(lagging: str, zookeeper: ZooKeeperServer, tmp_path: Path) -> None:
    port = free_port()
    (tmp_path / "burrow.toml").write_text(
        f'''
        [general]
        pidfile = "{tmp_path}/burrow.pid"
        [zookeeper]
        servers = ["{zookeeper.connect_string}"]
        [logging]
        level = "info"
        [client-profile.test]
        client-id = "burrow"
        kafka-version = "2.1.0"
        [cluster.local]
        class-name = "kafka"
        servers = ["{lagging}"]
        client-profile = "test"
        topic-refresh = 2
        offset-refresh = 1
        [consumer.local]
        class-name = "kafka"
        cluster = "local"
        servers = ["{lagging}"]
        client-profile = "test"
        [httpserver.default]
        address = "127.0.0.1:{port}"
        [storage.default]
        class-name = "inmemory"
        min-distance = 0
        intervals = 3
        '''
    )
    with running(["Burrow", f"--config-dir={tmp_path}"], tmp_path) as log:
        page = Page(f"http://127.0.0.1:{port}/v3/kafka/local/consumer/{GROUP}/lag", log)

        def judged() -> bool:
            # It judges by commits that come in while it looks.
            commit(lagging, READ // 3)
            text = page.text()
            status: dict[str, Any] = json.loads(text)["status"] if text else {}
            return status.get("totallag") == our_lag(lagging) and status.get("partition_count") == 3

        until(judged, "Burrow's figure")


class Page:
    """What a program serves over HTTP; a failure shows the program's log."""

    def __init__(self, url: str, log: Path) -> None:
        self._url = url
        self._log = log

    def text(self) -> str:
        """Nothing while it does not answer, or does not know yet."""
        try:
            with urllib.request.urlopen(self._url, timeout=30) as answer:
                return str(answer.read().decode())
        except OSError:
            return ""

    def wait_for(self, *parts: str) -> None:
        """Until one line has all the parts."""
        try:
            until(lambda: any(all(part in line for part in parts) for line in self.text().splitlines()))
        except AssertionError:
            near = "\n".join(line for line in self.text().splitlines() if parts[0].split("{")[0] in line)
            raise AssertionError(
                f"no line with {parts}; it has:\n{near}\n{self._log.read_text()[-3000:]}"
            ) from None

    def sum_of(self, name: str) -> float:
        return sum(
            float(line.rsplit(" ", 1)[1])
            for line in self.text().splitlines()
            if line.startswith((f"{name}{{", f"{name} "))
        )


def go_program(name: str) -> str:
    """From the PATH, or built from the Go module proxy."""
    need_go()
    built = BUILD / "go-bin" / name
    for place in os.environ["PATH"].split(os.pathsep):
        if (Path(place) / name).is_file():
            return str(Path(place) / name)
    if not built.exists():
        try:
            run(["go", "install", GO_PROGRAMS[name]], env={"GOBIN": str(built.parent)}, limit=900)
        except Missing as error:
            raise Missing(f"install {name} ({GO_PROGRAMS[name]}) and put it on the PATH; {error}") from None
    return str(built)


@contextmanager
def running(
    command: Sequence[str], directory: Path, settings: Mapping[str, str] | None = None
) -> Iterator[Path]:
    """A program at work in a directory; the path of its log."""
    log = directory / "program.log"
    with log.open("w") as file:
        process = subprocess.Popen(
            command, cwd=directory, stdout=file, stderr=file, env={**os.environ, **(settings or {})}
        )
    try:
        yield log
    finally:
        process.terminate()
        process.wait(30)
