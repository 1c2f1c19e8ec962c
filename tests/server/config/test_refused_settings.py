"""A broker without security must not accept a setting that promises it."""

import re

import pytest

from headrace.server.config.broker import BrokerConfig
from headrace.server.config.definition import ConfigError

STOCK_4 = """
process.roles=broker,controller
node.id=1
controller.quorum.bootstrap.servers=localhost:9093
listeners=PLAINTEXT://:9092,CONTROLLER://:9093
inter.broker.listener.name=PLAINTEXT
advertised.listeners=PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL
num.network.threads=3
num.io.threads=8
socket.send.buffer.bytes=102400
socket.receive.buffer.bytes=102400
socket.request.max.bytes=104857600
log.dirs=/tmp/kraft-combined-logs
num.partitions=1
num.recovery.threads.per.data.dir=1
offsets.topic.replication.factor=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
log.retention.hours=168
log.segment.bytes=1073741824
log.retention.check.interval.ms=300000
"""


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("remote.log.storage.system.enable", "there is no remote (tiered) storage"),
        ("transaction.two.phase.commit.enable", "two-phase commit is not offered"),
    ],
)
def test_what_is_not_offered_cannot_be_switched_on(name: str, sentence: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(sentence)):
        BrokerConfig.load({name: "true"})
    BrokerConfig.load({name: "false"})


def test_a_refusal_names_the_place_in_the_file() -> None:
    name = "remote.log.storage.system.enable"
    with pytest.raises(ConfigError, match=rf"^server\.properties:7: {re.escape(name)}=true is refused"):
        BrokerConfig.load({name: "true"}, None, {name: "server.properties:7"})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("sasl.enabled.mechanisms", "GSSAPI"),
        ("ssl.client.auth", "none"),
        ("security.inter.broker.protocol", "PLAINTEXT"),
    ],
)
def test_a_value_that_asks_for_nothing_is_taken(name: str, value: str) -> None:
    assert BrokerConfig.load({name: value}).warnings == ()


def test_tiered_storage_of_a_topic_is_refused() -> None:
    with pytest.raises(ConfigError, match="Tiered Storage functionality is disabled in the broker"):
        BrokerConfig.load({}).topic_config({"remote.storage.enable": "true"})
    BrokerConfig.load({}).topic_config({"remote.storage.enable": "false"})


def test_a_stock_file_of_kafka_4_starts() -> None:
    from headrace.server.config.properties import parse_properties

    config = BrokerConfig.load(parse_properties(STOCK_4))
    assert [str(listener) for listener in config.listeners] == ["PLAINTEXT://:9092"]
    assert config.warnings == ()
