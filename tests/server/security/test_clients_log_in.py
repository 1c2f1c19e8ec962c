"""Real clients log in over every mechanism, and are refused as Kafka refuses them."""

import asyncio

import aiokafka
import aiokafka.errors
import kafka
import kafka.errors
import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient

from headrace.client import Admin, BrokerError
from headrace.link.blocking import Connection
from headrace.link.settings import KafkaSettings
from headrace.testing.topics import unique_name
from headrace.wire.errors import ErrorCode
from headrace.wire.errors import KafkaError as Refusal
from headrace.wire.messages.metadata import MetadataRequest
from tests.server.security.conftest import PASSWORD

MECHANISMS = ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]
PATIENCE = 60


def rdkafka(broker, mechanism, user="alice", password=PASSWORD):
    return {
        "bootstrap.servers": broker.secured,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": mechanism,
        "sasl.username": user,
        "sasl.password": password,
    }


def python(broker, mechanism, user="alice", password=PASSWORD):
    return {
        "bootstrap_servers": broker.secured,
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": mechanism,
        "sasl_plain_username": user,
        "sasl_plain_password": password,
    }


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_librdkafka_produces_and_consumes(secured, mechanism):
    topic = secured.create_topic()
    producer = Producer(rdkafka(secured, mechanism))
    producer.produce(topic, b"hello")
    assert producer.flush(PATIENCE) == 0
    consumer = Consumer(
        {**rdkafka(secured, mechanism), "group.id": unique_name(), "auto.offset.reset": "earliest"}
    )
    consumer.subscribe([topic])
    try:
        message = consumer.poll(PATIENCE)
        assert message is not None
        assert message.value() == b"hello"
    finally:
        consumer.close()


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_kafka_python_produces_and_consumes(secured, mechanism):
    topic = secured.create_topic()
    producer = kafka.KafkaProducer(**python(secured, mechanism))
    producer.send(topic, b"hello").get(PATIENCE)
    producer.close()
    consumer = kafka.KafkaConsumer(
        topic,
        **python(secured, mechanism),
        auto_offset_reset="earliest",
        consumer_timeout_ms=PATIENCE * 1000,
    )
    try:
        assert next(consumer).value == b"hello"
    finally:
        consumer.close()


@pytest.mark.parametrize("mechanism", MECHANISMS)
async def test_aiokafka_produces_and_consumes(secured, mechanism):
    topic = await asyncio.to_thread(secured.create_topic)
    async with aiokafka.AIOKafkaProducer(**python(secured, mechanism)) as producer:
        await producer.send_and_wait(topic, b"hello")
    consumer = aiokafka.AIOKafkaConsumer(topic, **python(secured, mechanism), auto_offset_reset="earliest")
    async with consumer:
        message = await asyncio.wait_for(consumer.getone(), PATIENCE)
    assert message.value == b"hello"


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_our_own_connection_logs_in(secured, mechanism):
    with Connection(*address(secured), settings(secured, mechanism)) as connection:
        assert connection.call(MetadataRequest([])).brokers


def address(broker):
    host, _, port = broker.secured.rpartition(":")
    return host, int(port)


def settings(broker, mechanism, user="alice", password=PASSWORD):
    return KafkaSettings.of(rdkafka(broker, mechanism, user, password), "a test")


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize(("user", "password"), [("alice", "wrong"), ("nobody", PASSWORD), ("", "x")])
def test_a_wrong_login_is_refused_alike_whatever_is_wrong(secured, mechanism, user, password):
    if mechanism == "PLAIN":
        told = "Authentication failed: Invalid username or password"
        if not user:
            told = "Authentication failed: username not specified"
    else:
        told = f"Authentication failed during authentication due to invalid credentials with SASL mechanism {mechanism}"
    with pytest.raises(Refusal) as caught:
        Connection(*address(secured), settings(secured, mechanism, user, password))
    assert caught.value.code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert str(caught.value).endswith(told)


def test_librdkafka_is_told_that_its_password_is_wrong(secured):
    errors = []
    admin = AdminClient({**rdkafka(secured, "SCRAM-SHA-512", password="wrong"), "error_cb": errors.append})
    with pytest.raises(KafkaException):
        admin.list_topics(timeout=10)
    admin.poll(10)
    assert KafkaError._AUTHENTICATION in [error.code() for error in errors]


def test_our_admin_client_is_told_at_once_that_its_password_is_wrong(secured):
    given = rdkafka(secured, "SCRAM-SHA-512", password="wrong")
    # As long as the test may take: only being told can end the call.
    with Admin(given, default_api_timeout_ms=600_000) as admin, pytest.raises(BrokerError) as caught:
        admin.create_topic("t")
    assert "creating topic t failed: " in str(caught.value)
    assert "invalid credentials with SASL mechanism SCRAM-SHA-512" in str(caught.value)


def test_kafka_python_is_told_that_its_password_is_wrong(secured):
    with pytest.raises(kafka.errors.KafkaError):
        kafka.KafkaAdminClient(
            **python(secured, "SCRAM-SHA-256", password="wrong"), api_version_auto_timeout_ms=5000
        )


async def test_aiokafka_is_told_that_its_password_is_wrong(secured):
    producer = aiokafka.AIOKafkaProducer(**python(secured, "PLAIN", password="wrong"))
    with pytest.raises(aiokafka.errors.KafkaError):
        await producer.start()
    await producer.stop()


def test_a_mechanism_that_is_not_offered_is_answered_with_those_that_are(secured):
    bad = settings(secured, "PLAIN")
    bad = type(bad)(bad.bootstrap, login=type(bad.login)("SCRAM-SHA-1", "alice", "x"))
    with pytest.raises(Refusal, match="it offers PLAIN, SCRAM-SHA-256, SCRAM-SHA-512"):
        Connection(*address(secured), bad)


def test_a_name_with_a_dash_and_a_dot_comes_through_the_jaas_line(secured):
    with Connection(*address(secured), settings(secured, "PLAIN", "my-app.1", "other")) as connection:
        assert connection.call(MetadataRequest([])).brokers
