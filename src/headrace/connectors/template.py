"""A connector's file to begin with: what must be given stands there with an example, the rest as a comment."""

from __future__ import annotations

from dataclasses import MISSING, Field
from typing import Any

from headrace.connectors import catalogue
from headrace.connectors.settings import describe
from headrace.connectors.topic import Run, TopicIn, TopicOut


def template(direction: catalogue.Direction, kind: str, name: str) -> str:
    """TOML for a connector of this kind; ConfigError when there is none."""
    found = catalogue.find(direction, kind)
    lines = [f"# {found.summary}", f"# Delivery: {found.delivery}.", f'name = "{name}"', "", "[topic]"]
    lines += _settings(TopicOut if direction == "source" else TopicIn)
    lines += ["", f"[{direction}]", f'type = "{kind}"']
    lines += _settings(found.Settings)
    lines += ["", "[run]"]
    lines += _settings(Run)
    return "\n".join(lines) + "\n"


def _settings(kind: type) -> list[str]:
    lines: list[str] = []
    for field, words in describe(kind):
        required = field.default is MISSING and field.default_factory is MISSING
        lines.append(f"# {field.metadata['help']}")
        lines.append(f"{'' if required else '# '}{field.name} = {_toml(_shown(field, words))}")
    return lines


def _shown(field: Field[Any], words: str) -> object:
    example = field.metadata.get("example")
    if example is not None:
        return example
    if field.default is MISSING:
        return {} if words == "a table" else "..."
    return "..." if field.default is None and words == "a text" else field.default


def _toml(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple | list):
        return "[" + ", ".join(_toml(each) for each in value) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {_toml(each)}" for key, each in value.items()) + "}"
    if value is None:
        return "1"
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    return f"{value:g}" if isinstance(value, float) else str(value)
