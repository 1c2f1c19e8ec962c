"""What librdkafka reports about connections becomes one sentence with the address, the cause and the remedy."""

from __future__ import annotations

import pytest
from confluent_kafka import KafkaError

from headrace.cli.cluster.trouble import Trouble
from headrace.cli.failure import Exit, Failure

REFUSED = "127.0.0.1:9092/bootstrap: Connect to ipv4#127.0.0.1:9092 failed: Connection refused (after 0ms in state CONNECT)"


def trouble(*reports: tuple[int, str], bootstrap: str = "127.0.0.1:9092") -> str:
    heard = Trouble(bootstrap)
    for code, text in reports:
        heard.report(KafkaError(code, text))
    with pytest.raises(Failure) as caught:
        heard.check()
    assert caught.value.code == Exit.UNREACHABLE
    return caught.value.sentence


ALL_DOWN = (KafkaError._ALL_BROKERS_DOWN, "1/1 brokers are down")


def test_a_refused_connection_says_where_and_how_to_start_a_broker() -> None:
    sentence = trouble((KafkaError._TRANSPORT, REFUSED), ALL_DOWN)
    assert "No broker answers at 127.0.0.1:9092 (connection refused)" in sentence
    assert "headrace up --listen 127.0.0.1:9092" in sentence


def test_a_broker_elsewhere_is_not_offered_to_be_started_here() -> None:
    report = REFUSED.replace("127.0.0.1", "192.0.2.1")
    sentence = trouble((KafkaError._TRANSPORT, report), ALL_DOWN, bootstrap="192.0.2.1:9092")
    assert "headrace up" not in sentence
    assert "check --bootstrap-server" in sentence


def test_an_advertised_address_that_nobody_answers_at_is_told_apart_from_the_bootstrap_address() -> None:
    report = (
        "inside:9092/1: Connect to ipv4#10.0.0.1:9092 failed: Connection refused (after 0ms in state CONNECT)"
    )
    sentence = trouble((KafkaError._TRANSPORT, report), ALL_DOWN)
    assert "broker 1 is at inside:9092" in sentence
    assert "--advertise" in sentence


def test_a_refused_login_ends_the_command_at_once() -> None:
    report = "sasl_plaintext://127.0.0.1:9092/bootstrap: SASL authentication error: Invalid password (after 3ms in state AUTH_REQ)"
    sentence = trouble((KafkaError._AUTHENTICATION, report))
    assert "refused the login (SASL authentication error: Invalid password)" in sentence


def test_one_broker_of_several_that_is_down_is_no_trouble() -> None:
    heard = Trouble("127.0.0.1:9092,127.0.0.1:9093")
    heard.report(KafkaError(KafkaError._TRANSPORT, REFUSED))
    heard.check()


def test_every_address_a_name_stands_for_gets_its_chance() -> None:
    heard = Trouble("127.0.0.1:9092,127.0.0.1:9093")
    heard.report(KafkaError(KafkaError._TRANSPORT, REFUSED))
    heard.report(KafkaError(*ALL_DOWN))
    heard.check()
    heard.report(KafkaError(KafkaError._TRANSPORT, REFUSED.replace("9092", "9093")))
    with pytest.raises(Failure):
        heard.check()
