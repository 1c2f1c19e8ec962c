import pytest

from headrace.server.config.broker import BrokerConfig
from headrace.server.config.broker_table import BROKER_SETTINGS
from headrace.server.config.definition import ConfigError, ConfigSource, ConfigType, format_value
from headrace.server.config.describe import describe_broker, describe_cluster_default, describe_topic
from headrace.server.config.topic import TOPIC_SYNONYMS, check_topic_config
from headrace.server.config.topic_table import TOPIC_SETTINGS

Source = ConfigSource


def test_every_synonym_and_default_of_a_topic_setting_agrees_with_the_broker_settings() -> None:
    defaults = BrokerConfig.load({}).topic_defaults
    for name, setting in TOPIC_SETTINGS.items():
        assert defaults[name] == setting.default, name
        for synonym in TOPIC_SYNONYMS.get(name, ()):
            assert synonym.name in BROKER_SETTINGS


def test_every_default_passes_its_own_check_when_written_as_text() -> None:
    for setting in [*TOPIC_SETTINGS.values(), *BROKER_SETTINGS.values()]:
        text = setting.format(setting.default)
        if text is not None:
            assert setting.parse(text) == setting.default


def test_a_topic_value_lists_what_it_overrides_strongest_first() -> None:
    config = BrokerConfig.load({"log.retention.hours": "2"}).with_dynamic({"log.retention.ms": "5"}, {})
    entry = next(
        entry for entry in describe_topic(config, {"retention.ms": "1"}) if entry.name == "retention.ms"
    )
    assert (entry.value, entry.source, entry.type) == ("1", Source.TOPIC_CONFIG, ConfigType.LONG)
    assert [(synonym.name, synonym.value, synonym.source) for synonym in entry.synonyms] == [
        ("retention.ms", "1", Source.TOPIC_CONFIG),
        ("log.retention.ms", "5", Source.DYNAMIC_DEFAULT_BROKER_CONFIG),
        ("log.retention.hours", "2", Source.STATIC_BROKER_CONFIG),
        ("log.retention.hours", "168", Source.DEFAULT_CONFIG),
    ]


def test_a_static_value_in_another_unit_is_reported_in_the_topics_unit() -> None:
    config = BrokerConfig.load({"log.retention.hours": "2"})
    entry = next(entry for entry in describe_topic(config, {}) if entry.name == "retention.ms")
    assert (entry.value, entry.source) == ("7200000", Source.STATIC_BROKER_CONFIG)


def test_a_topic_description_has_every_public_setting_and_nothing_internal() -> None:
    names = {entry.name for entry in describe_topic(BrokerConfig.load({}), {})}
    assert names == {name for name, setting in TOPIC_SETTINGS.items() if not setting.internal}
    assert len(names) == 34


def test_a_secret_is_never_shown() -> None:
    config = BrokerConfig.load({"ssl.key.password": "hush"})
    entry = next(entry for entry in describe_broker(config) if entry.name == "ssl.key.password")
    assert (entry.value, entry.sensitive) == (None, True)
    assert "hush" not in repr(describe_broker(config))


def test_a_broker_setting_tells_whether_it_can_change() -> None:
    entries = {entry.name: entry for entry in describe_broker(BrokerConfig.load({}))}
    assert entries["node.id"].read_only
    assert not entries["log.retention.ms"].read_only
    assert entries["log.cleaner.io.max.bytes.per.second"].value == "1.7976931348623157E308"


def test_the_cluster_default_lists_only_what_was_set() -> None:
    config = BrokerConfig.load({"log.retention.ms": "9"}).with_dynamic({"message.max.bytes": "7"}, {})
    (entry,) = describe_cluster_default(config)
    assert (entry.name, entry.value, entry.source) == (
        "message.max.bytes",
        "7",
        Source.DYNAMIC_DEFAULT_BROKER_CONFIG,
    )


@pytest.mark.parametrize(
    ("overrides", "complaint"),
    [
        ({"retention": "1"}, "Unknown topic config name: retention"),
        ({"retention.ms": "-2"}, "Value must be at least -1"),
        ({"min.compaction.lag.ms": "5", "max.compaction.lag.ms": "4"}, "conflict topic config setting"),
        ({"remote.storage.enable": "true"}, "Tiered Storage functionality is disabled"),
        ({"leader.replication.throttled.replicas": "a:b"}, "[partitionId]:[brokerId]"),
        ({"compression.gzip.level": "0"}, "between 1 and 9 or equal to -1"),
    ],
)
def test_a_topic_setting_that_cannot_work_is_refused(overrides: dict[str, str], complaint: str) -> None:
    with pytest.raises(ConfigError) as caught:
        check_topic_config(BrokerConfig.load({}).topic_config(overrides))
    assert complaint in str(caught.value)


def test_values_are_written_as_kafka_writes_them() -> None:
    assert [format_value(value) for value in (True, 0.5, ("a", "b"), (), None, 7, 1e-07)] == [
        "true", "0.5", "a,b", "", None, "7", "1E-07",
    ]  # fmt: skip


def test_a_setting_that_does_not_act_describes_its_value_and_says_so() -> None:
    config = BrokerConfig.load({"num.network.threads": "9"})
    described = {entry.name: entry for entry in describe_broker(config)}
    assert described["num.network.threads"].value == "9"
    assert "Does not act: one event loop" in str(described["num.network.threads"].documentation)
    assert "Does not act" not in str(described["num.io.threads"].documentation)
    topic = {entry.name: entry for entry in describe_topic(config, {"local.retention.ms": "5"})}
    assert topic["local.retention.ms"].value == "5"
    assert "Does not act: there is no remote" in str(topic["local.retention.ms"].documentation)
