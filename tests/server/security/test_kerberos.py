"""GSSAPI with a real key distribution centre: Debian's, in a directory of the test's own."""

import asyncio
import importlib.util
import os
import shutil
import socket
import subprocess
import threading

import aiokafka
import kafka
import pytest

from headrace.clock import SystemClock
from headrace.link.aio import AsyncConnection
from headrace.server.identity import StartError
from headrace.server.security.kerberos_rules import KerberosRules
from headrace.server.security.principal_rules import NoRule
from headrace.testing.wire import WireClient
from headrace.wire.errors import ErrorCode
from headrace.wire.messages.metadata import MetadataRequest
from headrace.wire.messages.sasl_authenticate import SaslAuthenticateRequest
from headrace.wire.messages.sasl_handshake import SaslHandshakeRequest
from tests.server.security.test_before_the_login import exactly, is_served
from tests.waiting import until

REALM = "HEADRACE.TEST"
HOST = "localhost"

if importlib.util.find_spec("gssapi") is None or shutil.which("krb5kdc", path="/usr/sbin:/usr/bin") is None:
    pytest.fail(
        "The tests of Kerberos need Debian's krb5-kdc, krb5-admin-server, krb5-user, libkrb5-dev and gcc: install them, "
        "then run make setup, which builds gssapi.",
        pytrace=False,
    )

from headrace.link.blocking import Connection  # noqa: E402
from headrace.link.kerberos import KerberosContext, client_exchange  # noqa: E402
from headrace.link.settings import KafkaSettings  # noqa: E402
from headrace.wire.errors import KafkaError  # noqa: E402


class Kdc:
    def __init__(self, directory):
        self.directory = directory
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        (directory / "krb5.conf").write_text(
            f"""[libdefaults]
 default_realm = {REALM}
 dns_lookup_kdc = false
 dns_canonicalize_hostname = false
 rdns = false
 udp_preference_limit = 1
 default_ccache_name = FILE:{directory}/ccache
[realms]
 {REALM} = {{
  kdc = 127.0.0.1:{self.port}
 }}
[domain_realm]
 localhost = {REALM}
"""
        )
        (directory / "kdc.conf").write_text(
            f"""[kdcdefaults]
 kdc_ports = {self.port}
 kdc_tcp_ports = {self.port}
[realms]
 {REALM} = {{
  database_name = {directory}/principal
  key_stash_file = {directory}/stash
  acl_file = {directory}/acl
 }}
"""
        )
        self.environment = {
            "KRB5_CONFIG": str(directory / "krb5.conf"),
            "KRB5_KDC_PROFILE": str(directory / "kdc.conf"),
            "KRB5RCACHEDIR": str(directory),
            "KRB5CCNAME": f"FILE:{directory}/ccache",
            "PATH": f"/usr/sbin:/usr/bin:{os.environ['PATH']}",
        }
        self.run("kdb5_util", "create", "-s", "-r", REALM, "-P", "master")
        for principal in (f"kafka/{HOST}", "alice", "bob"):
            self.run("kadmin.local", "-q", f"addprinc -randkey {principal}@{REALM}")
            self.run("kadmin.local", "-q", f"ktadd -k {self.keytab(principal)} {principal}@{REALM}")
        self.process = subprocess.Popen(
            ["/usr/sbin/krb5kdc", "-n", "-P", str(directory / "pid")],
            env={**os.environ, **self.environment},
            stderr=subprocess.DEVNULL,
        )
        until(self._listens, "the key distribution centre")

    def run(self, *command):
        environment = {**os.environ, **self.environment}
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=60, check=False
        )
        assert done.returncode == 0, done.stderr

    def keytab(self, principal):
        return str(self.directory / f"{principal.replace('/', '-')}.keytab")

    def _listens(self):
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0


@pytest.fixture(scope="module")
def kdc(tmp_path_factory):
    kdc = Kdc(tmp_path_factory.mktemp("kdc"))
    before = {name: os.environ.get(name) for name in kdc.environment}
    os.environ.update(kdc.environment)
    kdc.run("kinit", "-k", "-t", kdc.keytab("alice"), f"alice@{REALM}")
    yield kdc
    for name, value in before.items():
        os.environ.pop(name) if value is None else os.environ.update({name: value})
    kdc.process.terminate()
    kdc.process.wait()


def jaas(kdc, principal=f"kafka/{HOST}@{REALM}", keytab=None):
    return (
        "com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true storeKey=true "
        f'keyTab="{keytab or kdc.keytab(f"kafka/{HOST}")}" principal="{principal}";'
    )


def settings(kdc, **more):
    return {
        "listeners": f"PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://{HOST}:0",
        "sasl.enabled.mechanisms": "GSSAPI",
        "sasl.kerberos.service.name": "kafka",
        "listener.name.sasl_plaintext.gssapi.sasl.jaas.config": jaas(kdc),
        **more,
    }


@pytest.fixture
def broker(make_secured, kdc):
    return make_secured(settings(kdc))


def port(broker):
    return broker.node.addresses["SASL_PLAINTEXT"][1]


def settings_of_client(broker, **more):
    given = {
        "bootstrap.servers": f"{HOST}:{port(broker)}",
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.kerberos.service.name": "kafka",
        **more,
    }
    return KafkaSettings.of(given, "a test")


def connect(broker, **more):
    return Connection(HOST, port(broker), settings_of_client(broker, **more))


async def principals(node):
    return [each.principal for each in node.acceptors.connections if each.login is not None]


def test_our_own_connection_shows_the_ticket_of_the_cache_and_that_of_a_keytab(broker, kdc):
    with connect(broker) as connection:
        assert connection.call(MetadataRequest([])).brokers
        assert broker.run(principals) == ["User:alice"]
    login = jaas(kdc, f"bob@{REALM}", kdc.keytab("bob"))
    with connect(broker, **{"sasl.jaas.config": login}) as connection:
        assert connection.call(MetadataRequest([])).brokers
        assert "User:bob" in broker.run(principals)


def test_an_old_client_sends_its_tokens_bare_and_one_of_them_is_empty(broker):
    with WireClient(f"127.0.0.1:{port(broker)}") as client:
        assert client.call(SaslHandshakeRequest("GSSAPI"), 0).error_code == 0
        sent = []
        steps = client_exchange(settings_of_client(broker).login, HOST)
        message = next(steps)
        while True:
            sent.append(message)
            client.socket.sendall(len(message).to_bytes(4, "big") + message)
            try:
                message = steps.send(exactly(client.socket, int.from_bytes(exactly(client.socket, 4), "big")))
            except StopIteration:
                break
        assert b"" in sent
        assert is_served(client)
        client.socket.sendall(bytes(4))
        assert client.is_closed_by_broker(), "requests are never empty"


async def test_a_connection_on_a_loop_asks_for_its_ticket_in_a_thread(broker, monkeypatch):
    stepped_in = []

    def step(context, token):
        stepped_in.append(threading.get_ident())
        return real(context, token)

    real = KerberosContext.step
    monkeypatch.setattr(KerberosContext, "step", step)
    given = settings_of_client(broker)
    connection = await AsyncConnection.connect(HOST, port(broker), b"test", SystemClock(), 60, settings=given)
    assert (await connection.call(MetadataRequest([]), 9)).brokers
    connection.close()
    assert stepped_in
    assert threading.get_ident() not in stepped_in


def test_kafka_python_and_aiokafka_show_their_tickets(broker):
    given = {
        "bootstrap_servers": f"{HOST}:{port(broker)}",
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "GSSAPI",
        "sasl_kerberos_service_name": "kafka",
    }
    topic = broker.create_topic()
    producer = kafka.KafkaProducer(**given)
    producer.send(topic, b"hello").get(60)
    producer.close()

    async def produce():
        async with aiokafka.AIOKafkaProducer(**given, sasl_kerberos_domain_name=HOST) as producer:
            await producer.send_and_wait(topic, b"hello")

    asyncio.run(produce())


def test_a_ticket_for_another_service_and_junk_are_refused(broker, kdc, caplog):
    with pytest.raises(KafkaError, match=r"Server .* not found in Kerberos database"):
        connect(broker, **{"sasl.kerberos.service.name": "other"})
    with WireClient(f"127.0.0.1:{port(broker)}") as client:
        client.call(SaslHandshakeRequest("GSSAPI"), 1)
        reply = client.call(SaslAuthenticateRequest(b"\x60junk"), 2)
        assert reply.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
        assert reply.error_message == (
            "Authentication failed during authentication due to invalid credentials with SASL mechanism GSSAPI"
        )
    assert "Kerberos says:" in caplog.text


def test_principals_become_users_by_rules(make_secured, kdc):
    rules = "RULE:[1:$1](a.*)s/^a/A-/,RULE:[2:$1/$2](x.*),DEFAULT"
    broker = make_secured(settings(kdc, **{"sasl.kerberos.principal.to.local.rules": rules}))
    with connect(broker):
        assert broker.run(principals) == ["User:A-lice"]


@pytest.mark.parametrize(
    ("rule", "principal", "name"),
    [
        ("DEFAULT", f"alice@{REALM}", "alice"),
        ("DEFAULT", f"kafka/host@{REALM}", "kafka"),
        ("DEFAULT", "alice@OTHER", None),
        ("RULE:[1:$1@$0](.*@OTHER)s/@.*//", "alice@OTHER", "alice"),
        ("RULE:[1:$1@$0](.*@OTHER)s/@.*//", f"alice@{REALM}", None),
        ("RULE:[2:$1-$2](.*)", "nn/host@ANY", "nn-host"),
        ("RULE:[1:$1]/U", "alice@ANY", "ALICE"),
        ("RULE:[1:$1]/L", "ALICE@ANY", "alice"),
        ("RULE:[1:$1]s/a/b/g", "banana@ANY", "bbnbnb"),
        ("RULE:[1:$1@$0]", "alice@ANY", None),
    ],
)
def test_a_rule_does_what_kafkas_does(rule, principal, name):
    rules = KerberosRules.of([rule], REALM)
    if name is None:
        with pytest.raises(NoRule):
            rules.short_name(principal)
    else:
        assert rules.short_name(principal) == name


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        ({"listener.name.sasl_plaintext.gssapi.sasl.jaas.config": ""}, "offers GSSAPI but has no keytab"),
        ({"sasl.kerberos.service.name": "other"}, "is other, but the principal is kafka/localhost"),
        ({"sasl.kerberos.principal.to.local.rules": "WHAT"}, "'WHAT' is no rule; write DEFAULT or RULE"),
    ],
)
def test_a_broker_that_could_open_no_ticket_does_not_start(make_secured, kdc, more, sentence):
    with pytest.raises(StartError, match=sentence):
        make_secured(settings(kdc, **more))


def test_a_keytab_that_is_not_there_or_not_the_brokers_is_named(make_secured, kdc):
    name = "listener.name.sasl_plaintext.gssapi.sasl.jaas.config"
    with pytest.raises(StartError, match="the keytab /nowhere is not there"):
        make_secured(settings(kdc, **{name: jaas(kdc, keytab="/nowhere")}))
    with pytest.raises(StartError, match=r"has no key for kafka/localhost@HEADRACE\.TEST"):
        make_secured(settings(kdc, **{name: jaas(kdc, keytab=kdc.keytab("bob"))}))
