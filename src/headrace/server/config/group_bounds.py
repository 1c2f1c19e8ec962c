"""Bounds on consumer group timeouts, for a broker and for one group, with Kafka's error messages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from headrace.server.config.definition import ConfigError
from headrace.server.config.group_table import GROUP_SETTINGS


class Settings(Protocol):
    """The broker's settings."""

    def integer(self, name: str) -> int: ...


def check_group_times(config: Settings) -> None:
    """ConfigError unless each of the broker's defaults lies within the broker's own bounds."""
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


def check_group_settings(config: Settings, own: Mapping[str, str]) -> None:
    """ConfigError unless a group's own settings lie within the broker's bounds."""
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


def bounds(config: Settings) -> tuple[dict[str, int], dict[str, int]]:
    """The smallest and the largest values that a group may have."""
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
