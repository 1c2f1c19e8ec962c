"""A setting of the Java client works, or is refused, alike in the client library, the commands and Spark."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest
from confluent_kafka import Consumer, KafkaException, Producer

from headrace.cli.cluster.connection import librdkafka_settings
from headrace.cli.failure import Failure
from headrace.client import ConfigError
from headrace.client.config import merged
from headrace.link.java_settings import (
    JAVA_SETTINGS,
    Converted,
    Ignored,
    Obsolete,
    Refused,
    Renamed,
    Replaced,
    Same,
)
from headrace.link.settings import SettingsError
from headrace.link.translation import translate
from headrace.spark.settings import current_options, kafka_settings

SERVERS = {"bootstrap.servers": "h:1"}

KAFKA_4_3 = [
    "acks",
    "allow.auto.create.topics",
    "auto.commit.interval.ms",
    "auto.offset.reset",
    "batch.size",
    "bootstrap.controllers",
    "bootstrap.servers",
    "buffer.memory",
    "check.crcs",
    "client.dns.lookup",
    "client.id",
    "client.rack",
    "compression.gzip.level",
    "compression.lz4.level",
    "compression.type",
    "compression.zstd.level",
    "config.providers",
    "connections.max.idle.ms",
    "default.api.timeout.ms",
    "delivery.timeout.ms",
    "enable.auto.commit",
    "enable.idempotence",
    "enable.metrics.push",
    "exclude.internal.topics",
    "fetch.max.bytes",
    "fetch.max.wait.ms",
    "fetch.min.bytes",
    "group.id",
    "group.instance.id",
    "group.protocol",
    "group.remote.assignor",
    "heartbeat.interval.ms",
    "interceptor.classes",
    "isolation.level",
    "key.deserializer",
    "key.serializer",
    "linger.ms",
    "max.block.ms",
    "max.in.flight.requests.per.connection",
    "max.partition.fetch.bytes",
    "max.poll.interval.ms",
    "max.poll.records",
    "max.request.size",
    "metadata.max.age.ms",
    "metadata.max.idle.ms",
    "metadata.recovery.rebootstrap.trigger.ms",
    "metadata.recovery.strategy",
    "metric.reporters",
    "metrics.num.samples",
    "metrics.recording.level",
    "metrics.sample.window.ms",
    "partition.assignment.strategy",
    "partitioner.adaptive.partitioning.enable",
    "partitioner.availability.timeout.ms",
    "partitioner.class",
    "partitioner.ignore.keys",
    "receive.buffer.bytes",
    "reconnect.backoff.max.ms",
    "reconnect.backoff.ms",
    "request.timeout.ms",
    "retries",
    "retry.backoff.max.ms",
    "retry.backoff.ms",
    "sasl.client.callback.handler.class",
    "sasl.jaas.config",
    "sasl.kerberos.kinit.cmd",
    "sasl.kerberos.min.time.before.relogin",
    "sasl.kerberos.service.name",
    "sasl.kerberos.ticket.renew.jitter",
    "sasl.kerberos.ticket.renew.window.factor",
    "sasl.login.callback.handler.class",
    "sasl.login.class",
    "sasl.login.connect.timeout.ms",
    "sasl.login.read.timeout.ms",
    "sasl.login.refresh.buffer.seconds",
    "sasl.login.refresh.min.period.seconds",
    "sasl.login.refresh.window.factor",
    "sasl.login.refresh.window.jitter",
    "sasl.login.retry.backoff.max.ms",
    "sasl.login.retry.backoff.ms",
    "sasl.mechanism",
    "sasl.oauthbearer.assertion.algorithm",
    "sasl.oauthbearer.assertion.claim.aud",
    "sasl.oauthbearer.assertion.claim.exp.seconds",
    "sasl.oauthbearer.assertion.claim.iss",
    "sasl.oauthbearer.assertion.claim.jti.include",
    "sasl.oauthbearer.assertion.claim.nbf.seconds",
    "sasl.oauthbearer.assertion.claim.sub",
    "sasl.oauthbearer.assertion.file",
    "sasl.oauthbearer.assertion.private.key.file",
    "sasl.oauthbearer.assertion.private.key.passphrase",
    "sasl.oauthbearer.assertion.template.file",
    "sasl.oauthbearer.client.credentials.client.id",
    "sasl.oauthbearer.client.credentials.client.secret",
    "sasl.oauthbearer.clock.skew.seconds",
    "sasl.oauthbearer.expected.audience",
    "sasl.oauthbearer.expected.issuer",
    "sasl.oauthbearer.header.urlencode",
    "sasl.oauthbearer.jwks.endpoint.refresh.ms",
    "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms",
    "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms",
    "sasl.oauthbearer.jwks.endpoint.url",
    "sasl.oauthbearer.jwt.retriever.class",
    "sasl.oauthbearer.jwt.validator.class",
    "sasl.oauthbearer.scope",
    "sasl.oauthbearer.scope.claim.name",
    "sasl.oauthbearer.sub.claim.name",
    "sasl.oauthbearer.token.endpoint.url",
    "security.protocol",
    "security.providers",
    "send.buffer.bytes",
    "session.timeout.ms",
    "share.acknowledgement.mode",
    "share.acquire.mode",
    "socket.connection.setup.timeout.max.ms",
    "socket.connection.setup.timeout.ms",
    "ssl.cipher.suites",
    "ssl.enabled.protocols",
    "ssl.endpoint.identification.algorithm",
    "ssl.engine.factory.class",
    "ssl.key.password",
    "ssl.keymanager.algorithm",
    "ssl.keystore.certificate.chain",
    "ssl.keystore.key",
    "ssl.keystore.location",
    "ssl.keystore.password",
    "ssl.keystore.type",
    "ssl.protocol",
    "ssl.provider",
    "ssl.secure.random.implementation",
    "ssl.trustmanager.algorithm",
    "ssl.truststore.certificates",
    "ssl.truststore.location",
    "ssl.truststore.password",
    "ssl.truststore.type",
    "transaction.timeout.ms",
    "transaction.two.phase.commit.enable",
    "transactional.id",
    "value.deserializer",
    "value.serializer",
]
"""The settings of producers, consumers and admin clients in kafka-clients 4.3.0."""

JAAS = 'org.apache.kafka.common.security.scram.ScramLoginModule required username="ann" password="secret";'


def by_client(given: Mapping[str, str]) -> dict[str, object]:
    return {name: value for name, value in merged({**SERVERS, **given}, {}).items() if name not in SERVERS}


def by_commands(given: Mapping[str, str]) -> dict[str, object]:
    return dict(librdkafka_settings(given))


def by_spark(given: Mapping[str, str]) -> dict[str, object]:
    options = {f"kafka.{name}": value for name, value in {**SERVERS, **given}.items()}
    kafka_settings(options)
    translated = {name.removeprefix("kafka."): value for name, value in current_options(options).items()}
    return {name: value for name, value in translated.items() if name not in SERVERS}


READERS = (by_client, by_commands, by_spark)
ERRORS = (ConfigError, Failure, SettingsError)
WITH_MORE = {
    "ssl.keystore.certificate.chain": {"ssl.keystore.key": "k"},
    "ssl.keystore.key": {"ssl.keystore.certificate.chain": "c"},
}
VALUES = {
    "buffer.memory": "1048576",
    "partition.assignment.strategy": "org.apache.kafka.clients.consumer.RoundRobinAssignor",
    "partitioner.class": "org.apache.kafka.clients.producer.RoundRobinPartitioner",
    "sasl.jaas.config": JAAS,
    "security.protocol": "PLAINTEXT",
    "request.timeout.ms": "1000",
    "retry.backoff.ms": "100",
    "retry.backoff.max.ms": "100",
}


def given(name: str) -> dict[str, str]:
    return {name: VALUES.get(name, "1"), **WITH_MORE.get(name, {})}


def named(*fates: type) -> list[str]:
    return sorted(name for name, fate in JAVA_SETTINGS.items() if isinstance(fate, fates))


def test_every_setting_of_kafkas_clients_has_its_row() -> None:
    assert [name for name in KAFKA_4_3 if name not in JAVA_SETTINGS] == []


def test_a_successor_is_a_setting_of_today() -> None:
    successors = {fate.successor for fate in JAVA_SETTINGS.values() if isinstance(fate, Replaced)}
    assert successors <= set(KAFKA_4_3)


@pytest.mark.parametrize("name", [name for name in named(Same, Renamed, Converted) if name not in SERVERS])
def test_a_setting_means_the_same_to_all_three(name: str) -> None:
    expected = translate(given(name)).settings
    for reader in READERS:
        # Each may keep a setting that it reads itself under Java's name.
        assert reader(given(name)) in (expected, given(name))


@pytest.mark.parametrize("name", named(Ignored))
def test_a_setting_of_java_alone_stops_nobody(name: str) -> None:
    for reader in READERS:
        assert reader(given(name)) in ({}, given(name))


@pytest.mark.parametrize("name", named(Refused))
def test_a_setting_that_nobody_can_honour_is_refused_by_all_three(name: str) -> None:
    for reader in READERS:
        with pytest.raises(ERRORS, match=name):
            reader(given(name))


@pytest.mark.parametrize("name", named(Replaced, Obsolete))
def test_a_removed_setting_is_refused_by_the_client_and_noted_by_the_others(
    name: str, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(ConfigError, match=f"{name} was removed from Kafka"):
        by_client(given(name))
    by_commands(given(name))
    assert f"headrace: {name} was removed from Kafka" in capsys.readouterr().err
    if JAVA_SETTINGS[name] != Replaced("bootstrap.servers"):
        by_spark(given(name))
        assert f"kafka.{name} was removed from Kafka" in caplog.text


TLS = {"security.protocol": "SSL"}
LOGIN = {"security.protocol": "SASL_SSL"}


@pytest.mark.parametrize(
    ("properties", "expected"),
    [
        ({"sasl.jaas.config": JAAS}, {"sasl.username": "ann", "sasl.password": "secret"}),
        ({"ssl.truststore.location": "/ca.pem"}, {"ssl.ca.location": "/ca.pem"}),
        ({"ssl.truststore.location": "/ca", "ssl.truststore.type": "PEM"}, {"ssl.ca.location": "/ca"}),
        ({"ssl.truststore.certificates": "CA"}, {"ssl.ca.pem": "CA"}),
        (
            {"ssl.keystore.location": "/me.pem", "ssl.keystore.type": "PEM"},
            {"ssl.certificate.location": "/me.pem", "ssl.key.location": "/me.pem"},
        ),
        (
            {"ssl.keystore.key": "K", "ssl.keystore.certificate.chain": "C"},
            {"ssl.key.pem": "K", "ssl.certificate.pem": "C"},
        ),
        ({"ssl.endpoint.identification.algorithm": ""}, {"ssl.endpoint.identification.algorithm": "none"}),
    ],
    ids=lambda settings: " ".join(settings),
)
def test_logins_and_certificates_are_read_alike(properties: dict[str, str], expected: dict[str, str]) -> None:
    for reader in READERS:
        assert reader({**TLS, **properties}) == {**TLS, **expected}


@pytest.mark.parametrize(
    ("properties", "sentence"),
    [
        (
            {**LOGIN, "sasl.jaas.config": "com.acme.Own required;"},
            "Own, which is Java code; use PLAIN, SCRAM or GSSAPI",
        ),
        ({**LOGIN, "sasl.jaas.config": "what?"}, "sasl.jaas.config cannot be read"),
        ({**TLS, "ssl.truststore.location": "/t.jks"}, "the trust store /t.jks is JKS; write it as PEM"),
        ({**TLS, "ssl.truststore.location": "/t.p12"}, "the trust store /t.p12 is PKCS12; write it as PEM"),
        (
            {**TLS, "ssl.keystore.location": "/k", "ssl.keystore.type": "JKS"},
            "the key store /k is JKS; convert it .keytool -importkeystore",
        ),
        (
            {**TLS, "ssl.keystore.key": "K"},
            "ssl.keystore.certificate.chain and .*ssl.keystore.key belong together",
        ),
        ({"buffer.memory": "lots"}, "buffer.memory is 'lots': it must be a number of bytes"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, dict) else "",
)
def test_what_cannot_be_honoured_is_refused_alike_and_in_one_sentence(
    properties: dict[str, str], sentence: str
) -> None:
    for reader in READERS:
        with pytest.raises(ERRORS, match=sentence) as refused:
            reader(properties)
        assert "\n" not in str(refused.value)


def test_an_assignor_in_java_is_refused_where_there_are_assignors() -> None:
    own = {"partition.assignment.strategy": "com.acme.Own"}
    for reader in (by_client, by_commands):
        with pytest.raises(ERRORS, match=r"the assignor com\.acme\.Own is Java code"):
            reader(own)
    assert by_spark(own) == own


@pytest.mark.parametrize(
    "unused",
    [
        {"ssl.truststore.location": "/t.jks"},
        {"sasl.jaas.config": "com.acme.Own required;"},
        {"security.protocol": "SSL", "sasl.jaas.config": "what?"},
        {"ssl.keystore.key": "K"},
    ],
)
def test_spark_takes_a_job_with_settings_that_its_protocol_does_not_use(unused: dict[str, str]) -> None:
    options = {f"kafka.{name}": value for name, value in {**SERVERS, **unused}.items()}
    assert kafka_settings(options).login is None


def test_the_login_module_of_somebodys_own_gives_name_and_password_to_plain() -> None:
    login = {
        "sasl.mechanism": "PLAIN",
        "sasl.jaas.config": 'com.acme.Own required username="ann" password=" s ";',
    }
    for reader in READERS:
        assert {"sasl.username": "ann", "sasl.password": " s "}.items() <= reader({**LOGIN, **login}).items()
    options = {f"kafka.{name}": value for name, value in {**SERVERS, **LOGIN, **login}.items()}
    assert (found := kafka_settings(options).login) is not None
    assert found.password == " s "


def test_a_pkcs12_key_store_is_for_librdkafka_alone() -> None:
    store = {**TLS, "ssl.keystore.location": "/me.p12"}
    assert by_client(store) == by_commands(store) == store
    with pytest.raises(SettingsError, match=r"give PEM files instead \(openssl pkcs12 -in /me.p12"):
        by_spark(store)


@pytest.mark.parametrize("name", named(Same, Renamed, Converted))
def test_librdkafka_knows_every_name_that_settings_are_translated_to(name: str) -> None:
    for translated in translate(given(name)).settings:
        assert any(_knows(client, translated) for client in (Producer, Consumer))


def _knows(client: Callable[[dict[str, str]], object], name: str) -> bool:
    try:
        client({"group.id": "g", name: "1"})
    except KafkaException as refusal:
        return "No such configuration property" not in str(refusal)
    return True
