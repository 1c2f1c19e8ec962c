"""Bounds on what groups may be given, for a broker and for one group, with Kafka's error messages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, Protocol

from headrace.server.config.definition import ConfigError
from headrace.server.config.group_table import GROUP_SETTINGS


class Settings(Protocol):
    """The broker's settings."""

    def integer(self, name: str) -> int: ...


PROTOCOLS = ("consumer", "share")


class Bounds(NamedTuple):
    default: int
    low: int
    high: int


def check_group_times(config: Settings) -> None:
    """ConfigError unless each of the broker's defaults lies within the broker's own bounds."""
    for name, (value, low, high) in bounds(config).items():
        lowest, highest = _bound(name, "min"), _bound(name, "max")
        if high < low:
            raise ConfigError(f"{highest} must be greater than or equal to {lowest}")
        if value < low:
            raise ConfigError(f"group.{name} must be greater than or equal to {lowest}")
        if value > high:
            raise ConfigError(f"group.{name} must be less than or equal to {highest}")
    for protocol in PROTOCOLS:
        heartbeat, session = (
            f"group.{protocol}.heartbeat.interval.ms",
            f"group.{protocol}.session.timeout.ms",
        )
        if config.integer(heartbeat) >= config.integer(session):
            raise ConfigError(f"{heartbeat} must be less than {session}")


def check_group_settings(config: Settings, own: Mapping[str, str]) -> None:
    """ConfigError unless a group's own settings lie within the broker's bounds."""
    limits = bounds(config)
    values = {name: limit.default for name, limit in limits.items()}
    for name, text in own.items():
        setting = GROUP_SETTINGS.get(name)
        if setting is None:
            raise ConfigError(f"Unknown group config name: {name}")
        value = setting.parse(text)
        limit = limits.get(name)
        if limit is None:
            continue
        assert isinstance(value, int)
        if value < limit.low:
            raise ConfigError(f"{name} must be greater than or equal to {_bound(name, 'min')} ({limit.low})")
        if value > limit.high:
            raise ConfigError(f"{name} must be less than or equal to {_bound(name, 'max')} ({limit.high})")
        values[name] = value
    for protocol in PROTOCOLS:
        heartbeat, session = f"{protocol}.heartbeat.interval.ms", f"{protocol}.session.timeout.ms"
        if values[session] <= values[heartbeat]:
            raise ConfigError(f"{session} must be greater than {heartbeat}")


def bounds(config: Settings) -> dict[str, Bounds]:
    """What a group has without a setting of its own, and the smallest and the largest that it may be given."""
    return {
        "consumer.session.timeout.ms": Bounds(
            config.integer("group.consumer.session.timeout.ms"),
            config.integer("group.consumer.min.session.timeout.ms"),
            config.integer("group.consumer.max.session.timeout.ms"),
        ),
        "consumer.heartbeat.interval.ms": Bounds(
            config.integer("group.consumer.heartbeat.interval.ms"),
            config.integer("group.consumer.min.heartbeat.interval.ms"),
            config.integer("group.consumer.max.heartbeat.interval.ms"),
        ),
        "share.session.timeout.ms": Bounds(
            config.integer("group.share.session.timeout.ms"),
            config.integer("group.share.min.session.timeout.ms"),
            config.integer("group.share.max.session.timeout.ms"),
        ),
        "share.heartbeat.interval.ms": Bounds(
            config.integer("group.share.heartbeat.interval.ms"),
            config.integer("group.share.min.heartbeat.interval.ms"),
            config.integer("group.share.max.heartbeat.interval.ms"),
        ),
        "share.record.lock.duration.ms": Bounds(
            config.integer("group.share.record.lock.duration.ms"),
            config.integer("group.share.min.record.lock.duration.ms"),
            config.integer("group.share.max.record.lock.duration.ms"),
        ),
        "share.delivery.count.limit": Bounds(
            config.integer("group.share.delivery.count.limit"),
            config.integer("group.share.min.delivery.count.limit"),
            config.integer("group.share.max.delivery.count.limit"),
        ),
        "share.partition.max.record.locks": Bounds(
            config.integer("group.share.partition.max.record.locks"),
            config.integer("group.share.min.partition.max.record.locks"),
            config.integer("group.share.max.partition.max.record.locks"),
        ),
    }


def _bound(name: str, which: str) -> str:
    """`consumer.session.timeout.ms` → `group.consumer.min.session.timeout.ms`."""
    protocol, _, rest = name.partition(".")
    return f"group.{protocol}.{which}.{rest}"
