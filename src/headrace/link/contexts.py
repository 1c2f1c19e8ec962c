"""Contexts: named clusters with the settings a client needs to reach them and log in.

Owns `$XDG_CONFIG_HOME/headrace/contexts.toml`. The file may hold passwords, so its mode is 0600; it is replaced whole, and
two commands that change it at the same time take turns.
"""

from __future__ import annotations

import fcntl
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from headrace.link.errors import SettingsError
from headrace.nearest import nearest
from headrace.replacing import replace_file

VARIABLE = "HEADRACE_CONTEXT"
HIDDEN = "********"

_SERVERS = "bootstrap.servers"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_SECRET = re.compile(r"password|passphrase|secret|jaas\.config|keystore\.key$|key\.pem$|oauthbearer\.config$")


@dataclass(frozen=True, slots=True)
class Context:
    name: str
    properties: Mapping[str, str] = field(repr=False)
    """Client settings by the Java client's names or librdkafka's, `bootstrap.servers` among them."""

    @property
    def servers(self) -> str:
        return self.properties[_SERVERS]

    @property
    def shown(self) -> dict[str, str]:
        """The settings without secrets."""
        return {
            name: HIDDEN if _SECRET.search(name) and value else value
            for name, value in self.properties.items()
        }


class ContextServers(str):
    """The bootstrap servers of a context, which bring the context's other settings along."""

    context: Context

    @classmethod
    def of(cls, context: Context) -> ContextServers:
        servers = cls(context.servers)
        servers.context = context
        return servers


def properties_of(servers: str | None) -> dict[str, str]:
    """What a client needs besides the servers: nothing, unless they are those of a context."""
    if not isinstance(servers, ContextServers):
        return {}
    return {name: value for name, value in servers.context.properties.items() if name != _SERVERS}


@dataclass(slots=True)
class Contexts:
    """All contexts by name, in the order in which they were added, and the one in use."""

    by_name: dict[str, Context] = field(default_factory=dict)
    current: str | None = None

    def get(self, name: str) -> Context:
        context = self.by_name.get(name)
        if context is None:
            near = nearest(name, self.by_name)
            hint = f" Did you mean '{near}'?" if near else ""
            raise SettingsError(
                f"There is no context '{name}'.{hint} 'headrace context list' shows what there is."
            )
        return context

    def in_use(self) -> Context | None:
        return None if self.current is None else self.get(self.current)

    def add(self, context: Context, *, replace: bool = False) -> None:
        _check_name(context.name)
        if context.name in self.by_name and not replace:
            raise SettingsError(
                f"There is a context '{context.name}' already; choose another name, or replace it with --replace."
            )
        self.by_name[context.name] = context

    def use(self, name: str) -> Context:
        context = self.get(name)
        self.current = name
        return context

    def rename(self, old: str, new: str) -> None:
        self.get(old)
        _check_name(new)
        if new in self.by_name and new != old:
            raise SettingsError(
                f"There is a context '{new}' already; choose another name, or remove it first."
            )
        self.by_name = {
            new if name == old else name: Context(new, context.properties) if name == old else context
            for name, context in self.by_name.items()
        }
        if self.current == old:
            self.current = new

    def remove(self, name: str) -> None:
        self.get(name)
        del self.by_name[name]
        if self.current == name:
            self.current = None


def contexts_file() -> Path:
    home = os.environ.get("XDG_CONFIG_HOME") or os.path.join(os.path.expanduser("~"), ".config")
    return Path(home, "headrace", "contexts.toml")


def load(file: Path) -> Contexts:
    """No contexts when there is no file. SettingsError when it cannot be read."""
    try:
        text = file.read_text(encoding="utf-8")
    except FileNotFoundError:
        return Contexts()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise SettingsError(f"{file} cannot be read: {reason}.") from None
    import tomllib

    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(f"{file} is not TOML: {error}; correct or remove it.") from None
    return _contexts(document, file)


@contextmanager
def changing(file: Path) -> Iterator[Contexts]:
    """The contexts to change; they are written when the block ends without an error."""
    file = Path(os.path.realpath(file))  # a symlink, as dotfile managers make it, stays a symlink
    try:
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with open(file.with_name(f".{file.name}.lock"), "a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            contexts = load(file)
            yield contexts
            replace_file(file, _toml(contexts), mode=0o600)
    except (OSError, UnicodeEncodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "a name or value in it is not text"
        raise SettingsError(f"{file} cannot be written: {reason}.") from None


def _contexts(document: Mapping[str, object], file: Path) -> Contexts:
    contexts = Contexts()
    tables = document.get("contexts", {})
    if not isinstance(tables, dict):
        raise SettingsError(f"{file}: contexts is not a table; write each context as [contexts.NAME].")
    for name, table in tables.items():
        if not isinstance(table, dict) or not all(isinstance(value, str) for value in table.values()):
            raise SettingsError(
                f'{file}: the context {name} holds something else than text; write settings as "name" = "value".'
            )
        if not table.get(_SERVERS):
            raise SettingsError(f'{file}: the context {name} has no "{_SERVERS}"; add it.')
        contexts.by_name[name] = Context(name, table)
    current = document.get("current")
    if current is not None:
        contexts.current = str(current)
    return contexts


def _toml(contexts: Contexts) -> str:
    lines = ["# Kept by 'headrace context'."]
    if contexts.current is not None:
        lines.append(f"current = {_quoted(contexts.current)}")
    for context in contexts.by_name.values():
        lines += ["", f"[contexts.{_quoted(context.name)}]"]
        lines += [f"{_quoted(name)} = {_quoted(value)}" for name, value in context.properties.items()]
    return "\n".join([*lines, ""])


def _quoted(text: str) -> str:
    import json

    # JSON's escapes are TOML's too, except for the one control character that JSON leaves as it is.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _check_name(name: str) -> None:
    if not _NAME.fullmatch(name):
        raise SettingsError(
            f"A context is named with letters, digits, '.', '_' and '-', at most 100, not '{name}'."
        )
