"""Real clients over TLS: whatever they send arrives, and who they are is what their certificates say."""

import asyncio

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.helpers import create_ssl_context
from confluent_kafka import Consumer, Producer
from kafka import KafkaConsumer, KafkaProducer

from headrace.link.blocking import Connection
from headrace.link.settings import KafkaSettings
from headrace.testing.broker import BrokerThread
from headrace.wire.messages.metadata import MetadataRequest
from tests.certificates import Certificates

LARGE = b"x" * 700_000


@pytest.fixture(scope="module")
def certificates(tmp_path_factory):
    return Certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module", params=["none", "required"])
def broker(request, certificates, tmp_path_factory):
    settings = certificates.listener(ssl_client_auth=request.param)
    with BrokerThread(tmp_path_factory.mktemp("tls"), settings) as running:
        yield running


@pytest.fixture(scope="module")
def alice(certificates):
    return certificates.issue("alice")


@pytest.fixture
def confluent(broker, certificates, alice):
    return {
        "bootstrap.servers": f"localhost:{broker.port}",
        "security.protocol": "SSL",
        "ssl.ca.location": str(certificates.ca),
        "ssl.certificate.location": str(alice),
        "ssl.key.location": str(alice),
    }


def test_librdkafka_sends_and_reads(confluent):
    producer = Producer({**confluent, "message.max.bytes": 2_000_000})
    values = [b"%d" % n for n in range(2000)] + [LARGE] * 20
    for value in values:
        producer.produce("rdkafka", value, partition=0)
    assert producer.flush(60) == 0
    consumer = Consumer({**confluent, "group.id": "rdkafka", "auto.offset.reset": "earliest"})
    consumer.subscribe(["rdkafka"])
    found = []
    while len(found) < len(values):
        found += [message.value() for message in consumer.consume(500, 10) if message.error() is None]
    consumer.close()
    assert found == values


def test_kafka_python_sends_and_reads(broker, certificates, alice):
    common = {
        "bootstrap_servers": f"localhost:{broker.port}",
        "security_protocol": "SSL",
        "ssl_cafile": str(certificates.ca),
        "ssl_certfile": str(alice),
    }
    producer = KafkaProducer(**common)
    values = [b"%d" % n for n in range(200)] + [LARGE]
    for value in values:
        producer.send("python", value, partition=0)
    producer.flush(60)
    producer.close()
    consumer = KafkaConsumer("python", **common, auto_offset_reset="earliest", group_id=None)
    found = []
    while len(found) < len(values):
        for batch in consumer.poll(10_000).values():
            found += [record.value for record in batch]
    consumer.close()
    assert found == values


def test_aiokafka_sends_and_reads(broker, certificates, alice):
    async def run() -> list[bytes]:
        common = {
            "bootstrap_servers": f"localhost:{broker.port}",
            "security_protocol": "SSL",
            "ssl_context": create_ssl_context(cafile=str(certificates.ca), certfile=str(alice)),
        }
        async with AIOKafkaProducer(**common) as producer:
            for n in range(100):
                await producer.send_and_wait("aio", b"%d" % n)
        async with AIOKafkaConsumer("aio", **common, auto_offset_reset="earliest") as consumer:
            return [(await consumer.getone()).value for _ in range(100)]

    assert asyncio.run(asyncio.wait_for(run(), 120)) == [b"%d" % n for n in range(100)]


def test_a_blocking_connection_of_ours_asks(broker, certificates, alice):
    settings = KafkaSettings.of(
        {
            "bootstrap.servers": f"localhost:{broker.port}",
            "security.protocol": "SSL",
            "ssl.truststore.location": str(certificates.ca),
            "ssl.keystore.location": str(alice),
        },
        "a test",
    )
    with Connection("localhost", broker.port, settings) as connection:
        assert connection.call(MetadataRequest()).brokers[0].port == broker.port
