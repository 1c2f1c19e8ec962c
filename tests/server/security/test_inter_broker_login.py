"""Whom a broker logs in as when it speaks to the others."""

import threading

import pytest

from headrace.clock import SystemClock
from headrace.link.aio import AsyncConnection
from headrace.link.settings import KafkaSettings
from headrace.server.config.broker import BrokerConfig
from headrace.server.config.definition import ConfigError
from headrace.server.security.between_brokers import between_brokers
from headrace.wire.messages.metadata import MetadataRequest
from headrace.wire.sasl import scram
from headrace.wire.sasl.logins import BearerLogin, KerberosLogin, Login
from tests.server.security.conftest import PASSWORD

SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"


def login_of(mechanism, jaas, **more):
    settings = {
        "listeners": "PLAINTEXT://:9092,INSIDE://:9094",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,INSIDE:SASL_PLAINTEXT",
        "inter.broker.listener.name": "INSIDE",
        "sasl.enabled.mechanisms": mechanism,
        "sasl.mechanism.inter.broker.protocol": mechanism,
        f"listener.name.inside.{mechanism.lower()}.sasl.jaas.config": jaas,
        **more,
    }
    return between_brokers(BrokerConfig.load(settings), "broker-1").login


def test_the_listeners_jaas_line_says_as_whom():
    assert login_of("SCRAM-SHA-512", f'{SCRAM} required username="broker" password="x";') == Login(
        "SCRAM-SHA-512", "broker", "x"
    )
    plain = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="b" password="y" user_b="y";'
    assert login_of("PLAIN", plain) == Login("PLAIN", "b", "y")
    kerberos = 'com.sun.security.auth.module.Krb5LoginModule required keyTab="/k" principal="kafka/h@R";'
    assert login_of("GSSAPI", kerberos, **{"sasl.kerberos.service.name": "kafka"}) == KerberosLogin(
        "kafka", "kafka/h@R", "/k"
    )
    bearer = (
        "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required "
        'clientId="broker" clientSecret="s" scope="kafka";'
    )
    endpoint = {"sasl.oauthbearer.token.endpoint.url": "https://id.example/token"}
    assert login_of("OAUTHBEARER", bearer, **endpoint) == BearerLogin(
        "https://id.example/token", "broker", "s", "kafka"
    )


def test_a_broker_that_does_not_know_who_it_is_does_not_start():
    with pytest.raises(
        ConfigError, match="Listener INSIDE, which brokers use among themselves: SASL needs a user"
    ):
        login_of("SCRAM-SHA-512", f"{SCRAM} required;")


def test_a_broker_without_a_login_of_its_own_is_given_the_line_to_write():
    with pytest.raises(ConfigError) as caught:
        login_of("SCRAM-SHA-512", "")
    assert str(caught.value) == (
        "Listener INSIDE, which brokers use among themselves, has no login for them: set "
        f'listener.name.inside.scram-sha-512.sasl.jaas.config={SCRAM} required username="broker" password="<its password>";'
    )


def test_brokers_do_not_log_in_with_a_mechanism_that_their_listener_does_not_offer():
    mechanism = {"sasl.mechanism.inter.broker.protocol": "PLAIN"}
    with pytest.raises(
        ConfigError, match=r"with PLAIN, which listener INSIDE does not offer: set .* to SCRAM-SHA-512, or"
    ):
        login_of("SCRAM-SHA-512", f'{SCRAM} required username="broker" password="x";', **mechanism)


def test_brokers_that_need_no_login_have_none():
    assert between_brokers(BrokerConfig.load({"listeners": "PLAINTEXT://:9092"}), "broker-1") is None


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
async def test_a_login_hashes_in_a_thread_and_never_on_the_loop(secured, monkeypatch, mechanism):
    hashed_in = []

    def salted_password(*given):
        hashed_in.append(threading.get_ident())
        return real(*given)

    real = scram.salted_password
    monkeypatch.setattr(scram, "salted_password", salted_password)
    host, _, port = secured.secured.rpartition(":")
    given = {
        "bootstrap.servers": secured.secured,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": mechanism,
        "sasl.username": "alice",
        "sasl.password": PASSWORD,
    }
    settings = KafkaSettings.of(given, "a test")
    connection = await AsyncConnection.connect(host, int(port), b"test", SystemClock(), 60, settings=settings)
    assert (await connection.call(MetadataRequest([]), 9)).brokers
    connection.close()
    assert len(hashed_in) == 1
    assert threading.get_ident() not in hashed_in
