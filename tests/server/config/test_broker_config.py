import re
from pathlib import Path

import pytest

from headrace.server.config.broker import BrokerConfig
from headrace.server.config.definition import ConfigError
from headrace.server.config.properties import parse_properties, read_entries

ZOOKEEPER_ERA = """
broker.id=0
#listeners=PLAINTEXT://:9092
num.network.threads=3
num.io.threads=8
socket.send.buffer.bytes=102400
socket.receive.buffer.bytes=102400
socket.request.max.bytes=104857600
log.dirs=/tmp/kafka-logs
num.partitions=1
num.recovery.threads.per.data.dir=1
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
log.retention.hours=168
log.retention.check.interval.ms=300000
zookeeper.connect=localhost:2181
zookeeper.connection.timeout.ms=18000
group.initial.rebalance.delay.ms=0
"""

KRAFT = """
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@localhost:9093
controller.quorum.bootstrap.servers=localhost:9093
listeners=PLAINTEXT://:9092,CONTROLLER://:9093
inter.broker.listener.name=PLAINTEXT
advertised.listeners=PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT
num.network.threads=3
log.dirs=/tmp/kraft-combined-logs
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
log.segment.bytes=1073741824
"""


def test_a_stock_zookeeper_era_file_starts() -> None:
    config = BrokerConfig.load(parse_properties(ZOOKEEPER_ERA))
    assert config.node_id == 0
    assert config.log_dirs == (Path("/tmp/kafka-logs"),)
    assert config.string("zookeeper.connect") == "localhost:2181"
    assert config.integer("group.initial.rebalance.delay.ms") == 0
    assert (config.notices, config.warnings) == ((), ())


def test_a_stock_kraft_file_starts_without_the_controller_listener() -> None:
    config = BrokerConfig.load(parse_properties(KRAFT))
    assert config.node_id == 1
    assert [str(listener) for listener in config.listeners] == ["PLAINTEXT://:9092"]
    assert [str(listener) for listener in config.advertised_listeners] == ["PLAINTEXT://localhost:9092"]
    assert any(notice.startswith("process.roles has no effect") for notice in config.notices)
    assert config.warnings == ()


def test_an_unknown_name_in_a_file_is_reported_with_the_nearest_known_one() -> None:
    config = BrokerConfig.load({"log.retention.hour": "1"})
    assert config.warnings == ("Unknown setting log.retention.hour. Did you mean log.retention.hours?",)


def test_a_setting_of_a_listener_that_is_not_there_is_reported_with_the_nearest() -> None:
    """A slip in a listener's name must not leave it open in silence."""
    given = {
        "listeners": "CLIENTS://:9092,INTERNAL://:9093",
        "listener.security.protocol.map": "CLIENTS:PLAINTEXT,INTERNAL:PLAINTEXT",
        "inter.broker.listener.name": "INTERNAL",
        "controller.listener.names": "CONTROLLER",
        "listener.name.internal.max.connections": "9",
        "listener.name.controller.ssl.keystore.type": "PKCS12",
        "listener.name.client.max.connections": "9",
        "listener.name.INTERNAL.max.connections": "9",
    }
    places = {"listener.name.client.max.connections": "server.properties:7"}
    assert BrokerConfig.load(given, None, places).warnings == (
        "server.properties:7: listener.name.client.max.connections has no effect: `listeners` has no client, only clients, "
        "internal. Did you mean listener.name.clients?",
        "listener.name.INTERNAL.max.connections has no effect: `listeners` has no INTERNAL, only clients, internal. "
        "Did you mean listener.name.internal?",
    )


def test_a_listener_with_logins_that_does_not_ask_for_certificates_is_named() -> None:
    given = {
        "listeners": "SSL://:9092,SASL_SSL://:9093,INSIDE://:9094",
        "listener.security.protocol.map": "SSL:SSL,SASL_SSL:SASL_SSL,INSIDE:SASL_SSL",
        "inter.broker.listener.name": "INSIDE",
        "ssl.client.auth": "required",
        "listener.name.inside.ssl.client.auth": "requested",
    }
    (warning,) = BrokerConfig.load(given).warnings
    assert warning == (
        "ssl.client.auth=required does not count for listener SASL_SSL, where a login says who a client is: "
        "set listener.name.sasl_ssl.ssl.client.auth to ask for certificates there, too."
    )
    assert BrokerConfig.load({**given, "ssl.client.auth": "none"}).warnings == ()


def test_a_complaint_about_a_file_names_the_file_and_the_line(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text("# comment\nnum.partitions=2\nlog.dirs=a,\\\n  b\n\nlog.segment.byte=4\n")
    entries = read_entries(file)
    assert {key: entry.line for key, entry in entries.items()} == {
        "num.partitions": 2,
        "log.dirs": 3,
        "log.segment.byte": 6,
    }
    places = {key: f"{file}:{entry.line}" for key, entry in entries.items()}
    values = {key: entry.value for key, entry in entries.items()}
    (warning,) = BrokerConfig.load(values, None, places).warnings
    assert warning == f"{file}:6: Unknown setting log.segment.byte. Did you mean log.segment.bytes?"
    with pytest.raises(ConfigError, match=rf"^{re.escape(str(file))}:2: Invalid value many"):
        BrokerConfig.load({**values, "num.partitions": "many"}, None, places)


def test_a_binary_file_is_no_settings_file(tmp_path: Path) -> None:
    file = tmp_path / "binary"
    file.write_bytes(b"num.partitions=2\n\x00\x01\xff")
    with pytest.raises(ConfigError, match="is not a settings file: it holds binary data"):
        read_entries(file)


def test_an_unknown_name_typed_as_an_override_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"Unknown setting num\.partition\. Did you mean num\.partitions\?"):
        BrokerConfig.load({}, {"num.partition": "3"})


@pytest.mark.parametrize(
    ("name", "successor"),
    [
        ("request.required.acks", "acks"),
        ("replica.lag.max.messages", "replica.lag.time.max.ms"),
        ("host.name", "listeners"),
        ("advertised.port", "advertised.listeners"),
        ("zk.connect", "zookeeper.connect"),
        ("log.cleanup.interval.mins", "log.retention.check.interval.ms"),
    ],
)
def test_a_removed_setting_names_its_successor(name: str, successor: str) -> None:
    (notice,) = BrokerConfig.load({}, {name: "1"}).notices
    assert notice.startswith(name)
    assert f"`{successor}`" in notice


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        (
            {"num.partitions": "0"},
            "Invalid value 0 for configuration num.partitions: Value must be at least 1",
        ),
        (
            {"num.partitions": "ten"},
            "Invalid value ten for configuration num.partitions: Not a number of type INT",
        ),
        ({"num.partitions": "4_0"}, "Not a number of type INT"),
        ({"num.partitions": "99999999999"}, "Not a number of type INT"),
        ({"auto.create.topics.enable": "yes"}, "Expected value to be either true or false"),
        ({"compression.type": "brotli"}, "String must be one of: uncompressed, zstd"),
        ({"log.cleanup.policy": "compact,burn"}, "String must be one of: compact, delete"),
        ({"log.retention.ms": "0"}, "log.retention.ms must be unlimited"),
        ({"listeners": "9092"}, "is not NAME://host:port"),
        ({"listeners": "FRONT://:9092"}, "add it to listener.security.protocol.map"),
        ({"listeners": "PLAINTEXT://:9092,SSL://:9092"}, "9092 is used twice"),
        ({"listeners": "PLAINTEXT://:99999"}, "not between 0 and 65535"),
        ({"advertised.listeners": "PLAINTEXT://0.0.0.0:9092"}, "nonroutable meta-address"),
        ({"advertised.listeners": "SSL://example.org:9093"}, "which `listeners` does not have"),
        ({"node.id": "1", "broker.id": "2"}, "`node.id` to the same value as `broker.id`"),
        ({"log.dirs": " , "}, "At least one log directory"),
        ({"replica.fetch.wait.max.ms": "20000"}, "replica.lag.time.max.ms"),
        ({"ssl.key.password": "x", "ssl.client.auth": "maybe"}, "ssl.client.auth"),
    ],
)
def test_a_value_that_cannot_work_is_refused_with_a_sentence(
    settings: dict[str, str], complaint: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        BrokerConfig.load(settings)
    assert complaint in str(caught.value)


def test_settings_under_a_listener_name_are_checked_as_the_setting_they_are() -> None:
    config = BrokerConfig.load({"listener.name.plaintext.max.connections": "5"})
    assert config.notices == ()
    with pytest.raises(ConfigError, match="Not a number"):
        BrokerConfig.load({"listener.name.plaintext.max.connections": "five"})


@pytest.mark.parametrize(
    ("settings", "milliseconds"),
    [
        ({}, 604_800_000),
        ({"log.retention.hours": "1"}, 3_600_000),
        ({"log.retention.hours": "1", "log.retention.minutes": "2"}, 120_000),
        ({"log.retention.minutes": "2", "log.retention.ms": "3"}, 3),
        ({"log.retention.hours": "-1"}, -1),
        ({"log.retention.ms": "-7"}, -1),
    ],
)
def test_retention_takes_the_finest_unit_given(settings: dict[str, str], milliseconds: int) -> None:
    assert BrokerConfig.load(settings).topic_config({}).retention_ms == milliseconds


def test_a_dynamic_value_wins_over_a_static_one_and_a_topic_value_over_both() -> None:
    static = BrokerConfig.load({"log.retention.ms": "1000", "log.segment.bytes": "2000000"})
    config = static.with_dynamic({"log.retention.ms": "2000"}, {})
    assert config.topic_config({}).retention_ms == 2000
    assert (
        config.with_dynamic({"log.retention.ms": "2000"}, {"log.retention.ms": "3000"}).integer(
            "log.retention.ms"
        )
        == 3000
    )
    assert config.topic_config({"retention.ms": "4000"}).retention_ms == 4000
    assert config.topic_config({}).segment_bytes == 2_000_000
    assert static.topic_config({}).retention_ms == 1000


def test_defaults_are_kafkas() -> None:
    config = BrokerConfig.load({})
    topic = config.topic_config({})
    assert (topic.segment_bytes, topic.segment_ms, topic.max_message_bytes) == (
        1 << 30,
        604_800_000,
        1_048_588,
    )
    assert (topic.cleanup_policy, topic.compression_type) == (("delete",), "producer")
    assert (topic.delete, topic.compact) == (True, False)
    assert config.integer("replica.lag.time.max.ms") == 10_000
    assert config.integer("zookeeper.session.timeout.ms") == 6000
    assert config.node_id is None


def test_an_ipv6_listener_is_understood() -> None:
    (listener,) = BrokerConfig.load({"listeners": "PLAINTEXT://[::1]:0"}).listeners
    assert (listener.host, listener.port, str(listener)) == ("::1", 0, "PLAINTEXT://[::1]:0")


def test_a_listener_has_settings_of_its_own() -> None:
    config = BrokerConfig.load(
        {
            "log.dirs": "/data",
            "sasl.jaas.config": "of the broker",
            "listener.name.inside.sasl.jaas.config": "of the listener",
            "listener.name.inside.scram-sha-256.sasl.jaas.config": "of the mechanism",
        }
    )
    assert config.string("sasl.jaas.config") == "of the broker"
    assert config.for_listener("OUTSIDE", "SCRAM-SHA-256").string("sasl.jaas.config") == "of the broker"
    assert config.for_listener("INSIDE").string("sasl.jaas.config") == "of the listener"
    assert config.for_listener("INSIDE", "PLAIN").string("sasl.jaas.config") == "of the listener"
    assert config.for_listener("INSIDE", "SCRAM-SHA-256").string("sasl.jaas.config") == "of the mechanism"
