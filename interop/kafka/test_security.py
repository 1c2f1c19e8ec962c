"""A secured cluster of three: clients log in over TLS with each mechanism, and Kafka's own tools keep users, ACLs, quotas,
certificates and delegation tokens.
"""

import json
import re
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest
import trustme
from confluent_kafka import Producer

from interop.kafka.dataset import PARTITIONS, dataset, in_order
from interop.kafka.programs import FRANZ, JAVA_CLIENT, SARAMA, Program, ProgramFailed
from interop.kafka.secured import PLAIN_USER, Login, SecuredCluster
from tests.waiting import until

CLIENTS = (JAVA_CLIENT, FRANZ, SARAMA)
LOGINS = (Login("ada", "SCRAM-SHA-256"), Login("ada", "SCRAM-SHA-512"), Login(PLAIN_USER, "PLAIN"))
RECORDS = dataset(60)
CONFIGS = "kafka.admin.ConfigCommand"


@pytest.fixture(scope="module")
def cluster(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SecuredCluster]:
    if request.config.getoption("--against") == "kafka":
        pytest.skip("the cluster is made by headrace init")
    made = SecuredCluster(tmp_path_factory.mktemp("secured"))
    try:
        made.await_ready()
        for user in ("ada", "eve"):
            made.add_user(user)
        for user in ("ada", PLAIN_USER):
            made.allow(user, "--operation", "All", "--topic", "shared-", prefixed=True)
        yield made
    finally:
        made.process.stop()


@pytest.fixture(scope="module")
def written(cluster: SecuredCluster) -> list[str]:
    """The topics that each client wrote with each login."""
    topics = {
        (client, login): f"shared-{client.name}-{login.mechanism}" for client in CLIENTS for login in LOGINS
    }
    cluster.create(*topics.values(), partitions=PARTITIONS)
    for (client, login), topic in topics.items():
        client.write(cluster.bootstrap, topic, RECORDS, "gzip", env=cluster.env(login))
    return list(topics.values())


@pytest.mark.parametrize("login", LOGINS, ids=lambda login: login.mechanism)
@pytest.mark.parametrize("reader", CLIENTS, ids=lambda client: client.name)
def test_what_one_client_writes_over_tls_another_reads(
    cluster: SecuredCluster, written: list[str], reader: Program, login: Login
) -> None:
    found = reader.read(cluster.bootstrap, written, env=cluster.env(login))
    for topic in written:
        assert found[topic] == in_order(RECORDS), f"{reader.name} read other records from {topic}"


REFUSALS = {
    "java": "SaslAuthenticationException",
    "franz": "SASL_AUTHENTICATION_FAILED",
    "sarama": "SASL Authentication failed",
}


@pytest.mark.parametrize("login", LOGINS, ids=lambda login: login.mechanism)
@pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.name)
def test_a_wrong_password_is_refused_as_such(
    cluster: SecuredCluster, written: list[str], client: Program, login: Login
) -> None:
    wrong = cluster.env(Login(login.user, login.mechanism, "a guess"))
    with pytest.raises(ProgramFailed, match=REFUSALS[client.name]):
        client.read(cluster.bootstrap, written[:1], env=wrong)


def test_a_client_that_does_not_trust_the_authority_does_not_connect(
    cluster: SecuredCluster, written: list[str], tmp_path: Path
) -> None:
    other = tmp_path / "other.pem"
    trustme.CA().cert_pem.write_to_path(str(other))
    with pytest.raises(ProgramFailed, match="certificate signed by unknown authority"):
        FRANZ.read(cluster.bootstrap, written[:1], env={**cluster.env(LOGINS[0]), "TLS_CA": str(other)})


def test_permission_decides_who_writes_and_reads(cluster: SecuredCluster) -> None:
    cluster.create("guarded", partitions=PARTITIONS)
    eve = cluster.env(Login("eve"))
    topic = ("--topic", "guarded")
    with pytest.raises(ProgramFailed, match="TopicAuthorizationException"):
        JAVA_CLIENT.write(cluster.bootstrap, "guarded", RECORDS, env=eve)
    cluster.allow("eve", "--producer", *topic)
    JAVA_CLIENT.write(cluster.bootstrap, "guarded", RECORDS, env=eve)
    with pytest.raises(ProgramFailed, match="TopicAuthorizationException"):
        JAVA_CLIENT.read(cluster.bootstrap, ["guarded"], env=eve)
    cluster.allow("eve", "--operation", "Read", *topic)
    assert JAVA_CLIENT.read(cluster.bootstrap, ["guarded"], env=eve)["guarded"] == in_order(RECORDS)
    listed = cluster.tool("AclCommand", "--list", "--principal", "User:eve")
    for operation in ("READ", "WRITE", "DESCRIBE", "CREATE"):
        assert f"principal=User:eve, host=*, operation={operation}, permissionType=ALLOW" in listed
    cluster.tool("AclCommand", "--remove", "--force", *topic)
    with pytest.raises(ProgramFailed, match="TopicAuthorizationException"):
        JAVA_CLIENT.read(cluster.bootstrap, ["guarded"], env=eve)
    with pytest.raises(ProgramFailed, match="ClusterAuthorizationException"):
        cluster.tool("AclCommand", "--list", login=Login("eve"))


def test_scram_users_are_added_described_and_deleted(cluster: SecuredCluster, written: list[str]) -> None:
    bob = ("--entity-type", "users", "--entity-name", "bob")
    login = Login("bob", "SCRAM-SHA-256", "first")
    cluster.allow("bob", "--operation", "Read", "--topic", "shared-", prefixed=True)
    added = "SCRAM-SHA-256=[iterations=8192,password=first],SCRAM-SHA-512=[password=second]"
    cluster.tool(CONFIGS, "--alter", "--add-config", added, *bob)
    described = cluster.tool(CONFIGS, "--describe", *bob)
    assert "'bob' are SCRAM-SHA-256=iterations=8192, SCRAM-SHA-512=iterations=4096" in described
    env = cluster.env(login)
    assert JAVA_CLIENT.read(cluster.bootstrap, written[:1], env=env)[written[0]] == in_order(RECORDS)
    cluster.tool(CONFIGS, "--alter", "--delete-config", "SCRAM-SHA-256", *bob)
    described = cluster.tool(CONFIGS, "--describe", *bob)
    assert "'bob' are SCRAM-SHA-512=iterations=4096" in described
    with pytest.raises(ProgramFailed, match="SaslAuthenticationException"):
        JAVA_CLIENT.read(cluster.bootstrap, written[:1], env=env)
    cluster.tool(CONFIGS, "--alter", "--delete-config", "SCRAM-SHA-512", *bob)
    assert "bob" not in cluster.tool(CONFIGS, "--describe", "--entity-type", "users")


def test_quotas_are_set_described_applied_and_removed(cluster: SecuredCluster) -> None:
    cluster.create("shared-throttled")
    ada = ("--entity-type", "users", "--entity-name", "ada")
    both = (*ada, "--entity-type", "clients", "--entity-default")
    cluster.tool(CONFIGS, "--alter", "--add-config", "producer_byte_rate=20000,consumer_byte_rate=9e9", *ada)
    cluster.tool(CONFIGS, "--alter", "--add-config", "request_percentage=150", *both)
    described = cluster.tool(CONFIGS, "--describe", *ada)
    assert re.search(r"'ada' are .*producer_byte_rate=20000(\.0)?\b", described), described
    assert "request_percentage=150" in cluster.tool(CONFIGS, "--describe", *both)
    # Ten seconds' worth may be sent at once; this is 15.
    load = (
        "--topic",
        "shared-throttled",
        "--num-records",
        "300",
        "--record-size",
        "1000",
        "--throughput",
        "-1",
    )
    said = cluster.tool("ProducerPerformance", *load, "--print-metrics", login=Login("ada"))
    (longest,) = re.findall(r"producer-metrics:produce-throttle-time-max:\S* *: *([\d.]+)", said)
    assert float(longest) > 0
    cluster.tool(CONFIGS, "--alter", "--delete-config", "producer_byte_rate,consumer_byte_rate", *ada)
    cluster.tool(CONFIGS, "--alter", "--delete-config", "request_percentage", *both)
    assert "byte_rate" not in cluster.tool(CONFIGS, "--describe", *ada)


def test_a_java_client_logs_in_again_before_its_session_ends(cluster: SecuredCluster) -> None:
    cluster.create("shared-sessions")
    slowly = ("--num-records", "200", "--throughput", "20", "--record-size", "100", "--print-metrics")
    said = cluster.tool(
        "ProducerPerformance", "--topic", "shared-sessions", *slowly, login=Login(PLAIN_USER, "PLAIN")
    )

    def metric(name: str) -> float:
        (value,) = re.findall(rf"producer-metrics:{name}:\S* *: *([\d.]+)", said)
        return float(value)

    assert "200 records sent" in said
    assert metric("successful-reauthentication-total") >= 2
    assert metric("failed-reauthentication-total") == 0
    assert metric("failed-authentication-total") == 0


def test_certificates_change_without_dropping_a_connection(cluster: SecuredCluster, tmp_path: Path) -> None:
    cluster.create("shared-reload", partitions=PARTITIONS)
    fresh, other = cluster.files / "fresh.pem", cluster.files / "other.pem"
    fresh.write_text(cluster.renewed_certificate())
    authority = trustme.CA.from_pem(cluster.authority.read_bytes(), (cluster.files / "ca.key").read_bytes())
    elsewhere = authority.issue_cert("elsewhere.example.org")
    elsewhere.private_key_and_cert_chain_pem.write_to_path(str(other))
    name = "listener.name.sasl_ssl.ssl.keystore.location"
    before = {number: _shown(port) for number, port in cluster.ports.items()}
    assert len(set(before.values())) == 1
    nonsense = tmp_path / "nonsense.pem"
    nonsense.write_text("no certificate\n")
    with pytest.raises(ProgramFailed, match=r"nonsense\.pem"):
        cluster.tool(CONFIGS, "--alter", "--add-config", f"{name}={nonsense}", *_broker(1))
    with pytest.raises(ProgramFailed, match="DistinguishedName does not match"):
        cluster.tool(CONFIGS, "--alter", "--add-config", f"{name}={other}", *_broker(1))
    with AtWork(cluster, "shared-reload") as client:
        client.send()
        for number in cluster.ports:
            cluster.tool(CONFIGS, "--alter", "--add-config", f"{name}={fresh}", *_broker(number))
            assert _shown(cluster.ports[number]) != before[number]
            assert f"{name}={fresh}" in cluster.tool(CONFIGS, "--describe", *_broker(number))
        client.send()
        assert client.connections() == dict.fromkeys(cluster.ports, (1, 0))
    FRANZ.write(cluster.bootstrap, "shared-reload", dataset(3), env=cluster.env(LOGINS[1]))


class AtWork:
    """A producer that writes to every partition when told to, and counts its connections."""

    def __init__(self, cluster: SecuredCluster, topic: str) -> None:
        self._topic = topic
        self._told: list[str] = []
        settings = {**cluster.librdkafka(LOGINS[0]), "statistics.interval.ms": 200}
        self._producer = Producer({**settings, "stats_cb": self._told.append})

    def __enter__(self) -> "AtWork":
        return self

    def __exit__(self, *error: object) -> None:
        self._producer.purge()

    def send(self) -> None:
        for partition in range(PARTITIONS):
            self._producer.produce(self._topic, b"at work", partition=partition)
        assert self._producer.flush(60) == 0

    def connections(self) -> dict[int, tuple[int, int]]:
        """How often each broker was connected to, and how often that connection was lost."""
        self._told.clear()
        until(lambda: self._producer.poll(0.1) or self._told, "statistics")
        brokers = json.loads(self._told[-1])["brokers"].values()
        return {
            each["nodeid"]: (each["connects"], each["disconnects"]) for each in brokers if each["nodeid"] > 0
        }


def _broker(number: int) -> tuple[str, ...]:
    return ("--entity-type", "brokers", "--entity-name", str(number))


def _shown(port: int) -> str:
    return ssl.get_server_certificate(("127.0.0.1", port), timeout=30)


def test_a_delegation_token_logs_in_for_its_owner_until_it_ends(
    cluster: SecuredCluster, written: list[str]
) -> None:
    features = cluster.tool("FeatureCommand", "describe")
    assert re.search(r"Feature: delegation\.token\.version\s.*FinalizedVersionLevel: 1\b", features), features
    ada = Login("ada")
    lasting = ("--max-life-time-period", "-1")
    made = _token(
        cluster.tool(
            "DelegationTokenCommand", "--create", *lasting, "--renewer-principal", "User:eve", login=ada
        )
    )
    assert made["owner"] == "User:ada"
    described = cluster.tool(
        "DelegationTokenCommand", "--describe", "--owner-principal", "User:ada", login=Login("eve")
    )
    assert _token(described)["id"] == made["id"]
    by_token = cluster.env(Login(made["id"], "SCRAM-SHA-256", made["hmac"], token=True))
    found = JAVA_CLIENT.read(cluster.bootstrap, written, env=by_token)
    assert all(found[topic] == in_order(RECORDS) for topic in written)
    hmac = ("--hmac", made["hmac"])
    renewed = cluster.tool(
        "DelegationTokenCommand", "--renew", "--renew-time-period", "-1", *hmac, login=Login("eve")
    )
    assert "Completed renew operation" in renewed
    with pytest.raises(
        ProgramFailed,
        match="UnsupportedByAuthenticationException",
    ):
        cluster.tool(
            "DelegationTokenCommand",
            "--create",
            *lasting,
            login=Login(made["id"], "SCRAM-SHA-512", made["hmac"], token=True),
        )
    cluster.tool("DelegationTokenCommand", "--expire", "--expiry-time-period", "-1", *hmac, login=ada)
    with pytest.raises(ProgramFailed, match="SaslAuthenticationException"):
        JAVA_CLIENT.read(cluster.bootstrap, written[:1], env=by_token)


def _token(said: str) -> dict[str, str]:
    """The one row of the tool's table."""
    (row,) = said[said.index("TOKENID") :].split("\n", 1)[1].strip().splitlines()
    return dict(zip(("id", "hmac", "owner"), row.split(), strict=False))
