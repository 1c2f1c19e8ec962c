"""JAAS lines, `<login module> <flag> name="value" …;`, as `sasl.jaas.config` has them in clients and brokers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from headrace.link.errors import SettingsError

_SKIPPED = r"(?:\s|//[^\n]*|/\*.*?\*/)*"
_MODULE = rf"{_SKIPPED}(?P<module>[\w.$]+)\s+(?P<flag>\w+)"
_OPTION = rf"""{_SKIPPED}(?P<name>[\w.$-]+)\s*=\s*(?:"(?P<double>(?:[^"\\]|\\.)*)"|'(?P<single>(?:[^'\\]|\\.)*)'|(?P<bare>[^\s"';]+))"""
# Compiled when a login is read: that takes longer than this import.


@dataclass(frozen=True, slots=True)
class JaasEntry:
    """One login module and its options."""

    module: str
    """The last part of the Java class's name, such as `ScramLoginModule`."""
    options: Mapping[str, str] = field(repr=False)


def parse_jaas(text: str, setting: str = "sasl.jaas.config") -> JaasEntry:
    """SettingsError, which never shows the text, for anything but one login module."""
    start = re.compile(_MODULE, re.DOTALL).match(text)
    if start is None:
        raise _unreadable(setting)
    option = re.compile(_OPTION, re.DOTALL)
    options: dict[str, str] = {}
    position = start.end()
    while (match := option.match(text, position)) is not None:
        quoted = match["double"] if match["double"] is not None else match["single"]
        options[match["name"]] = match["bare"] if quoted is None else re.sub(r"(?s)\\(.)", r"\1", quoted)
        position = match.end()
    rest = re.compile(rf"{_SKIPPED};?{_SKIPPED}", re.DOTALL).match(text, position)
    if rest is None or rest.end() != len(text):
        raise _unreadable(setting)
    return JaasEntry(start["module"].rpartition(".")[2], options)


def _unreadable(setting: str) -> SettingsError:
    return SettingsError(
        f'{setting} cannot be read; it looks like \'<module> required username="…" password="…";\', with one module.'
    )
