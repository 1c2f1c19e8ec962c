"""A starting point for a connector's file: required settings with an example, the others as comments."""

from __future__ import annotations

import re
from dataclasses import MISSING, Field
from typing import Any

from headrace.connectors import catalogue
from headrace.connectors.settings import describe
from headrace.connectors.topic import RunSettings, TopicIn, TopicOut

_HEAD = """\
# A line that begins with "# name =" is a setting with its default; "e.g." marks an example of one that has none.
# Then: headrace connect check FILE."""


def template(direction: catalogue.Direction, kind: str, name: str) -> str:
    """TOML for a connector of this kind; ConfigError when there is none."""
    found = catalogue.find(direction, kind)
    lines = [
        f"# {found.summary}",
        f"# Delivery: {found.delivery}.",
        _HEAD,
        f"name = {_toml(name)}",
        "",
        "[topic]",
    ]
    lines += _settings(TopicOut if direction == "source" else TopicIn)
    lines += ["", f"[{direction}]", f"type = {_toml(kind)}"]
    lines += _settings(found.Settings)
    lines += ["", "[run]"]
    lines += _settings(RunSettings)
    return "\n".join(lines) + "\n"


def _settings(kind: type) -> list[str]:
    lines: list[str] = []
    for field, words in describe(kind):
        lines.append(f"# {field.metadata['help']}")
        if field.default is MISSING and field.default_factory is MISSING:
            lines.append(f"{field.name} = {_toml(_example(field, words))}")
        elif (default := _default(field)) is not None:
            shown = _duration(default) if words == "a duration" else default
            lines.append(f"# {field.name} = {_toml(shown)}")
        else:
            lines.append(f"# {field.name} = {_toml(_example(field, words))}    # e.g.")
    return lines


def _default(field: Field[Any]) -> object:
    default = field.default if field.default_factory is MISSING else field.default_factory()
    return None if default in ((), {}) else default


def _example(field: Field[Any], words: str) -> object:
    """A value to show: the setting's own example, else what its type allows."""
    if (given := field.metadata.get("example")) is not None:
        return given
    numbers: dict[str, object] = {"a whole number": 1, "a number": 1.0, "a duration": "5 seconds"}
    others: dict[str, object] = {"texts": [], "a table": {}, "true or false": True, "a text": "..."}
    if words in numbers:
        return field.metadata.get("minimum") or numbers[words]
    return others[words] if words in others else words.replace(" or ", ", ").split(", ")[0]


def _duration(seconds: object) -> object:
    """As people write it: 300 is "5 minutes"."""
    assert isinstance(seconds, int | float)
    for unit, length in (("hour", 3600), ("minute", 60), ("second", 1)):
        count = seconds / length
        if count >= 1 and count == int(count):
            return f"{count:g} {unit}{'' if count == 1 else 's'}"
    return seconds


def _toml(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple | list):
        return "[" + ", ".join(_toml(each) for each in value) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_key(key)} = {_toml(each)}" for key, each in value.items()) + "}"
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    return f"{value:g}" if isinstance(value, float) else str(value)


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _toml(name)
