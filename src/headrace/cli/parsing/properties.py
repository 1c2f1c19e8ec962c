"""Client properties from files and from `key=value` arguments."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from headrace.cli.failure import Failure, Misuse


def load(path: Path) -> dict[str, str]:
    from headrace.server.config.definition import ConfigError
    from headrace.server.config.properties import read_properties

    try:
        return read_properties(path)
    except ConfigError as error:
        raise Failure(str(error)) from None


def load_with_places(path: Path) -> tuple[dict[str, str], dict[str, str]]:
    """The settings of a file, and for each the file and line where it stands."""
    from headrace.server.config.definition import ConfigError
    from headrace.server.config.properties import read_entries

    try:
        entries = read_entries(path)
    except ConfigError as error:
        raise Failure(str(error)) from None
    return (
        {key: entry.value for key, entry in entries.items()},
        {key: f"{path}:{entry.line}" for key, entry in entries.items()},
    )


def feature_level(text: str) -> tuple[str, int]:
    """`transaction.version=2`"""
    name, equals, level = text.partition("=")
    if not equals or not name.strip() or not level.strip().isdecimal():
        raise Failure(f"A feature level looks like transaction.version=2, not '{text}'.")
    return name.strip(), int(level)


def from_arguments(arguments: Iterable[str], option: str) -> dict[str, str]:
    """`key=value` arguments; a value may hold further '=' signs, and `key=` is an empty value."""
    entries: dict[str, str] = {}
    for argument in arguments:
        key, equals, value = argument.partition("=")
        if not equals or not key.strip():
            raise Misuse(f"{option} takes key=value, not '{argument}'.")
        entries[key.strip()] = value
    return entries
