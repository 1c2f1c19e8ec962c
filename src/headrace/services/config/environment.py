"""Where settings come from outside the code: `-D` properties, the environment, a file, in that order.

Owns the three tables and nothing else. A property `dubbo.protocol.port` is found in the environment as
`dubbo.protocol.port` or `DUBBO_PROTOCOL_PORT`. Properties come from the interpreter's own command line
(`python -X dubbo.protocol.port=20881 app.py`), from `headrace services … -D key=value`, or from `set_property`.
"""

from __future__ import annotations

import os
import re
import sys
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path

from headrace.services.errors import ConfigError
from headrace.services.url import to_text

DEFAULT_FILES = ("dubbo.properties", "dubbo.toml")
FILE_PROPERTY = "dubbo.properties.file"


class Environment:
    """One application's view of the outside world; the first source that has a value wins."""

    def __init__(
        self,
        properties: Mapping[str, str] | None = None,
        variables: Mapping[str, str] | None = None,
        file: str | Path | None = None,
    ) -> None:
        interpreter = {k: v for k, v in sys._xoptions.items() if isinstance(v, str) and "." in k}
        self._properties: dict[str, str] = {**interpreter, **(properties or {})}
        self._variables = os.environ if variables is None else variables
        self._file: dict[str, str] = {}
        path = file or self.system(FILE_PROPERTY)
        if path:
            self.load_file(Path(path))
        else:
            for name in DEFAULT_FILES:
                if Path(name).is_file():
                    self.load_file(Path(name))
                    break

    def set_property(self, key: str, value: object) -> None:
        self._properties[key] = to_text(value)

    def load_file(self, path: Path) -> None:
        self._file.update(read_settings(path))

    def system(self, key: str) -> str | None:
        """A property or an environment variable, never the file."""
        for value in (
            self._properties.get(key),
            self._variables.get(key),
            self._variables.get(_os_style(key)),
        ):
            if value is not None and value.strip():
                return value.strip()
        return None

    def get(self, key: str) -> str | None:
        value = self.system(key)
        if value is None:
            value = (self._file.get(key) or "").strip() or None
        return value

    def first(self, keys: Iterable[str]) -> tuple[str, str] | None:
        """The key and value of the first hit, source by source: a nearer source beats a more exact key."""
        names = list(keys)
        for source in (self._properties, self._variables, self._file):
            for key in names:
                spellings = (key, _os_style(key)) if source is self._variables else (key,)
                for spelling in spellings:
                    value = source.get(spelling, "").strip()
                    if value:
                        return key, value
        return None

    def ids(self, prefix: str) -> list[str]:
        """The ids named below a prefix: `dubbo.registries.` → `["east", "west"]` (not from variables)."""
        found: dict[str, None] = {}
        for source in (self._properties, self._file):
            for key in source:
                if key.startswith(prefix) and "." in key[len(prefix) :]:
                    found[key[len(prefix) :].partition(".")[0]] = None
        return list(found)


def _os_style(key: str) -> str:
    return re.sub(r"[.\-]", "_", key).upper()


def read_settings(path: Path) -> dict[str, str]:
    """Read a `.properties` or `.toml` file into flat `dubbo.…` keys."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"the settings file {path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ConfigError(f"the settings file {path} is not UTF-8 text") from None
    if path.suffix != ".toml":
        return read_properties(text)
    try:
        return dict(_flatten(tomllib.loads(text), ""))
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"the settings file {path} is not valid TOML: {error}") from None


def _flatten(table: Mapping[str, object], prefix: str) -> Iterable[tuple[str, str]]:
    for key, value in table.items():
        if isinstance(value, Mapping):
            yield from _flatten(value, f"{prefix}{key}.")
        elif isinstance(value, list):
            yield prefix + key, ",".join(to_text(item) for item in value)
        else:
            yield prefix + key, to_text(value)


def read_properties(text: str) -> dict[str, str]:
    """Java's properties format: `#`/`!` comments, `=`, `:` or blank between, `\\` joins lines and escapes."""
    settings: dict[str, str] = {}
    lines = iter(text.splitlines())
    for raw in lines:
        line = raw.lstrip()
        if not line or line[0] in "#!":
            continue
        while _continues(line):
            line = line[:-1] + next(lines, "").lstrip()
        match = re.match(r"((?:\\.|[^\\\s=:])*)\s*[=:]?\s*(.*)", line, re.DOTALL)
        assert match is not None  # every part of the pattern may be empty
        settings[_unescape(match[1])] = _unescape(match[2])
    return settings


def _continues(line: str) -> bool:
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1


def _unescape(text: str) -> str:
    plain = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}

    def one(match: re.Match[str]) -> str:
        if match[1]:
            return chr(int(match[1], 16))
        return plain.get(match[2], match[2])

    return re.sub(r"\\(?:u([0-9a-fA-F]{4})|(.))", one, text, flags=re.DOTALL)
