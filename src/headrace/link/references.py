"""References in settings, resolved where they are read: `${env:NAME}`, `${file:path:key}`, `${dir:path:name}`.

These are Kafka's config providers. The three names work as they are; `config.providers` gives others, with Kafka's classes. What a
reference stands for may be a secret: it never appears in a message.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from headrace.link.errors import SettingsError
from headrace.link.properties import MalformedProperties, parse

V = TypeVar("V")

_REFERENCE = re.compile(r"\$\{([^}:]+):(?:([^}]*?):)?([^}]*)\}")
_NAMES = "config.providers"
_CLASSES = {
    "EnvVarConfigProvider": "env",
    "FileConfigProvider": "file",
    "DirectoryConfigProvider": "dir",
}


@dataclass(frozen=True, slots=True)
class _Provider:
    """A configuration provider and its limits."""

    kind: str
    """One of `_CLASSES`, or the setting that names another."""
    allowed_paths: tuple[Path, ...] = ()
    """Nothing outside of these is read; empty for no limit."""
    allowed_names: str = ".*"

    def value(self, path: str, key: str) -> str:
        """SettingsError, without the name of the setting in front, when there is none."""
        if self.kind == "env":
            if re.fullmatch(self.allowed_names, key) is None or key not in os.environ:
                raise SettingsError(
                    f"the environment has no variable {key}; set it where this program starts."
                )
            return os.environ[key]
        if self.kind not in _DEFAULT:
            raise SettingsError(
                f"{self.kind} is Java code; use EnvVarConfigProvider, FileConfigProvider or DirectoryConfigProvider."
            )
        file = Path(path) / key if self.kind == "dir" else Path(path)
        if self.allowed_paths and not any(file.resolve().is_relative_to(each) for each in self.allowed_paths):
            raise SettingsError(f"{file} is outside of allowed.paths.")
        try:
            text = file.read_text()
        except (OSError, UnicodeDecodeError) as error:
            why = error.strerror if isinstance(error, OSError) else "it holds binary data"
            raise SettingsError(f"{file} cannot be read: {why}.") from None
        if self.kind == "dir":
            return text.rstrip("\r\n")  # An editor's last line break is no part of a secret.
        try:
            found = parse(text)
        except MalformedProperties as error:
            raise SettingsError(f"{file}: {error}") from None
        if key not in found:
            raise SettingsError(f"{file} has no line {key}=….")
        return found[key].value


_DEFAULT = {kind: _Provider(kind) for kind in _CLASSES.values()}


def refers(value: object) -> bool:
    """Whether there is something to resolve."""
    return isinstance(value, str) and "${" in value and _REFERENCE.search(value) is not None


def resolve(settings: Mapping[str, V], prefix: str = "") -> dict[str, V | str]:
    """The settings with each reference replaced, and without those that only say how; SettingsError names the setting and the
    reference that cannot be resolved."""
    resolver = Resolver(settings, prefix)
    return {
        name: resolver.value(name, value) if isinstance(value, str) else value
        for name, value in settings.items()
        if not name.startswith(f"{_NAMES}.")
    }


class Resolver:
    """The providers that some settings name, beside the three that are always there."""

    def __init__(self, settings: Mapping[str, object], prefix: str = "") -> None:
        self._prefix = prefix
        self._providers = dict(_DEFAULT)
        for name in filter(None, map(str.strip, str(settings.get(_NAMES, "")).split(","))):
            self._providers[name] = self._provider(settings, f"{_NAMES}.{name}")

    def _provider(self, settings: Mapping[str, object], name: str) -> _Provider:
        given = str(settings.get(f"{name}.class", ""))
        paths = str(settings.get(f"{name}.param.allowed.paths", ""))
        return _Provider(
            _CLASSES.get(given.rpartition(".")[2], f"{name}.class={given}"),
            tuple(Path(path.strip()).resolve() for path in paths.split(",") if path.strip()),
            str(settings.get(f"{name}.param.allowlist.pattern", ".*")),
        )

    def value(self, name: str, text: str) -> str:
        if not refers(text):
            return text

        def found(match: re.Match[str]) -> str:
            provider = self._providers.get(match[1])
            if provider is None:
                return match[0]  # It may mean something to others.
            try:
                return provider.value(match[2] or "", match[3])
            except SettingsError as error:
                raise SettingsError(f"{self._prefix}{name}: {match[0]} cannot be resolved: {error}") from None

        return _REFERENCE.sub(found, text)
