"""What goes wrong between a client and a TLS port: the client is let go, and the log has one sentence with the cause and the remedy."""

import datetime
import socket
import ssl

import pytest
import trustme

from headrace.server.config.broker import BrokerConfig
from headrace.server.identity import StartError
from headrace.server.net import entrance
from headrace.server.security.exposure import exposure
from headrace.testing.broker import BrokerThread
from tests.certificates import Certificates
from tests.waiting import until


@pytest.fixture(scope="module")
def certificates(tmp_path_factory):
    return Certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def broker(certificates, tmp_path_factory):
    settings = certificates.listener(ssl_client_auth="required") | {
        "listeners": "SSL://localhost:0,PLAINTEXT://localhost:0"
    }
    with BrokerThread(tmp_path_factory.mktemp("data"), settings) as running:
        yield running


@pytest.fixture
def log(broker, caplog):
    async def forget(node):
        node.acceptors.refusals._said.clear()

    broker.run(forget)
    return caplog


def connect(broker, context, data=b""):
    """What the broker answers to a client that speaks TLS with this context: b"" when it ends the connection."""
    with (
        socket.create_connection(("localhost", broker.port)) as plain,
        context.wrap_socket(plain, server_hostname="localhost") as secure,
    ):
        if data:
            secure.sendall(data)
        return secure.recv(1)


def client(certificates, pair=None):
    context = ssl.create_default_context(cafile=certificates.ca)
    if pair is not None:
        context.load_cert_chain(pair)
    return context


def refused(broker, context):
    try:
        assert connect(broker, context) == b""
    except (ssl.SSLError, ConnectionError):
        pass


def test_a_client_without_a_certificate(broker, certificates, log):
    refused(broker, client(certificates))
    until(lambda: "showed no certificate, and listener SSL has ssl.client.auth=required" in log.text)
    assert "give the client a key store (ssl.keystore.location)" in log.text


def test_a_certificate_of_an_unknown_authority(broker, certificates, log):
    refused(broker, client(certificates, certificates.issue("stranger", authority=trustme.CA())))
    until(lambda: "certificate is signed by an authority that is not trusted: sign it by" in log.text)


def days(count):
    return datetime.datetime.now(datetime.UTC) + datetime.timedelta(days=count)


def test_a_certificate_that_has_expired(broker, certificates, log):
    refused(broker, client(certificates, certificates.issue("old", not_before=days(-9), not_after=days(-1))))
    until(lambda: "the client's certificate has expired: renew it, or check the clocks" in log.text)


def test_a_certificate_that_expires_while_its_connection_is_open(broker, certificates, log):
    """As in Kafka, the connection goes on, and the next one is refused."""
    for lifetime in (4, 16, 64):  # A slow machine may need more than a few seconds to connect.
        ends = datetime.datetime.now(datetime.UTC) + datetime.timedelta(seconds=lifetime)
        context = client(certificates, certificates.issue("brief", not_after=ends))
        plain = socket.create_connection(("localhost", broker.port))
        secure = context.wrap_socket(plain, server_hostname="localhost")
        if served(secure):
            break
    with secure:
        until(lambda: not connects(broker, context), "the certificate has expired")
        until(lambda: "the client's certificate has expired" in log.text)
        assert served(secure)


def served(secure):
    """Whether a request is answered."""
    try:
        secure.sendall(bytes.fromhex("0000000a00120000000000010000"))
        length = secure.recv(4)
        return bool(length) and bool(secure.recv(int.from_bytes(length)))
    except (ssl.SSLError, ConnectionError):
        return False


def connects(broker, context):
    with (
        socket.create_connection(("localhost", broker.port)) as plain,
        context.wrap_socket(plain, server_hostname="localhost") as secure,
    ):
        return served(secure)


def test_a_certificate_that_is_not_valid_yet(broker, certificates, log):
    refused(broker, client(certificates, certificates.issue("early", not_before=days(5), not_after=days(9))))
    until(lambda: "the client's certificate is not valid yet: check the clocks of both machines" in log.text)


def test_a_client_that_does_not_trust_the_broker(broker, certificates, log):
    with pytest.raises(ssl.SSLCertVerificationError):
        connect(broker, ssl.create_default_context())
    until(lambda: "does not accept this broker's certificate (unknown authority)" in log.text)


def test_a_client_of_an_old_version(broker, certificates, log):
    old = client(certificates)
    old.set_ciphers("ALL:@SECLEVEL=0")
    old.minimum_version = old.maximum_version = ssl.TLSVersion.TLSv1_1
    refused(broker, old)
    until(lambda: "have no version of TLS in common; TLSv1.2 to TLSv1.3 is spoken here" in log.text)


def test_a_client_with_other_ciphers(broker, certificates, log):
    other = client(certificates)
    other.maximum_version = ssl.TLSVersion.TLSv1_2
    other.set_ciphers("ECDHE-RSA-AES128-SHA")  # The broker's key is an EC one.
    refused(broker, other)
    until(lambda: "have no cipher suite in common that fits the broker's certificate" in log.text)


def test_a_plaintext_client_on_a_tls_port(broker, log):
    with socket.create_connection(("localhost", broker.port)) as plain:
        plain.sendall(b"\0\0\0\x0f\0\x12\0\x03\0\0\0\x01\0\4test\0")
        plain.settimeout(60)
        assert plain.recv(100) in (b"", b"\x15\x03\x01\0\x02\x02\x46")  # nothing, or an alert
    until(
        lambda: "spoke plain text on listener SSL, which expects TLS; set security.protocol=SSL" in log.text
    )


def test_a_tls_client_on_a_plaintext_port(broker, certificates, log):
    port = broker.node.addresses["PLAINTEXT"][1]
    with (
        socket.create_connection(("localhost", port)) as plain,
        pytest.raises((ssl.SSLError, ConnectionError)),
    ):
        client(certificates).wrap_socket(plain, server_hostname="localhost")
    until(lambda: "it spoke TLS to a plaintext listener; set security.protocol=PLAINTEXT" in log.text)


def test_a_client_that_comes_again_and_again_does_not_fill_the_log(broker, certificates, log):
    for _ in range(5):
        refused(broker, client(certificates))
    until(lambda: "showed no certificate" in log.text)
    assert log.text.count("showed no certificate") == 1
    broker.clock.advance(61)
    refused(broker, client(certificates))
    until(
        lambda: (
            "showed no certificate" in log.text and "(4 more times since it was last reported)" in log.text
        )
    )


def test_a_port_check_is_not_worth_a_word(broker, log):
    socket.create_connection(("localhost", broker.port)).close()
    until(lambda: not broker.node.acceptors.connections)
    assert not log.text


def test_a_client_that_does_not_finish_its_handshake_is_let_go(broker, log):
    with socket.create_connection(("localhost", broker.port)) as slow:
        slow.sendall(b"\x16\x03\x01")
        until(lambda: broker.node.acceptors.connections)
        broker.clock.advance(entrance.HANDSHAKE_SECONDS + 1)
        slow.settimeout(60)
        try:
            assert slow.recv(1) == b""
        except ConnectionResetError:
            pass
    until(lambda: "its TLS handshake was not done within 30 s" in log.text)


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"listeners": "SSL://localhost:0"}, "needs a certificate: set ssl.keystore.location"),
        (
            {"ssl.client.auth": "required", "ssl.truststore.location": ""},
            "has ssl.client.auth=required and no truststore",
        ),
        ({"ssl.principal.mapping.rules": "RULE:"}, "ssl.principal.mapping.rules: 'RULE:' is no rule"),
        (
            {"listeners": "A://localhost:0,B://localhost:0", "listener.security.protocol.map": "A:SSL,B:SSL"},
            "set inter.broker.listener.name to one of them",
        ),
    ],
)
def test_a_broker_that_would_be_open_or_of_no_use_does_not_start(tmp_path, certificates, settings, sentence):
    given = {} if sentence.startswith("needs") else certificates.listener()
    with pytest.raises((StartError, ValueError), match=sentence.replace(".", r"\.")):
        BrokerThread(tmp_path, given | settings).start()


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"listeners": "PLAINTEXT://127.0.0.1:9092"}, ""),
        ({"listeners": "PLAINTEXT://localhost:9092"}, ""),
        ({"listeners": "PLAINTEXT://:9092"}, "listener PLAINTEXT is open to everyone"),
        ({"listeners": "PLAINTEXT://[::1]:9092,SSL://0.0.0.0:9093"}, "listener SSL is open to everyone"),
        ({"listeners": "PLAINTEXT://:9092,SSL://:9093"}, "listeners PLAINTEXT and SSL are open to everyone"),
        ({"listeners": "SSL://:9093", "listener.name.ssl.ssl.client.auth": "required"}, ""),
    ],
)
def test_the_ready_line_names_what_is_open(settings, said):
    found = exposure(BrokerConfig.load(settings))
    assert said in found
    assert bool(said) == bool(found)
