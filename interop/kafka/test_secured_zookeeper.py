"""Three brokers on a ZooKeeper that asks for TLS and a login: Java clients and tools work, and strangers cannot read the cluster's nodes."""

import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from kazoo.client import KazooClient
from kazoo.exceptions import NoAuthError

from bench.processes import Watched, free_ports
from bench.provision import java
from interop.kafka.dataset import PARTITIONS, dataset, in_order
from interop.kafka.programs import FRANZ, JAVA_CLIENT, ProgramFailed, finish
from interop.kafka.secured import Login
from tests.certificates import Certificates
from tests.secured_zookeeper import SecuredZooKeeper, login
from tests.waiting import until

SIZE = 3
ADA = Login("ada")


class ZooKeeperCluster:
    """Brokers with a plain listener on loopback, by which users are added (docs/logins.md), and one that asks for TLS and a login."""

    def __init__(self, home: Path, zookeeper: SecuredZooKeeper, stack: ExitStack) -> None:
        self.certificates = Certificates(home / "certificates")
        first = free_ports(2 * SIZE)
        self.plain = ",".join(f"127.0.0.1:{first + 2 * number}" for number in range(SIZE))
        self.bootstrap = ",".join(f"127.0.0.1:{first + 2 * number + 1}" for number in range(SIZE))
        self.processes = []
        for number in range(SIZE):
            settings = {
                "node.id": str(number + 1),
                "zookeeper.connect": f"{zookeeper.tls_hosts}/secured",
                **zookeeper.tls(),
                **login(scheme="DIGEST-MD5"),
                "log.dirs": str(home / f"data-{number}"),
                "listeners": f"PLAINTEXT://127.0.0.1:{first + 2 * number},SASL_SSL://127.0.0.1:{first + 2 * number + 1}",
                "inter.broker.listener.name": "PLAINTEXT",
                "sasl.enabled.mechanisms": "SCRAM-SHA-512",
                "ssl.keystore.location": str(self.certificates.broker),
                "group.initial.rebalance.delay.ms": "0",
            }
            config = home / f"broker-{number}.properties"
            config.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
            program = str(Path(sys.executable).with_name("headrace"))
            process = Watched([program, "up", "--config", str(config)], home / f"broker-{number}.out")
            stack.callback(process.stop)
            self.processes.append(process)

    def await_ready(self) -> None:
        def ready(process: Watched) -> bool:
            process.check()
            return "is ready: broker" in process.log.read_text()

        for process in self.processes:
            until(lambda process=process: ready(process), "the brokers are ready", 120)

    def env(self, who: Login) -> dict[str, str]:
        """What the Java program and those in Go read."""
        settings = {
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": who.mechanism,
            "sasl.jaas.config": who.jaas(),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.certificates.ca),
        }
        file = self.certificates.home / "client.properties"
        file.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
        return {
            "CLIENT_PROPERTIES": str(file),
            "TLS_CA": str(self.certificates.ca),
            "SASL_MECHANISM": who.mechanism,
            "SASL_USER": who.user,
            "SASL_PASSWORD": who.password,
        }


@pytest.fixture(scope="module")
def zookeeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredZooKeeper]:
    made = SecuredZooKeeper(tmp_path_factory.mktemp("zookeeper"))
    with made.server:
        yield made


@pytest.fixture(scope="module")
def cluster(
    request: pytest.FixtureRequest, zookeeper: SecuredZooKeeper, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ZooKeeperCluster]:
    if request.config.getoption("--against") == "kafka":
        pytest.skip("Kafka 4 has no ZooKeeper")
    with ExitStack() as stack:
        made = ZooKeeperCluster(tmp_path_factory.mktemp("brokers"), zookeeper, stack)
        made.await_ready()
        yield made


def test_java_clients_and_tools_use_a_cluster_whose_facts_are_locked_away(
    cluster: ZooKeeperCluster, zookeeper: SecuredZooKeeper
) -> None:
    tool = [*java("kafka.admin.ConfigCommand"), "--bootstrap-server", cluster.plain]
    added = f"SCRAM-SHA-512=[password={ADA.password}]"
    finish([*tool, "--alter", "--add-config", added, "--entity-type", "users", "--entity-name", "ada"])
    admin = AdminClient({"bootstrap.servers": cluster.plain})
    wanted = NewTopic("t", PARTITIONS, SIZE, config={"min.insync.replicas": str(SIZE), "retention.ms": "-1"})
    admin.create_topics([wanted], operation_timeout=60)["t"].result()
    records, env = dataset(60), cluster.env(ADA)
    JAVA_CLIENT.write(cluster.bootstrap, "t", records, env=env)
    for reader in (JAVA_CLIENT, FRANZ):
        assert reader.read(cluster.bootstrap, ["t"], env=env)["t"] == in_order(records)
    with pytest.raises(ProgramFailed, match="SaslAuthenticationException"):
        JAVA_CLIENT.read(cluster.bootstrap, ["t"], env=cluster.env(Login("ada", password="a guess")))
    stranger = KazooClient(zookeeper.server.connect_string)
    stranger.start()
    try:
        for path in ("/secured/metadata/head", "/secured/brokers"):
            with pytest.raises(NoAuthError):
                stranger.get(path)
    finally:
        stranger.stop()
        stranger.close()


def test_a_broker_with_another_login_is_told_so_in_one_sentence(
    zookeeper: SecuredZooKeeper, cluster: ZooKeeperCluster, tmp_path: Path
) -> None:
    settings = {
        "node.id": "9",
        "zookeeper.connect": f"{zookeeper.tls_hosts}/secured",
        **zookeeper.tls(),
        "log.dirs": str(tmp_path / "data"),
        "listeners": "PLAINTEXT://127.0.0.1:0",
    }
    config = tmp_path / "stranger.properties"
    config.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
    with pytest.raises(ProgramFailed, match="belong to another login"):
        finish([str(Path(sys.executable).with_name("headrace")), "up", "--config", str(config)])
