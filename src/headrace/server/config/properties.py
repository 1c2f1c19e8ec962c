"""A `server.properties` file, read as it is."""

from __future__ import annotations

import re
from pathlib import Path

from headrace.link.properties import Entry, MalformedProperties, parse
from headrace.server.config.definition import ConfigError

_BINARY = re.compile(rb"[\x00-\x08\x0e-\x1f]")


def read_properties(path: Path) -> dict[str, str]:
    """The settings in `path`; the last value of a repeated key counts, as in Java."""
    return {key: entry.value for key, entry in read_entries(path).items()}


def read_entries(path: Path) -> dict[str, Entry]:
    """The settings in `path`, each with its line."""
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise ConfigError(f"Cannot read {path}: {error.strerror}.") from None
    if _BINARY.search(raw):
        raise ConfigError(f"{path} is not a settings file: it holds binary data, not lines of key=value.")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = raw.decode("latin-1")
    try:
        return parse(text)
    except MalformedProperties as error:
        raise ConfigError(f"{path}: {error}") from None


def parse_properties(text: str) -> dict[str, str]:
    try:
        return {key: entry.value for key, entry in parse(text).items()}
    except MalformedProperties as error:
        raise ConfigError(str(error)) from None
