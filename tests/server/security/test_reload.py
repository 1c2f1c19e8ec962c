"""Certificates that change while the broker runs: new connections get the new one, open ones go on."""

import os
import socket
import ssl
from datetime import UTC, datetime, timedelta

import pytest

from headrace.link.blocking import Connection
from headrace.link.settings import KafkaSettings
from headrace.server.config.broker import BrokerConfig
from headrace.server.security import live_tls
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
    """The common name of the certificate that a new connection sees."""
    context = ssl.create_default_context(cafile=certificates.ca)
    with (
        socket.create_connection(("localhost", broker.port)) as plain,
        context.wrap_socket(plain, server_hostname="localhost") as secure,
    ):
        return dict(pair for name in secure.getpeercert()["subject"] for pair in name)["commonName"]


def replace(old, new):
    os.replace(new, old)


def alter(connection, **settings):
    configs = [AlterableConfig(name, 0, str(value)) for name, value in settings.items()]
    request = IncrementalAlterConfigsRequest([AlterConfigsResource(4, "1", configs)])
    return connection.call(request).responses[0]


def test_a_new_file_is_used_without_a_restart_and_open_connections_stay(broker, certificates):
    with link(broker, certificates) as before:
        replace(certificates.broker, certificates.issue("second", "localhost"))
        until(lambda: shown(broker, certificates) == "second")
        assert before.call(MetadataRequest()).brokers


def test_half_a_change_leaves_the_old_certificate_until_the_other_half_is_there(broker, certificates, caplog):
    whole = certificates.broker.read_text()
    second = certificates.issue("second", "localhost").read_text()
    at = "-----BEGIN CERTIFICATE"
    certificates.broker.write_text(second[: second.index(at)] + whole[whole.index(at) :])
    until(lambda: "the private key does not match the certificate" in caplog.text)
    assert shown(broker, certificates) == "broker"
    certificates.broker.write_text(second)
    until(lambda: shown(broker, certificates) == "second")
    assert caplog.text.count("the private key does not match the certificate") == 1


def test_a_dynamic_setting_is_tried_before_it_is_taken(broker, certificates, tmp_path):
    other = certificates.issue("other", "localhost")
    prefix = "listener.name.ssl.ssl.keystore."
    with link(broker, certificates) as connection:
        refused = alter(connection, **{f"{prefix}location": tmp_path / "none.pem"})
        assert refused.error_code == ErrorCode.INVALID_CONFIG
        assert "none.pem: the file cannot be read" in refused.error_message
        assert shown(broker, certificates) == "broker"
        assert alter(connection, **{f"{prefix}location": other}).error_code == 0
        until(lambda: shown(broker, certificates) == "other")
        # The connection that asked is none the worse for it.
        assert connection.call(MetadataRequest()).brokers


def test_secrets_are_not_described(broker, certificates):
    with link(broker, certificates) as connection:
        assert alter(connection, **{"ssl.key.password": "hush"}).error_code == 0
        request = DescribeConfigsRequest([DescribeConfigsResource(4, "1", None)], include_synonyms=True)
        reply = connection.call(request)
    assert "ssl.key.password" in repr(reply)
    assert "hush" not in repr(reply)


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
