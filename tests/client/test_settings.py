"""Kafka's settings by Kafka's names and defaults, and the three delivery choices; no broker is asked."""

from __future__ import annotations

import logging

import pytest

from headrace.client import ConfigError, Consumer, Producer
from headrace.client.config import connection_settings, consumer_settings, merged, producer_settings
from headrace.client.repeats import Repeats

SERVERS = "127.0.0.1:1"


def test_settings_come_as_servers_as_a_mapping_or_as_keywords_and_keywords_win() -> None:
    by_mapping = producer_settings({"bootstrap.servers": SERVERS, "linger.ms": 1}, {"linger_ms": 9}, None)
    assert by_mapping.librdkafka["linger.ms"] == 9
    assert producer_settings(SERVERS, {}, None).librdkafka["bootstrap.servers"] == SERVERS
    several = producer_settings(None, {"bootstrap_servers": ["a:1", "b:2"]}, None)
    assert several.librdkafka["bootstrap.servers"] == "a:1,b:2"


def test_the_default_producer_is_at_least_once_and_idempotent() -> None:
    settings = producer_settings(SERVERS, {}, None).librdkafka
    assert (settings["acks"], settings["enable.idempotence"]) == ("all", "true")
    assert settings["delivery.timeout.ms"] == 120_000


@pytest.mark.parametrize(
    ("acks", "expected"), [(0, "0"), ("1", "1"), (1, "1"), ("all", "all"), (-1, "all"), ("-1", "all")]
)
def test_acks_are_spelled_plainly_and_weaker_ones_turn_idempotence_off(acks: object, expected: str) -> None:
    settings = producer_settings(SERVERS, {"acks": acks}, None).librdkafka
    assert settings["acks"] == expected
    assert settings["enable.idempotence"] == ("true" if expected == "all" else "false")


def test_at_most_once_neither_waits_nor_retries() -> None:
    settings = producer_settings(SERVERS, {}, "at_most_once").librdkafka
    assert (settings["acks"], settings["retries"], settings["enable.idempotence"]) == ("0", 0, "false")


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: Producer(), "bootstrap.servers is missing"),
        (lambda: Producer(SERVERS, acks=2), "choose 0 .* 1 .* or all"),
        (lambda: Producer(SERVERS, delivery="exactly_once"), "exactly_once needs transactional_id="),
        (lambda: Producer(SERVERS, delivery="at_least_once", acks=1), "at_least_once needs acks=all"),
        (
            lambda: Producer(SERVERS, delivery="sometimes"),
            "choose at_most_once, at_least_once",
        ),
        (lambda: Producer(SERVERS, request_required_acks=1), "removed from Kafka: use acks"),
        (
            lambda: Producer(SERVERS, linger_mss=1),
            "No such configuration property: \"linger.mss\". Did you mean 'linger.ms'",
        ),
        (lambda: Consumer(SERVERS, max_poll_record=1), "Did you mean 'max.poll.records'"),
        (
            lambda: Producer(SERVERS, sasl_jaas_config="com.acme.Own required;"),
            "Own, which is Java code; use PLAIN",
        ),
        (
            lambda: Producer(SERVERS, ssl_truststore_location="/t.jks"),
            "/t.jks is JKS, which only Java reads; convert it with",
        ),
        (
            lambda: Consumer(SERVERS, group_id="g", partition_assignment_strategy="com.acme.Own"),
            "the assignor com.acme.Own is Java code",
        ),
        (lambda: Producer(SERVERS, max_block_ms="soon"), "max.block.ms is 'soon'"),
        (lambda: Producer(SERVERS, retries="many"), "retries is 'many': it must be a whole number"),
        (lambda: Producer(SERVERS, buffer_memory="lots"), "buffer.memory is 'lots'"),
        (lambda: Producer(SERVERS, error_cb="print"), "error_cb"),
        (lambda: Producer(9092), "give bootstrap servers as text"),
        (
            lambda: Producer({"bootstrap.servers": SERVERS, "key.serializer": "x"}),
            ": key_serializer=",
        ),
        (lambda: Producer(SERVERS).transaction(), "transactions need transactional_id="),
        (lambda: Consumer(SERVERS, group_id="g", zookeeper_connect="x"), "use bootstrap.servers"),
        (lambda: Consumer(SERVERS, group_id="g", max_poll_records=0), "max.poll.records is 0"),
        (lambda: Consumer(SERVERS, delivery="at_most_once"), "at_most_once needs group_id="),
        (
            lambda: Consumer(SERVERS, group_id="g", delivery="exactly_once", enable_auto_commit=True),
            "enable.auto.commit cannot be true with exactly_once",
        ),
        (lambda: Consumer(SERVERS).commit(), "has no group and cannot commit"),
        (lambda: Consumer(SERVERS, group_id="g").subscribe(), "either to topics or to a pattern"),
    ],
)
def test_a_wrong_setting_gets_one_sentence(make: object, sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence) as caught:
        make()  # type: ignore[operator]
    assert "\n" not in str(caught.value)


def test_consumers_take_javas_names() -> None:
    names = {
        "group_id": "g",
        "fetch_max_wait_ms": 100,
        "partition_assignment_strategy": "org.apache.kafka.clients.consumer.CooperativeStickyAssignor",
    }
    settings = consumer_settings(SERVERS, names, None)
    assert settings.librdkafka["fetch.wait.max.ms"] == 100
    assert settings.librdkafka["partition.assignment.strategy"] == "cooperative-sticky"
    assert settings.incremental
    assert settings.max_poll_records == 500
    assert settings.auto_commit


def test_a_login_and_certificates_come_under_javas_names() -> None:
    java = {
        "bootstrap.servers": SERVERS,
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.jaas.config": "org.apache.kafka.common.security.scram.ScramLoginModule required "
        'username="ann" password="a\\"b";',
        "ssl.truststore.location": "/ca.pem",
        "ssl.truststore.type": "PEM",
        "ssl.endpoint.identification.algorithm": "",
    }
    expected = {
        "bootstrap.servers": SERVERS,
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": "ann",
        "sasl.password": 'a"b',
        "ssl.ca.location": "/ca.pem",
        "ssl.endpoint.identification.algorithm": "none",
    }
    assert connection_settings(java) == expected
    assert expected.items() <= producer_settings(java, {}, None).librdkafka.items()


@pytest.mark.parametrize(
    "store",
    [
        {"ssl.keystore.location": "/client.p12", "ssl.keystore.password": "x", "ssl.keystore.type": "pkcs12"},
        {"ssl.keystore.location": "/client.p12", "ssl.keystore.password": "x"},
        {"ssl.keystore.location": "/client.pem", "ssl.keystore.type": "PEM", "ssl.key.password": "x"},
        {"ssl.keystore.type": "PEM", "ssl.keystore.key": "k", "ssl.keystore.certificate.chain": "c"},
        {"ssl.truststore.location": "/ca.pem", "ssl.truststore.type": "PEM"},
        {"ssl.endpoint.identification.algorithm": ""},
    ],
    ids=lambda store: ", ".join(f"{name}={value}" for name, value in store.items()),
)
def test_settings_that_were_translated_once_stay_as_they_are(store: dict[str, object]) -> None:
    once = merged({"bootstrap.servers": SERVERS, **store}, {})
    assert "ssl.keystore.type" not in once
    assert merged(once, {}) == once


@pytest.mark.parametrize("name", ["sticky", "org.apache.kafka.clients.consumer.StickyAssignor"])
def test_sticky_is_librdkafkas_cooperative_sticky(name: str) -> None:
    settings = consumer_settings(SERVERS, {"group_id": "g", "partition_assignment_strategy": name}, None)
    assert settings.librdkafka["partition.assignment.strategy"] == "cooperative-sticky"
    assert settings.incremental


def test_a_consumer_without_a_group_commits_nothing() -> None:
    assert not consumer_settings(SERVERS, {}, None).auto_commit


def test_exactly_once_reads_committed_records_only() -> None:
    settings = consumer_settings(SERVERS, {"group_id": "g"}, "exactly_once")
    assert settings.librdkafka["isolation.level"] == "read_committed"
    assert not settings.auto_commit


def test_a_second_client_is_let_in_the_same_way() -> None:
    def token(config: str) -> tuple[str, float]:
        return "token", 0.0

    settings = {
        "bootstrap.servers": SERVERS,
        "security.protocol": "SASL_SSL",
        "sasl.mechanisms": "OAUTHBEARER",
        "oauth_cb": token,
        "enable.ssl.certificate.verification": False,
        "broker.address.family": "v4",
        "client.id": "billing",
    }
    assert connection_settings({**settings, "group.id": "g", "linger.ms": 5}) == settings


def test_a_consumer_that_was_given_nothing_to_read_says_so() -> None:
    with (
        Consumer(SERVERS, group_id="g") as consumer,
        pytest.raises(ConfigError, match="subscribe or assign first"),
    ):
        consumer.poll(0)


def test_a_broker_that_stays_away_is_told_once_in_a_while() -> None:
    def told(text: str, at: float) -> bool:
        return repeats.filter(logging.makeLogRecord({"msg": text, "created": at}))

    repeats = Repeats()
    assert told("broker 1: refused (after 0ms in state CONNECT)", 100.0)
    assert not told("broker 1: refused (after 1ms in state CONNECT)", 100.1)
    assert told("broker 2: refused (after 0ms in state CONNECT)", 100.2)
    assert told("broker 1: refused (after 0ms in state CONNECT)", 131.0)
