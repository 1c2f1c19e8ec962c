"""A secured cluster of three as `headrace init` and `headrace up --brokers 3` make it, and how each program logs in to it."""

import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from bench.processes import Watched, free_ports
from bench.provision import java, run
from interop.kafka.programs import finish
from tests.waiting import until

SIZE = 3
ADMIN = "admin"
PASSWORD = "wonder land"  # a blank must survive every way a password takes
PLAIN_USER = "pat"
"""PLAIN's users stand in the brokers' settings, SCRAM's in the metadata."""
_MODULES = "org.apache.kafka.common.security"


@dataclass(frozen=True, slots=True)
class Login:
    """Who logs in, and how; `token` when user and password are a delegation token's id and HMAC."""

    user: str
    mechanism: str = "SCRAM-SHA-512"
    password: str = PASSWORD
    token: bool = False

    def jaas(self) -> str:
        module = "plain.PlainLoginModule" if self.mechanism == "PLAIN" else "scram.ScramLoginModule"
        token = ' tokenauth="true"' if self.token else ""
        return f'{_MODULES}.{module} required username="{self.user}" password="{self.password}"{token};'


class SecuredCluster:
    """Clients and brokers use one SASL_SSL listener; an authorizer asks for every permission."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.files = home / "conf"
        self.authority = self.files / "ca.pem"
        first = free_ports(SIZE)
        self.ports = {number: first + number - 1 for number in range(1, SIZE + 1)}
        self.bootstrap = ",".join(f"127.0.0.1:{port}" for port in self.ports.values())
        self._headrace("init", "--admin", ADMIN, "--password-file", "-", "--listen", f"127.0.0.1:{first}",
                       "--data", str(home / "data"), "--files", str(self.files), stdin=PASSWORD + "\n")  # fmt: skip
        config = self.files / "server.properties"
        config.write_text(_with(config.read_text(), _MORE_SETTINGS))
        command = [_program(), "up", "--brokers", str(SIZE), "--config", str(config)]
        self.process = Watched(command, home / "brokers.out")

    def await_ready(self) -> None:
        def ready() -> bool:
            self.process.check()
            return "is ready: brokers 1 to 3" in self.process.log.read_text()

        until(ready, "the brokers are ready", 120)

    def librdkafka(self, login: Login) -> dict[str, str | int | float | bool]:
        return {
            "bootstrap.servers": self.bootstrap,
            "security.protocol": "SASL_SSL",
            "ssl.ca.location": str(self.authority),
            "sasl.mechanism": login.mechanism,
            "sasl.username": login.user,
            "sasl.password": login.password,
        }

    def settings(self, login: Login) -> dict[str, str]:
        """As a Java client writes them, bootstrap addresses left out."""
        return {
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": login.mechanism,
            "sasl.jaas.config": login.jaas(),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.authority),
        }

    def properties(self, login: Login) -> Path:
        file = self.files / f"client-{abs(hash(login))}.properties"
        file.write_text("".join(f"{name}={value}\n" for name, value in self.settings(login).items()))
        return file

    def env(self, login: Login) -> dict[str, str]:
        """What the Java program and those in Go read."""
        return {
            "CLIENT_PROPERTIES": str(self.properties(login)),
            "TLS_CA": str(self.authority),
            "SASL_MECHANISM": login.mechanism,
            "SASL_USER": login.user,
            "SASL_PASSWORD": login.password,
        }

    def renewed_certificate(self) -> str:
        """The brokers' certificate issued again by its authority, with its key, as PEM."""
        broker, asked = str(self.files / "broker.pem"), str(self.files / "broker.csr")
        same_names = ("-copy_extensions", "copyall")
        run(["openssl", "x509", "-x509toreq", "-in", broker, "-signkey", broker, *same_names, "-out", asked])
        signed = ["-CA", str(self.authority), "-CAkey", str(self.files / "ca.key"), "-days", "2", *same_names]
        renewed = run(["openssl", "x509", "-req", "-in", asked, *signed])
        text = Path(broker).read_text()
        key = text[: text.index("-----BEGIN CERTIFICATE-----")]
        return key + renewed[renewed.index("-----BEGIN CERTIFICATE-----") :]

    def tool(self, name: str, *arguments: str, login: Login | None = None) -> str:
        """Runs one of Kafka's tools, as the administrator unless told otherwise."""
        main = name if name.startswith("kafka.") else f"org.apache.kafka.tools.{name}"
        secured = ["--bootstrap-server", self.bootstrap, "--command-config"]
        command = [*java(main), *secured, str(self.properties(login or Login(ADMIN))), *arguments]
        return finish(command, limit=120)

    def add_user(self, user: str) -> None:
        """With both SCRAM mechanisms, by Kafka's own tool."""
        both = f"SCRAM-SHA-256=[password={PASSWORD}],SCRAM-SHA-512=[password={PASSWORD}]"
        entity = ("--entity-type", "users", "--entity-name", user)
        self.tool("kafka.admin.ConfigCommand", "--alter", "--add-config", both, *entity)

    def allow(self, user: str, *what: str, prefixed: bool = False) -> None:
        """An ACL, in the words of Kafka's own tool."""
        pattern = ("--resource-pattern-type", "prefixed") if prefixed else ()
        self.tool("AclCommand", "--add", "--allow-principal", f"User:{user}", *what, *pattern)

    def create(self, *topics: str, partitions: int = 1) -> None:
        """Topics with three replicas, known to every broker when this returns."""
        wanted = [NewTopic(topic, partitions, SIZE, config={"retention.ms": "-1"}) for topic in topics]
        admin = AdminClient(self.librdkafka(Login(ADMIN)))
        for done in admin.create_topics(wanted, operation_timeout=60).values():
            done.result()
        for port in self.ports.values():
            here = AdminClient({**self.librdkafka(Login(ADMIN)), "bootstrap.servers": f"127.0.0.1:{port}"})
            until(lambda here=here: _led(here, topics, partitions), f"port {port} knows {topics}", 60)

    def _headrace(self, *arguments: str, stdin: str) -> None:
        command = [_program(), *arguments]
        subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=60, check=True)


_MORE_SETTINGS = {
    "sasl.enabled.mechanisms": "SCRAM-SHA-256,SCRAM-SHA-512,PLAIN",
    "listener.name.sasl_ssl.plain.sasl.jaas.config": (
        f'{_MODULES}.plain.PlainLoginModule required user_{PLAIN_USER}="{PASSWORD}";'
    ),
    # The sessions of PLAIN end while its clients are at work.
    "listener.name.sasl_ssl.plain.connections.max.reauth.ms": "3000",
    "delegation.token.secret.key": "the same on all three brokers",
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "1",
}


def _with(text: str, settings: Mapping[str, str]) -> str:
    """A settings file's text with these in place of those of the same names."""
    kept = [line for line in text.splitlines() if line.partition("=")[0] not in settings]
    return "\n".join([*kept, *(f"{name}={value}" for name, value in settings.items())]) + "\n"


def _led(admin: AdminClient, topics: tuple[str, ...], partitions: int) -> bool:
    known = admin.list_topics(timeout=10).topics
    return all(
        topic in known and sum(each.leader >= 0 for each in known[topic].partitions.values()) == partitions
        for topic in topics
    )


def _program() -> str:
    return str(Path(sys.executable).with_name("headrace"))
