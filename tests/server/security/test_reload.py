"""Certificates that change while the broker runs: new connections get the new one, open ones go on."""

import os
import re
import socket
import ssl
from datetime import UTC, datetime, timedelta

import pytest

from headrace.link.blocking import Connection
from headrace.link.certificates import MalformedCertificate
from headrace.link.settings import KafkaSettings
from headrace.server.config.broker import BrokerConfig
from headrace.server.security import live_tls, server_tls
from headrace.server.security.live_tls import LiveTls
from headrace.testing.broker import BrokerThread
from headrace.wire.errors import ErrorCode
from headrace.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from headrace.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from headrace.wire.messages.metadata import MetadataRequest
from tests.certificates import Certificates
from tests.waiting import until


@pytest.fixture
def certificates(tmp_path):
    return Certificates(tmp_path / "certificates")


@pytest.fixture
def broker(certificates, tmp_path, monkeypatch):
    monkeypatch.setattr(live_tls, "LOOK_SECONDS", 0.05)
    with BrokerThread(tmp_path / "data", certificates.listener()) as running:
        yield running


def link(broker, certificates):
    options = {
        "bootstrap.servers": f"localhost:{broker.port}",
        "security.protocol": "SSL",
        "ssl.truststore.location": str(certificates.ca),
    }
    return Connection("localhost", broker.port, KafkaSettings.of(options, "a test"))


def shown(broker, certificates) -> str:
    """The serial number of the certificate that a new connection sees."""
    context = ssl.create_default_context(cafile=certificates.ca)
    with (
        socket.create_connection(("localhost", broker.port)) as plain,
        context.wrap_socket(plain, server_hostname="localhost") as secure,
    ):
        return secure.getpeercert()["serialNumber"]


def renewed(certificates, name="broker", *more):
    """Another certificate for the same host, and its serial number."""
    path = certificates.issue(name, "localhost", "127.0.0.1", *more, file="renewed")
    return path, serial(path)


def serial(path):
    return ssl._ssl._test_decode_cert(str(path))["serialNumber"]


def replace(old, new):
    os.replace(new, old)


def alter(connection, **settings):
    configs = [AlterableConfig(name, 0, str(value)) for name, value in settings.items()]
    request = IncrementalAlterConfigsRequest([AlterConfigsResource(4, "1", configs)])
    return connection.call(request).responses[0]


def test_a_new_file_is_used_without_a_restart_and_open_connections_stay(broker, certificates):
    with link(broker, certificates) as before:
        fresh, number = renewed(certificates)
        replace(certificates.broker, fresh)
        until(lambda: shown(broker, certificates) == number)
        assert before.call(MetadataRequest()).brokers


def test_half_a_change_leaves_the_old_certificate_until_the_other_half_is_there(broker, certificates, caplog):
    whole = certificates.broker.read_text()
    first, (path, number) = serial(certificates.broker), renewed(certificates)
    second = path.read_text()
    at = "-----BEGIN CERTIFICATE"
    certificates.broker.write_text(second[: second.index(at)] + whole[whole.index(at) :])
    until(lambda: "the private key does not match the certificate" in caplog.text)
    assert shown(broker, certificates) == first
    certificates.broker.write_text(second)
    until(lambda: shown(broker, certificates) == number)
    assert caplog.text.count("the private key does not match the certificate") == 1


def test_a_dynamic_setting_is_tried_before_it_is_taken(broker, certificates, tmp_path):
    other, number = renewed(certificates)
    prefix = "listener.name.ssl.ssl.keystore."
    with link(broker, certificates) as connection:
        refused = alter(connection, **{f"{prefix}location": tmp_path / "none.pem"})
        assert refused.error_code == ErrorCode.INVALID_CONFIG
        assert "none.pem: the file cannot be read" in refused.error_message
        assert shown(broker, certificates) == serial(certificates.broker)
        assert alter(connection, **{f"{prefix}location": other}).error_code == 0
        until(lambda: shown(broker, certificates) == number)
        # The connection that asked is none the worse for it.
        assert connection.call(MetadataRequest()).brokers


OTHER_NAMES = {
    "DN": (
        ("another", "localhost", "127.0.0.1"),
        r"DistinguishedName does not match: existing DN=CN=broker,.+, new DN=CN=another,.*ssl\.allow\.dn\.changes=true",
    ),
    "SAN": (
        ("broker", "127.0.0.1", "elsewhere"),
        r"SubjectAltNames do not match: existing SAN=DNS:localhost, IP:127\.0\.0\.1, new SAN=.*DNS:elsewhere.*"
        r"ssl\.allow\.san\.changes=true",
    ),
}


@pytest.mark.parametrize("what", OTHER_NAMES)
def test_a_certificate_with_other_names_is_taken_only_where_that_is_allowed(
    certificates, tmp_path, monkeypatch, caplog, what
):
    monkeypatch.setattr(live_tls, "LOOK_SECONDS", 0.05)
    names, sentence = OTHER_NAMES[what]
    first, location = serial(certificates.broker), "listener.name.ssl.ssl.keystore.location"
    other = certificates.issue(*names, file="other")
    with (
        BrokerThread(tmp_path / "data", certificates.listener()) as broker,
        link(broker, certificates) as admin,
    ):
        refused = alter(admin, **{location: other})
        assert refused.error_code == ErrorCode.INVALID_CONFIG
        assert re.search(sentence, refused.error_message)
        replace(certificates.broker, other)
        until(lambda: re.search(sentence, caplog.text))
        assert serial_shown(broker) == first
        # What it shows to other brokers is what it shows to clients.
        pair = broker.node.peers._settings().tls.pair_text
        assert serial_of_text(pair, tmp_path) == first
    allowed = certificates.listener() | {f"ssl.allow.{what.lower()}.changes": "true"}
    certificates.issue("broker", "localhost", "127.0.0.1")
    other = certificates.issue(*names, file="other")
    with BrokerThread(tmp_path / "data", allowed) as broker:
        replace(certificates.broker, other)
        until(lambda: serial_shown(broker) == serial(certificates.broker))
        assert serial_of_text(broker.node.peers._settings().tls.pair_text, tmp_path) == serial_shown(broker)


def serial_shown(broker):
    return serial_of_text(ssl.get_server_certificate(("localhost", broker.port), timeout=60), broker.data)


def serial_of_text(text, folder):
    path = folder / "shown.pem"
    path.write_text(text[text.index("-----BEGIN CERTIFICATE") :])
    return serial(path)


def test_a_certificate_may_get_more_names(broker, certificates):
    fresh, number = renewed(certificates, "broker", "one-more.example.org")
    replace(certificates.broker, fresh)
    until(lambda: shown(broker, certificates) == number)


def test_secrets_are_not_described(broker, certificates):
    with link(broker, certificates) as connection:
        assert alter(connection, **{"ssl.key.password": "hush"}).error_code == 0
        request = DescribeConfigsRequest([DescribeConfigsResource(4, "1", None)], include_synonyms=True)
        reply = connection.call(request)
    assert "ssl.key.password" in repr(reply)
    assert "hush" not in repr(reply)


def test_a_certificate_that_cannot_be_read_leaves_the_old_one_and_the_next_is_taken(
    broker, certificates, caplog, monkeypatch
):
    first = serial(certificates.broker)

    def unreadable(certificate):
        raise MalformedCertificate("an extension is empty")

    with monkeypatch.context() as patched:
        patched.setattr(server_tls, "alternative_names_of", unreadable)
        path, number = renewed(certificates)
        replace(certificates.broker, path)
        until(lambda: "cannot be read: an extension is empty" in caplog.text)
        assert shown(broker, certificates) == first
    until(lambda: shown(broker, certificates) == number)


def test_dates_are_warned_of_once_a_day(certificates, caplog):
    ends = datetime.now(UTC) + timedelta(days=10)
    certificates.issue("broker", "localhost", not_after=ends)
    tls = LiveTls(BrokerConfig.load(certificates.listener())).of("SSL")
    now = datetime.now(UTC)
    for _ in range(3):
        tls.warn_of_end(now)
    assert caplog.text.count(f"listener SSL expires on {ends:%Y-%m-%d}") == 1
    for _ in range(3):
        tls.warn_of_end(ends + timedelta(hours=1))
    assert caplog.text.count(f"listener SSL expired on {ends:%Y-%m-%d}") == 1
    tls.warn_of_end(now - timedelta(days=5000))
    tls.warn_of_end(ends + timedelta(days=3))
    assert caplog.text.count("expired on") == 2


def test_a_certificate_that_is_good_for_long_is_not_spoken_of(certificates, caplog):
    LiveTls(BrokerConfig.load(certificates.listener())).of("SSL").warn_of_end(datetime.now(UTC))
    assert not caplog.text
