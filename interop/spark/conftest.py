"""One Spark session with both connectors, one Headrace broker and one Apache Kafka, for the whole run."""

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from bench.processes import free_port
from bench.provision import need_spark_connector, run
from bench.systems import Headrace, Kafka
from bench.systems.kafka_protocol import RunningKafka

Reading = Callable[..., DataFrame]

# Offset and transaction topics get one partition: quick to make, and all that these tests need.
SETTINGS = {"offsets.topic.num.partitions": "1", "transaction.state.log.num.partitions": "1"}


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    session = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.memory", "512m")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.warehouse.dir", str(tmp_path_factory.mktemp("warehouse")))
        .config("spark.jars", need_spark_connector())
        .getOrCreate()
    )
    yield session
    session.stop()


@pytest.fixture(scope="session")
def headrace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningKafka]:
    with Headrace().start(tmp_path_factory.mktemp("headrace") / "data", SETTINGS) as running:
        yield running


class SecureKafka:
    """Apache Kafka with a second listener: TLS, and users that log in with PLAIN or SCRAM."""

    def __init__(self, running: RunningKafka, port: int, authority: Path) -> None:
        self.running = running
        self.secure = f"127.0.0.1:{port}"
        self.authority = authority


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureKafka]:
    home = tmp_path_factory.mktemp("kafka")
    port, controller, secure = free_port(), free_port(), free_port()
    certificate, key = _certificate(home)
    pair = home / "pair.pem"
    pair.write_text(key.read_text() + certificate.read_text())
    plain = "org.apache.kafka.common.security.plain.PlainLoginModule"
    scram = "org.apache.kafka.common.security.scram.ScramLoginModule"
    settings = {
        **SETTINGS,
        "listeners": f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller},"
        f"SASL_SSL://127.0.0.1:{secure}",
        "advertised.listeners": f"PLAINTEXT://127.0.0.1:{port},SASL_SSL://127.0.0.1:{secure}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SASL_SSL:SASL_SSL",
        "controller.quorum.voters": f"1@127.0.0.1:{controller}",
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(pair),
        "listener.name.sasl_ssl.plain.sasl.jaas.config": f'{plain} required user_ann="wonder";',
        "listener.name.sasl_ssl.scram-sha-256.sasl.jaas.config": f"{scram} required;",
        "listener.name.sasl_ssl.scram-sha-512.sasl.jaas.config": f"{scram} required;",
    }
    running = _FixedPort(port).start(home / "data", settings)
    with running:
        yield SecureKafka(running, secure, certificate)


@pytest.fixture(params=["headrace", "kafka"])
def address(request: pytest.FixtureRequest) -> str:
    """Each of the two brokers in turn."""
    broker = request.getfixturevalue(request.param)
    return str(broker.address if request.param == "headrace" else broker.running.address)


class _FixedPort(Kafka):
    """Kafka whose listeners the test names itself."""

    def __init__(self, port: int) -> None:
        self._port = port

    def _spawn(self, data, settings, listeners):  # type: ignore[no-untyped-def]
        _, process = super()._spawn(data, settings, listeners)
        return self._port, process


def _certificate(home: Path) -> tuple[Path, Path]:
    certificate, key = home / "certificate.pem", home / "key.pem"
    command = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost"
    command += " -addext subjectAltName=IP:127.0.0.1"
    run([*command.split(), "-keyout", str(key), "-out", str(certificate)])
    return certificate, key
