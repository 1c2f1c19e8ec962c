"""How connections get in: the principal of a certificate, the gate of a SASL listener, several listeners at once, and turns."""

import asyncio
import socket
import ssl
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta

import pytest
import uvloop

from headrace.clock import SystemClock
from headrace.link.aio import AsyncConnection
from headrace.link.blocking import Connection
from headrace.link.errors import BrokerUnavailable
from headrace.link.settings import KafkaSettings
from headrace.server.config.broker import BrokerConfig
from headrace.server.config.listeners import Listener
from headrace.server.net.acceptors import Acceptors, ServingLimits
from headrace.server.net.admission import Admission, ConnectionLimits
from headrace.server.quotas.addresses import AddressRates
from headrace.server.quotas.arithmetic import Window
from headrace.server.replica.turn import Turn
from headrace.server.security.live_tls import LiveTls
from headrace.testing.broker import BrokerThread
from headrace.wire.messages.metadata import MetadataRequest
from tests.certificates import Certificates
from tests.waiting import until


@pytest.fixture(scope="module")
def certificates(tmp_path_factory):
    return Certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def alice(certificates):
    return certificates.issue("alice")


def settings(certificates, pair=None, **more):
    options = {
        "bootstrap.servers": "localhost:1",
        "security.protocol": "SSL",
        "ssl.truststore.location": str(certificates.ca),
        **({"ssl.keystore.location": str(pair)} if pair is not None else {}),
        **{name.replace("_", "."): str(value) for name, value in more.items()},
    }
    return KafkaSettings.of(options, "a test")


def principals(broker):
    async def found(node):
        return {connection.principal for connection in node.acceptors.connections}

    return broker.run(found)


@pytest.mark.parametrize(
    ("more", "principal"),
    [
        ({"ssl_client_auth": "required"}, "User:O=trustme v"),
        (
            {"ssl_client_auth": "requested", "ssl_principal_mapping_rules": "RULE:^.*CN=([^,]+).*$/$1/U"},
            "User:ALICE",
        ),
        ({"ssl_client_auth": "none"}, "User:ANONYMOUS"),
    ],
)
def test_the_principal_is_the_certificates(certificates, alice, tmp_path, more, principal):
    with BrokerThread(tmp_path, certificates.listener(**more)) as broker:
        with Connection("localhost", broker.port, settings(certificates, alice)) as connection:
            connection.call(MetadataRequest())
            (found,) = principals(broker)
        if principal == "User:O=trustme v":
            assert found.startswith("User:CN=alice,OU=")
            assert ",O=trustme v" in found
        else:
            assert found == principal


def test_a_client_without_a_certificate_is_anonymous_where_it_is_only_requested(certificates, tmp_path):
    with (
        BrokerThread(tmp_path, certificates.listener(ssl_client_auth="requested")) as broker,
        Connection("localhost", broker.port, settings(certificates)) as connection,
    ):
        connection.call(MetadataRequest())
        assert principals(broker) == {"User:ANONYMOUS"}


def test_a_name_that_no_rule_fits_is_refused(certificates, alice, tmp_path, caplog):
    rules = certificates.listener(
        ssl_client_auth="required", ssl_principal_mapping_rules="RULE:^CN=bob$/bob/"
    )
    with BrokerThread(tmp_path, rules) as broker:
        with pytest.raises(BrokerUnavailable):
            Connection("localhost", broker.port, settings(certificates, alice))
        until(
            lambda: (
                "no rule of ssl.principal.mapping.rules (RULE:^CN=bob$/bob/) applies to CN=alice"
                in caplog.text
            )
        )


def test_several_listeners_each_with_settings_of_its_own(certificates, alice, tmp_path):
    given = {
        "listeners": "PLAIN://localhost:0,PUBLIC://localhost:0,PRIVATE://localhost:0",
        "listener.security.protocol.map": "PLAIN:PLAINTEXT,PUBLIC:SSL,PRIVATE:SSL",
        "inter.broker.listener.name": "PLAIN",
        "ssl.keystore.location": str(certificates.broker),
        "listener.name.private.ssl.client.auth": "required",
        "listener.name.private.ssl.truststore.location": str(certificates.ca),
        "listener.name.private.ssl.keystore.location": str(certificates.issue("private", "localhost")),
        "listener.name.public.ssl.enabled.protocols": "TLSv1.2",
    }
    with BrokerThread(tmp_path, given) as broker:
        seen = {}
        for name in ("PUBLIC", "PRIVATE"):
            port = broker.node.addresses[name][1]
            context = ssl.create_default_context(cafile=certificates.ca)
            context.load_cert_chain(alice)
            with (
                socket.create_connection(("localhost", port)) as plain,
                context.wrap_socket(plain, server_hostname="localhost") as secure,
            ):
                subject = dict(pair for part in secure.getpeercert()["subject"] for pair in part)
                seen[name] = subject["commonName"], secure.version()
            with Connection("localhost", port, settings(certificates, alice)) as connection:
                assert connection.call(MetadataRequest()).brokers[0].port == port
        assert seen == {"PUBLIC": ("broker", "TLSv1.2"), "PRIVATE": ("private", "TLSv1.3")}


def test_sessions_are_resumed(certificates, tmp_path):
    with BrokerThread(tmp_path, certificates.listener()) as broker:
        for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
            context = ssl.create_default_context(cafile=certificates.ca)
            context.minimum_version = context.maximum_version = version
            session = None
            for resumed in (False, True):
                with (
                    socket.create_connection(("localhost", broker.port)) as plain,
                    context.wrap_socket(plain, server_hostname="localhost", session=session) as secure,
                ):
                    secure.sendall(bytes.fromhex("0000000a00120000000000010000"))
                    assert secure.recv(4)  # With TLS 1.3 the ticket comes before the first reply.
                    assert secure.session_reused is resumed
                    session = secure.session


@contextmanager
def resuming(broker, context, session=None):
    """A connection that ends as it should: OpenSSL does not resume a session that did not."""
    with (
        socket.create_connection(("localhost", broker.port)) as plain,
        context.wrap_socket(plain, server_hostname="localhost", session=session) as secure,
    ):
        yield secure
        with suppress(OSError):
            secure.unwrap()


def enter(broker, context, session=None):
    """Whether the broker served a connection, the session it ended with and whether that was resumed."""
    with resuming(broker, context, session) as secure:
        secure.sendall(bytes.fromhex("0000000a00120000000000010000"))
        return bool(secure.recv(1000)), secure.session, secure.session_reused


def with_certificate(certificates, path, version):
    context = ssl.create_default_context(cafile=certificates.ca)
    context.minimum_version = context.maximum_version = version
    context.load_cert_chain(path)
    return context


def test_a_resumed_session_keeps_its_principal_and_ends_with_its_certificate(certificates, tmp_path, caplog):
    """TLS 1.2 resumes what the broker remembers, with no ticket."""
    ends = datetime.now(UTC) + timedelta(days=1)
    ada = certificates.issue("ada", not_after=ends)
    settings = certificates.listener(ssl_client_auth="required", connections_max_idle_ms=10**9)
    with BrokerThread(tmp_path, settings) as broker:
        context = with_certificate(certificates, ada, ssl.TLSVersion.TLSv1_2)
        _, session, _ = enter(broker, context)
        until(lambda: not broker.node.acceptors.connections)
        with resuming(broker, context, session) as secure:
            until(lambda: any(each.startswith("User:CN=ada,") for each in principals(broker)))
            assert secure.session_reused
            broker.clock.advance(2 * 24 * 3600)
        assert enter(broker, context, session)[::2] == (False, True)
        until(lambda: "the client's certificate has expired: renew it" in caplog.text)
        # A session for the renewed certificate is another one.
        certificates.issue("ada")
        assert enter(broker, with_certificate(certificates, ada, ssl.TLSVersion.TLSv1_2))[0]


def test_a_listener_that_asks_for_certificates_gives_no_tickets(certificates, alice, tmp_path):
    """With TLS 1.3 every connection shows its certificate, which OpenSSL then looks at as a whole chain."""
    with BrokerThread(tmp_path, certificates.listener(ssl_client_auth="requested")) as broker:
        context = with_certificate(certificates, alice, ssl.TLSVersion.TLSv1_3)
        _, session, _ = enter(broker, context)
        assert enter(broker, context, session)[::2] == (True, False)


class Broken:
    def build(self, context):
        raise KeyError("a mistake")


class Nobody:
    def build(self, context):
        return None


@pytest.mark.parametrize("builder", ["Broken", "Nobody"])
@pytest.mark.parametrize("protocol", ["PLAINTEXT", "SSL"])
def test_a_builder_that_fails_lets_nobody_in(certificates, tmp_path, protocol, builder, caplog):
    given = certificates.listener() | {
        "listeners": f"{protocol}://localhost:0",
        "principal.builder.class": f"{__name__}.{builder}",
    }
    with BrokerThread(tmp_path, given) as broker, pytest.raises(BrokerUnavailable):
        Connection("localhost", broker.port, settings(certificates, security_protocol=protocol))
    assert (
        "a mistake" in caplog.text
        if builder == "Broken"
        else "built None, which is no principal" in caplog.text
    )


class Echo:
    """Serves each frame by sending it back, with the principal in front."""

    turn = Turn()

    def dispatch(self, connection, frame):
        answer = f"{connection.principal} ".encode() + bytes(frame)
        connection.replies.send(len(answer).to_bytes(4, "big") + answer)


class Door:
    """A gate as SASL has one: the first frame must be the word."""

    def __init__(self, dispatch):
        self.certificates = []
        self._dispatch = dispatch

    def admit(self, connection):
        self.certificates.append(connection.peer_certificate)
        most = connection.max_frame
        connection.max_frame = 10

        def ask(connection, frame):
            if bytes(frame) != b"sesame":
                connection.transport.close()
                connection.mute()
                return
            connection.identify("User:ali")
            connection.serve, connection.max_frame = self._dispatch, most
            connection.replies.send(b"\0\0\0\2ok")

        connection.serve = ask


@pytest.mark.parametrize("protocol", ["SASL_PLAINTEXT", "SASL_SSL"])
def test_a_gate_sees_each_connection_once_it_is_up_and_before_it_is_served(certificates, protocol):
    async def run():
        listener, echo = Listener("X", "localhost", 0, protocol), Echo()
        disk = ThreadPoolExecutor(1)
        limits = ServingLimits(max_request_bytes=1000, max_idle_ms=60_000, buffer_bytes=1 << 20, backlog=10)
        acceptors = Acceptors(
            Echo(), limits, Admission(ConnectionLimits(), AddressRates(Window(11, 1000))), SystemClock(), disk
        )
        config = BrokerConfig.load(
            certificates.listener()
            | {"listeners": "X://localhost:0", "listener.security.protocol.map": "X:SSL"}
        )
        door, bound = Door(echo.dispatch), socket.create_server(("127.0.0.1", 0))
        await acceptors.listen(
            listener, bound, tls=LiveTls(config).of("X") if listener.encrypted else None, gate=door
        )
        context = ssl.create_default_context(cafile=certificates.ca) if listener.encrypted else None
        for word, answer in ((b"sesame", b"\0\0\0\2ok\0\0\0\rUser:ali "), (b"please", b"")):
            reader, writer = await asyncio.open_connection(
                "localhost",
                bound.getsockname()[1],
                ssl=context,
                **({"server_hostname": "localhost"} if context else {}),
            )
            writer.write(len(word).to_bytes(4, "big") + word)
            writer.write(b"\0\0\0\4more")
            found = await reader.read(100)
            while answer and len(found) < len(answer) + 4:
                found += await reader.read(100)
            assert found == (answer + b"more" if answer else b"")
            writer.close()
        assert door.certificates == [None, None]
        await acceptors.close()
        disk.shutdown()

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(run())


def test_a_connection_on_the_loop_is_encrypted_and_says_what_is_wrong(certificates, alice, tmp_path):
    async def call(port, given):
        connection = await AsyncConnection.connect(
            "localhost", port, b"me", SystemClock(), 60, settings=given
        )
        try:
            return (await connection.call(MetadataRequest(), 12)).brokers[0].port
        finally:
            connection.close()

    def run(port, given):
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            return runner.run(call(port, given))

    with BrokerThread(tmp_path, certificates.listener(ssl_client_auth="required")) as broker:
        assert run(broker.port, settings(certificates, alice)) == broker.port
        other = Certificates(tmp_path / "other")
        with pytest.raises(BrokerUnavailable, match=r"is not trusted .* set ssl\.truststore\.location"):
            run(broker.port, settings(other, alice))
        with pytest.raises(BrokerUnavailable):
            run(broker.port, settings(certificates))


def test_handshakes_wait_for_their_turn(certificates, tmp_path):
    given = certificates.listener() | {"max.connection.creation.rate": "1"}
    with BrokerThread(tmp_path, given) as broker:
        first = socket.create_connection(("localhost", broker.port))
        second = socket.create_connection(("localhost", broker.port))
        until(lambda: len(broker.node.acceptors.connections) == 2)
        context = ssl.create_default_context(cafile=certificates.ca)
        with context.wrap_socket(first, server_hostname="localhost"):
            second.settimeout(60)
            broker.clock.advance(5)
            with context.wrap_socket(second, server_hostname="localhost") as secure:
                assert secure.version() == "TLSv1.3"
