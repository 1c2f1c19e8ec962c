"""The settings of a client metrics subscription (KIP-714), and which clients its `match` means, with Kafka's error messages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from headrace.server.config.definition import ConfigError, ConfigType, Setting, table

if TYPE_CHECKING:
    import re2

DEFAULT_INTERVAL_MS = 300_000
_SHORTEST_MS, _LONGEST_MS = 100, 3_600_000

SELECTORS = (
    "client_instance_id",
    "client_id",
    "client_software_name",
    "client_software_version",
    "client_source_address",
    "client_source_port",
)
"""What `match` can look at."""

CLIENT_METRICS_SETTINGS: Mapping[str, Setting] = table(
    [
        Setting(
            "metrics",
            ConfigType.LIST,
            (),
            "Prefixes of the names of the metrics that clients push, separated by commas; * for all of them.",
        ),
        Setting("interval.ms", ConfigType.INT, DEFAULT_INTERVAL_MS, "How often clients push their metrics."),
        Setting(
            "match",
            ConfigType.LIST,
            (),
            "Which clients are asked: selector=pattern, separated by commas, each pattern an RE2 regular expression that the whole "
            f"value must match. Selectors are {', '.join(SELECTORS)}. All clients without it.",
        ),
    ]
)

Patterns = tuple[tuple[str, str], ...]
"""(selector, regular expression); a client must match all of them."""


def check_names_and_interval(own: Mapping[str, str]) -> None:
    """ConfigError for a setting that does not exist, and for an interval that no client may have."""
    for name, text in own.items():
        setting = CLIENT_METRICS_SETTINGS.get(name)
        if setting is None:
            raise ConfigError(f"Unknown client metrics configuration: {name}")
        value = setting.parse(text)
        if isinstance(value, int) and not _SHORTEST_MS <= value <= _LONGEST_MS:
            raise ConfigError(
                f"Invalid value {value} for {name}, interval must be between {_SHORTEST_MS} and {_LONGEST_MS} (1 hour)"
            )


def check_match(own: Mapping[str, str]) -> None:
    """ConfigError for a pattern that no client can be compared with."""
    match = CLIENT_METRICS_SETTINGS["match"].parse(own.get("match", ""))
    assert isinstance(match, tuple)
    if match:
        patterns_of(match)


def patterns_of(match: Sequence[str]) -> Patterns:
    import re2

    found: dict[str, str] = {}
    for each in match:
        selector, equals, pattern = (part.strip() for part in each.partition("="))
        illegal = ConfigError(f"Illegal client matching pattern: {each}")
        if not equals or not pattern or "=" in pattern or selector not in SELECTORS:
            raise illegal
        try:
            compiled(pattern)
        except re2.error:
            raise illegal from None
        found[selector] = pattern
    return tuple(found.items())


@lru_cache(maxsize=256)
def compiled(pattern: str) -> re2._Regexp:
    """RE2 matches in time linear in the input, and is imported with the first pattern only."""
    import re2

    options = re2.Options()
    options.log_errors = False
    return re2.compile(pattern, options)
