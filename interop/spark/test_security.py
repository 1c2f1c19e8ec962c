"""TLS and logins against Apache Kafka, with the settings that Java users write."""

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import (
    AdminClient,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from headrace.spark.batch import BatchReader
from headrace.spark.options import ReadOptions
from headrace.spark.source import HeadraceSource
from headrace.wire.errors import KafkaError
from interop.spark.conftest import SecureKafka

USERS = {"PLAIN": "ann", "SCRAM-SHA-256": "ben", "SCRAM-SHA-512": "cleo"}
MODULES = {"PLAIN": "plain.PlainLoginModule"}


@pytest.fixture(scope="module")
def topic(kafka: SecureKafka) -> str:
    """A topic with one record, on a broker that knows the users."""
    address = kafka.running.address
    admin = AdminClient({"bootstrap.servers": address})
    changes = [
        UserScramCredentialUpsertion(
            user, ScramCredentialInfo(getattr(ScramMechanism, name), 4096), b"wonder"
        )
        for user, name in (("ben", "SCRAM_SHA_256"), ("cleo", "SCRAM_SHA_512"))
    ]
    for done in admin.alter_user_scram_credentials(changes).values():
        done.result(30)
    kafka.running.create("secure")
    producer = Producer({"bootstrap.servers": address})
    producer.produce("secure", b"secret")
    assert producer.flush(30) == 0
    return "secure"


def options(kafka: SecureKafka, mechanism: str, password: str = "wonder", **extra: str) -> dict[str, str]:
    module = MODULES.get(mechanism, "scram.ScramLoginModule")
    jaas = f'org.apache.kafka.common.security.{module} required username="{USERS[mechanism]}" password="{password}";'
    return {
        "kafka.bootstrap.servers": kafka.secure,
        "kafka.security.protocol": "SASL_SSL",
        "kafka.sasl.mechanism": mechanism,
        "kafka.sasl.jaas.config": jaas,
        "kafka.ssl.truststore.type": "PEM",
        "kafka.ssl.truststore.location": str(kafka.authority),
        "subscribe": "secure",
        **extra,
    }


def values(given: dict[str, str]) -> list[bytes]:
    reader = BatchReader(ReadOptions.of(given, streaming=False), HeadraceSource(given).schema())
    parts = reader.partitions()
    return [value.as_py() for part in parts for batch in reader.read(part) for value in batch["value"]]


@pytest.mark.parametrize("mechanism", USERS)
def test_a_user_reads_over_tls(kafka: SecureKafka, topic: str, mechanism: str) -> None:
    assert values(options(kafka, mechanism)) == [b"secret"]


@pytest.mark.parametrize("mechanism", USERS)
def test_a_wrong_password_is_told_at_once(kafka: SecureKafka, topic: str, mechanism: str) -> None:
    with pytest.raises(KafkaError, match=f"refused the login of '{USERS[mechanism]}'"):
        values(options(kafka, mechanism, "guess"))


def test_a_broker_that_is_not_trusted_is_not_spoken_to(kafka: SecureKafka, topic: str) -> None:
    given = options(kafka, "PLAIN")
    del given["kafka.ssl.truststore.location"]
    with pytest.raises(KafkaError, match=r"is not trusted .* kafka\.ssl\.truststore\.location"):
        values(given)
