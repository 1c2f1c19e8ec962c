"""What a setting is: its name, type, default, check, and when it may be changed.

Values arrive as text (a properties file, a request) and leave as text (DescribeConfigs); in between they are typed. Error messages
follow Kafka's, because users and tools recognise them.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

Value = bool | int | float | str | tuple[str, ...] | None
Check = Callable[[Value], str | None]
"""Checks a typed value; returns what is wrong with it, or None."""

INT_MAX = 2**31 - 1
LONG_MAX = 2**63 - 1


class ConfigError(ValueError):
    """An invalid setting; the message is what the user reads."""


class ConfigType(enum.IntEnum):
    """Types with the numbers DescribeConfigs sends."""

    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


class ConfigSource(enum.IntEnum):
    """Where a value comes from, with the numbers DescribeConfigs sends."""

    UNKNOWN = 0
    TOPIC_CONFIG = 1
    DYNAMIC_BROKER_CONFIG = 2
    DYNAMIC_DEFAULT_BROKER_CONFIG = 3
    STATIC_BROKER_CONFIG = 4
    DEFAULT_CONFIG = 5
    DYNAMIC_BROKER_LOGGER_CONFIG = 6
    CLIENT_METRICS_CONFIG = 7
    GROUP_CONFIG = 8


class UpdateMode(enum.Enum):
    """Whether a broker setting can change while the broker runs, and for one broker or the whole cluster."""

    READ_ONLY = "read-only"
    PER_BROKER = "per-broker"
    CLUSTER_WIDE = "cluster-wide"


class Importance(enum.Enum):
    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


_INTEGER_BOUNDS = {
    ConfigType.SHORT: (-(2**15), 2**15 - 1),
    ConfigType.INT: (-(2**31), INT_MAX),
    ConfigType.LONG: (-(2**63), LONG_MAX),
}


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting. `default` is typed; None means that there is no value unless one is set."""

    name: str
    type: ConfigType
    default: Value
    doc: str
    check: Check | None = None
    importance: Importance = Importance.MEDIUM
    update: UpdateMode = UpdateMode.READ_ONLY
    internal: bool = False

    @property
    def sensitive(self) -> bool:
        return self.type is ConfigType.PASSWORD

    def parse(self, text: str) -> Value:
        """The typed value of `text`, checked; raises ConfigError with Kafka's message."""
        value = self._typed(text.strip())
        complaint = self.check(value) if self.check is not None else None
        if complaint is not None:
            shown = "[hidden]" if self.sensitive else text.strip()
            raise ConfigError(f"Invalid value {shown} for configuration {self.name}: {complaint}")
        return value

    def _typed(self, text: str) -> Value:
        kind = self.type
        if kind is ConfigType.BOOLEAN:
            lowered = text.lower()
            if lowered not in ("true", "false"):
                raise self._bad(text, "Expected value to be either true or false")
            return lowered == "true"
        if kind in _INTEGER_BOUNDS:
            low, high = _INTEGER_BOUNDS[kind]
            try:
                # int() also takes "1_000" and other scripts' digits, which Kafka does not.
                number = int(text) if text.isascii() and "_" not in text else None
            except ValueError:
                number = None
            if number is None or not low <= number <= high:
                raise self._bad(text, f"Not a number of type {kind.name}")
            return number
        if kind is ConfigType.DOUBLE:
            try:
                return float(text)
            except ValueError:
                raise self._bad(text, f"Not a number of type {kind.name}") from None
        if kind is ConfigType.LIST:
            return tuple(part.strip() for part in text.split(",")) if text else ()
        return text

    def _bad(self, text: str, why: str) -> ConfigError:
        return ConfigError(f"Invalid value {text} for configuration {self.name}: {why}")

    def format(self, value: Value) -> str | None:
        return format_value(value)


def format_value(value: Value) -> str | None:
    """A typed value as Kafka writes it."""
    if value is None:
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return repr(value).replace("e+", "E").replace("e", "E")
    if isinstance(value, tuple):
        return ",".join(value)
    return str(value)


def at_least(low: float) -> Check:
    def check(value: Value) -> str | None:
        if isinstance(value, int | float) and value < low:
            return f"Value must be at least {low}"
        return None

    return check


def between(low: float, high: float) -> Check:
    def check(value: Value) -> str | None:
        if isinstance(value, int | float):
            if value < low:
                return f"Value must be at least {low}"
            if value > high:
                return f"Value must be no more than {high}"
        return None

    return check


def one_of(*allowed: str) -> Check:
    def check(value: Value) -> str | None:
        return None if value in allowed else f"String must be one of: {', '.join(allowed)}"

    return check


def one_of_any_case(*allowed: str) -> Check:
    def check(value: Value) -> str | None:
        known = isinstance(value, str) and value.upper() in allowed
        return None if known else f"String must be one of (case insensitive): {', '.join(allowed)}"

    return check


def list_of(*allowed: str, may_be_empty: bool = False) -> Check:
    def check(value: Value) -> str | None:
        if not isinstance(value, tuple):
            return None
        if not value and not may_be_empty:
            return "the list must not be empty"
        wrong = [part for part in value if part not in allowed]
        return f"String must be one of: {', '.join(allowed)}" if wrong else None

    return check


def table(settings: Iterable[Setting]) -> Mapping[str, Setting]:
    """Settings by name; a name must not be defined twice."""
    by_name: dict[str, Setting] = {}
    for setting in settings:
        if setting.name in by_name:
            raise AssertionError(f"setting {setting.name} is defined twice")
        by_name[setting.name] = setting
    return by_name
