"""Bounds on consumer group timeouts, of a broker and of one group, with Kafka's messages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from headrace.server.config.definition import ConfigError
from headrace.server.config.group_table import GROUP_SETTINGS

if TYPE_CHECKING:
    from headrace.server.config.broker import BrokerConfig


def check_group_times(config: BrokerConfig) -> None:
    """Of a broker: every default lies within its own bounds."""
    minimum, maximum = bounds(config)
    for name in GROUP_SETTINGS:
        low, high = f"group.{_bound(name, 'min')}", f"group.{_bound(name, 'max')}"
        if maximum[name] < minimum[name]:
            raise ConfigError(f"{high} must be greater than or equal to {low}")
        value = config.integer(f"group.{name}")
        if value < minimum[name]:
            raise ConfigError(f"group.{name} must be greater than or equal to {low}")
        if value > maximum[name]:
            raise ConfigError(f"group.{name} must be less than or equal to {high}")
    if config.integer("group.consumer.heartbeat.interval.ms") >= config.integer(
        "group.consumer.session.timeout.ms"
    ):
        raise ConfigError(
            "group.consumer.heartbeat.interval.ms must be less than group.consumer.session.timeout.ms"
        )


def check_group_settings(config: BrokerConfig, own: Mapping[str, str]) -> None:
    """Of one group with these settings of its own."""
    minimum, maximum = bounds(config)
    values = {name: config.integer(f"group.{name}") for name in GROUP_SETTINGS}
    for name, text in own.items():
        setting = GROUP_SETTINGS.get(name)
        if setting is None:
            raise ConfigError(f"Unknown group config name: {name}")
        value = setting.parse(text)
        assert isinstance(value, int)
        if value < minimum[name]:
            raise ConfigError(
                f"{name} must be greater than or equal to group.{_bound(name, 'min')} ({minimum[name]})"
            )
        if value > maximum[name]:
            raise ConfigError(
                f"{name} must be less than or equal to group.{_bound(name, 'max')} ({maximum[name]})"
            )
        values[name] = value
    if values["consumer.session.timeout.ms"] <= values["consumer.heartbeat.interval.ms"]:
        raise ConfigError("consumer.session.timeout.ms must be greater than consumer.heartbeat.interval.ms")


def bounds(config: BrokerConfig) -> tuple[dict[str, int], dict[str, int]]:
    """The smallest and the largest values that groups may be given."""
    minimum = {
        "consumer.session.timeout.ms": config.integer("group.consumer.min.session.timeout.ms"),
        "consumer.heartbeat.interval.ms": config.integer("group.consumer.min.heartbeat.interval.ms"),
    }
    maximum = {
        "consumer.session.timeout.ms": config.integer("group.consumer.max.session.timeout.ms"),
        "consumer.heartbeat.interval.ms": config.integer("group.consumer.max.heartbeat.interval.ms"),
    }
    return minimum, maximum


def _bound(name: str, which: str) -> str:
    """`consumer.session.timeout.ms` → `consumer.min.session.timeout.ms`."""
    protocol, _, rest = name.partition(".")
    return f"{protocol}.{which}.{rest}"
