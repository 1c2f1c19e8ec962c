"""Bounds on what groups may be given, for a broker and for one group, with Kafka's error messages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from headrace.server.config.definition import ConfigError
from headrace.server.config.group_table import BOUNDED, GROUP_SETTINGS


class Settings(Protocol):
    """The broker's settings."""

    def integer(self, name: str) -> int: ...


PROTOCOLS = ("consumer", "share")


def check_group_times(config: Settings) -> None:
    """ConfigError unless each of the broker's defaults lies within the broker's own bounds."""
    for name in BOUNDED:
        low, high = bound(name, "min"), bound(name, "max")
        if config.integer(high) < config.integer(low):
            raise ConfigError(f"{high} must be greater than or equal to {low}")
        value = config.integer(f"group.{name}")
        if value < config.integer(low):
            raise ConfigError(f"group.{name} must be greater than or equal to {low}")
        if value > config.integer(high):
            raise ConfigError(f"group.{name} must be less than or equal to {high}")
    for protocol in PROTOCOLS:
        heartbeat, session = (
            f"group.{protocol}.heartbeat.interval.ms",
            f"group.{protocol}.session.timeout.ms",
        )
        if config.integer(heartbeat) >= config.integer(session):
            raise ConfigError(f"{heartbeat} must be less than {session}")


def check_group_settings(config: Settings, own: Mapping[str, str]) -> None:
    """ConfigError unless a group's own settings lie within the broker's bounds."""
    values = {name: config.integer(f"group.{name}") for name in BOUNDED}
    for name, text in own.items():
        setting = GROUP_SETTINGS.get(name)
        if setting is None:
            raise ConfigError(f"Unknown group config name: {name}")
        value = setting.parse(text)
        if name not in values:
            continue
        assert isinstance(value, int)
        low, high = bound(name, "min"), bound(name, "max")
        if value < config.integer(low):
            raise ConfigError(f"{name} must be greater than or equal to {low} ({config.integer(low)})")
        if value > config.integer(high):
            raise ConfigError(f"{name} must be less than or equal to {high} ({config.integer(high)})")
        values[name] = value
    for protocol in PROTOCOLS:
        heartbeat, session = f"{protocol}.heartbeat.interval.ms", f"{protocol}.session.timeout.ms"
        if values[session] <= values[heartbeat]:
            raise ConfigError(f"{session} must be greater than {heartbeat}")


def bound(name: str, which: str) -> str:
    """`consumer.session.timeout.ms` → `group.consumer.min.session.timeout.ms`."""
    protocol, _, rest = name.partition(".")
    return f"group.{protocol}.{which}.{rest}"
