"""Settings as DescribeConfigs reports them: the value in effect, its source, and what it overrides."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from headrace.server.config.broker import SYNONYM_GROUPS, BrokerConfig, base_setting
from headrace.server.config.broker_table import BROKER_SETTINGS, DYNAMIC_ONLY
from headrace.server.config.client_metrics import CLIENT_METRICS_SETTINGS
from headrace.server.config.definition import ConfigSource, ConfigType, Setting, UpdateMode, format_value
from headrace.server.config.group_table import GROUP_SETTINGS
from headrace.server.config.inert import INERT, INERT_IN_TOPICS
from headrace.server.config.topic import TOPIC_SYNONYMS
from headrace.server.config.topic_table import TOPIC_SETTINGS


@dataclass(frozen=True, slots=True)
class ConfigSynonym:
    name: str
    value: str | None
    source: ConfigSource


@dataclass(frozen=True, slots=True)
class ConfigEntry:
    """One setting. `value` is None for a secret; `synonyms` are in order of precedence."""

    name: str
    value: str | None
    source: ConfigSource
    read_only: bool
    sensitive: bool
    type: ConfigType | None
    documentation: str | None
    synonyms: tuple[ConfigSynonym, ...]

    @property
    def is_default(self) -> bool:
        return self.source is ConfigSource.DEFAULT_CONFIG


def describe_topic(config: BrokerConfig, overrides: Mapping[str, str]) -> list[ConfigEntry]:
    """Every public topic setting, for a topic with these settings of its own."""
    values = {**config.topic_defaults}
    values.update(
        (name, TOPIC_SETTINGS[name].parse(text)) for name, text in overrides.items() if name in TOPIC_SETTINGS
    )
    entries: list[ConfigEntry] = []
    for name, setting in TOPIC_SETTINGS.items():
        if setting.internal and name not in overrides:
            continue
        synonyms: list[ConfigSynonym] = []
        if name in overrides:
            synonyms.append(ConfigSynonym(name, overrides[name], ConfigSource.TOPIC_CONFIG))
        synonyms.extend(_broker_synonyms(config, (synonym.name for synonym in TOPIC_SYNONYMS.get(name, ()))))
        text = documentation(setting, INERT_IN_TOPICS)
        entries.append(_entry(setting, name, format_value(values[name]), synonyms, False, text))
    return entries


def documentation(setting: Setting, inert: Mapping[str, str]) -> str:
    """What a setting is for and, if it does not act, why."""
    reason = inert.get(setting.name)
    return setting.doc if reason is None else f"{setting.doc} Does not act: {reason}."


def describe_broker(config: BrokerConfig) -> list[ConfigEntry]:
    """Every public setting of this broker, and those set for one listener."""
    names = [
        name for name, setting in BROKER_SETTINGS.items() if not setting.internal and name not in DYNAMIC_ONLY
    ]
    given = {**config.static, **config.dynamic_default, **config.dynamic_broker}
    names.extend(name for name in given if name not in BROKER_SETTINGS or name in DYNAMIC_ONLY)
    entries: list[ConfigEntry] = []
    for name in names:
        setting = base_setting(name)
        synonyms = _broker_synonyms(config, _equals(name))
        value = format_value(config.value(name)) if name in BROKER_SETTINGS else given[name]
        if name in config.references and synonyms[0].source is ConfigSource.STATIC_BROKER_CONFIG:
            value = config.references[name]
        read_only = setting is None or setting.update is UpdateMode.READ_ONLY
        entries.append(_entry(setting, name, value, synonyms, read_only))
    return entries


def describe_cluster_default(config: BrokerConfig) -> list[ConfigEntry]:
    """The cluster-wide dynamic defaults only."""
    entries: list[ConfigEntry] = []
    for name, text in config.dynamic_default.items():
        setting = base_setting(name)
        sensitive = setting is None or setting.sensitive
        synonym = ConfigSynonym(name, None if sensitive else text, ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG)
        read_only = setting is None or setting.update is UpdateMode.READ_ONLY
        entries.append(_entry(setting, name, text, [synonym], read_only))
    return entries


def describe_group(config: BrokerConfig, overrides: Mapping[str, str]) -> list[ConfigEntry]:
    """The settings of a group; the broker's group.* settings of the same name are the defaults of most."""
    entries: list[ConfigEntry] = []
    for name, setting in GROUP_SETTINGS.items():
        synonyms: list[ConfigSynonym] = []
        value = format_value(setting.default)
        broker_name = f"group.{name}"
        if broker_name in BROKER_SETTINGS:
            synonyms = _broker_synonyms(config, (broker_name,))
            value = format_value(config.value(broker_name))
        if name in overrides:
            value = overrides[name]
            synonyms.insert(0, ConfigSynonym(name, value, ConfigSource.GROUP_CONFIG))
        entries.append(_entry(setting, name, value, synonyms, read_only=False))
    return entries


def describe_client_metrics(own: Mapping[str, str]) -> list[ConfigEntry]:
    """The settings of a client metrics subscription; one that does not exist has the defaults, as in Kafka."""
    entries: list[ConfigEntry] = []
    for name, setting in CLIENT_METRICS_SETTINGS.items():
        value = own.get(name, format_value(setting.default))
        synonyms = [ConfigSynonym(name, value, ConfigSource.CLIENT_METRICS_CONFIG)] if name in own else []
        entries.append(_entry(setting, name, value, synonyms, read_only=False))
    return entries


def _equals(name: str) -> tuple[str, ...]:
    return next((group[group.index(name) :] for group in SYNONYM_GROUPS if name in group), (name,))


def _broker_synonyms(config: BrokerConfig, names: Iterable[str]) -> list[ConfigSynonym]:
    candidates = tuple(names)
    found: list[ConfigSynonym] = []
    layers = (
        (config.dynamic_broker, ConfigSource.DYNAMIC_BROKER_CONFIG),
        (config.dynamic_default, ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG),
        (config.static, ConfigSource.STATIC_BROKER_CONFIG),
    )
    for layer, source in layers:
        for name in candidates:
            if name in layer:
                setting = base_setting(name)
                secret = setting is None or setting.sensitive
                text = config.references.get(name) if layer is config.static else None
                found.append(ConfigSynonym(name, None if secret else text or layer[name], source))
    for name in candidates:
        setting = BROKER_SETTINGS.get(name)
        if setting is not None and setting.default is not None:
            found.append(ConfigSynonym(name, format_value(setting.default), ConfigSource.DEFAULT_CONFIG))
    return found


def _entry(
    setting: Setting | None,
    name: str,
    value: str | None,
    synonyms: list[ConfigSynonym],
    read_only: bool,
    text: str | None = None,
) -> ConfigEntry:
    # An unknown setting may hold a secret, so it is treated as one.
    sensitive = setting is None or setting.sensitive
    return ConfigEntry(
        name=name,
        value=None if sensitive else value,
        source=synonyms[0].source if synonyms else ConfigSource.DEFAULT_CONFIG,
        read_only=read_only,
        sensitive=sensitive,
        type=setting.type if setting is not None else None,
        documentation=text if text is not None or setting is None else documentation(setting, INERT),
        synonyms=tuple(synonyms),
    )
