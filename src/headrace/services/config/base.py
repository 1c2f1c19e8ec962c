"""What every settings object shares: declared settings, overriding from outside, checking, and URL parameters.

A setting is a dataclass field made with `setting(…)`. `refresh` lets the environment override what code said,
`mistakes` lists what is wrong in one sentence each, `append_parameters` writes the rest into a URL's parameters.
"""

from __future__ import annotations

import dataclasses
import re
import types
import typing
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar

from headrace.services.config.effects import Inert, effect_of
from headrace.services.config.environment import Environment
from headrace.services.errors import ConfigError
from headrace.services.extension import ExtensionPoint
from headrace.services.url import encode, split_commas, to_text

Check = Callable[[str], str | None]
"""Given a value as text, what is wrong with it (to follow `name=value`), or None."""


@dataclass(frozen=True, slots=True)
class Setting:
    """How one field reaches the URL: under which key, encoded, appended to others, or not at all."""

    key: str = ""
    check: Check | None = None
    excluded: bool = False
    append: bool = False
    escaped: bool = False
    required: bool = False


def setting(
    default: Any = None,
    *,
    key: str = "",
    check: Check | None = None,
    excluded: bool = False,
    append: bool = False,
    escaped: bool = False,
    required: bool = False,
) -> Any:
    """Declare a setting; the arguments are those of `Setting`."""
    return field(
        default=default, metadata={"setting": Setting(key, check, excluded, append, escaped, required)}
    )


# -- checks --------------------------------------------------------------------------------------------------

MAX_LENGTH = 200


def _pattern(expression: str, allowed: str) -> Check:
    compiled = re.compile(expression)

    def check(value: str) -> str | None:
        if len(value) > MAX_LENGTH:
            return f"is longer than {MAX_LENGTH} characters"
        if compiled.fullmatch(value) is None:
            return f"has a character that is not allowed: use {allowed}"
        return None

    return check


is_name = _pattern(r"[\-._0-9a-zA-Z]+", "letters, digits, '-', '_' and '.'")
is_names = _pattern(r"[,\-._0-9a-zA-Z]+", "letters, digits, '-', '_', '.' and ','")
is_key = _pattern(r"[*,\-._0-9a-zA-Z]+", "letters, digits, '-', '_', '.', ',' and '*'")
is_path = _pattern(r"[/\-$._0-9a-zA-Z]+", "letters, digits, '/', '-', '$', '_' and '.'")
is_symbolic = _pattern(r"[:*,\s/\-._0-9a-zA-Z]+", "letters, digits and any of ': * , / - . _'")
is_method_name = _pattern(r"[a-zA-Z][0-9a-zA-Z]*", "a letter, then letters and digits")
is_short = _pattern(r"(?s).*", "any text")


def one_of(*values: str) -> Check:
    def check(value: str) -> str | None:
        return None if value.lower() in values else f"is not one of {', '.join(values)}"

    return check


def not_true(remedy: str) -> Check:
    """A switch that cannot be turned on here."""

    def check(value: str) -> str | None:
        return f"is not supported: {remedy}" if value == "true" else None

    return check


def at_least(least: int, most: int | None = None) -> Check:
    def check(value: str) -> str | None:
        number = int(value)
        if number < least or (most is not None and number > most):
            return f"is not a number from {least} to {most}" if most is not None else f"is less than {least}"
        return None

    return check


is_port = at_least(-1, 65535)
is_milliseconds = at_least(0)


def is_extension(point: ExtensionPoint[Any], *, several: bool = False) -> Check:
    """The value names an extension; with `several`, a comma list in which `-name` removes one and `default` is allowed."""

    def check(value: str) -> str | None:
        for name in split_commas(value) if several else [value]:
            bare = name.removeprefix("-") if several else name
            if several and bare == "default":
                continue
            if not point.has(bare):
                return f"names no known {point.kind}: known are {', '.join(point.names())}"
        return None

    return check


# -- the base of all settings objects ------------------------------------------------------------------------


@dataclass(kw_only=True)
class Config:
    """A group of settings with an optional id; `TAG` is its name in `dubbo.<tag>.<setting>`."""

    TAG: ClassVar[str] = ""
    PLURAL: ClassVar[str] = ""  # `dubbo.<plural>.<id>.<setting>` where several may exist

    id: str | None = None
    parameters: dict[str, str] = field(default_factory=dict)

    def prefixes(self) -> list[str]:
        """Where the environment may name this object's settings, the most exact place first."""
        places = []
        if self.id:
            if self.PLURAL:
                places.append(f"dubbo.{self.PLURAL}.{self.id}.")
            places.append(f"dubbo.{self.TAG}.{self.id}.")
        return [*places, f"dubbo.{self.TAG}."]

    @property
    def label(self) -> str:
        return f"{self.TAG} {self.id}" if self.id else self.TAG

    def settings(self) -> Iterator[tuple[str, Setting, type]]:
        """Each declared setting with its attribute name and plain type."""
        hints = _hints(type(self))
        for item in dataclasses.fields(self):
            declared = item.metadata.get("setting")
            if declared is not None:
                yield item.name, declared, hints[item.name]

    def refresh(self, environment: Environment) -> None:
        """Let properties, environment and file override what the code set."""
        prefixes = self.prefixes()
        for name, declared, kind in self.settings():
            spellings = _spellings(name, declared.key)
            found = environment.first(prefix + s for prefix in prefixes for s in spellings)
            if found is not None:
                setattr(self, name, _convert(found[0], found[1], kind))

    def mistakes(self) -> list[str]:
        """What is wrong with these settings, one sentence each."""
        found = []
        for name, declared, kind in self.settings():
            value = getattr(self, name)
            bare = name.rstrip("_")
            if value is None or value == "":
                if declared.required:
                    found.append(f"{self.label}: {bare} is missing, give it a value")
                continue
            if not _fits(value, kind):
                found.append(f"{self.label}: {bare}={value!r} is not {_KINDS.get(kind, kind.__name__)}")
                continue
            problem = declared.check(to_text(value)) if declared.check else None
            if problem is not None:
                found.append(f"{self.label}: {bare}={to_text(value)} {problem}")
        for key, value in self.parameters.items():
            problem = is_symbolic(value) if isinstance(value, str) and value else None
            if problem is not None:
                found.append(f"{self.label}: parameter {key}={value} {problem}")
        return found

    def warnings(self) -> list[str]:
        """Which of the settings given have no effect, and why, one sentence each."""
        said = []
        for name, _, _ in self.settings():
            value, effect = getattr(self, name), effect_of(type(self), name)
            if isinstance(effect, Inert) and value is not None and value != "":
                said.append(
                    f"{self.label}: {name.rstrip('_')}={to_text(value)} has no effect: {effect.reason}"
                )
        return said

    def append_parameters(self, parameters: dict[str, str], prefix: str = "") -> None:
        """Write these settings into a URL's parameters; later values replace earlier ones."""
        start = prefix + "." if prefix else ""
        for name, declared, _ in self.settings():
            if declared.excluded:
                continue
            text = to_text(getattr(self, name))
            if not text:
                continue
            key = declared.key or name.rstrip("_").replace("_", ".")
            if declared.escaped:
                text = encode(text)
            if declared.append:
                before = [parameters.get(k) for k in (key, f"default.{key}")]
                text = ",".join([*(b for b in before if b), text])
            parameters[start + key] = text
        for key, value in self.parameters.items():
            parameters[start + key.replace("-", ".")] = to_text(value)


_KINDS = {int: "a whole number", bool: "true or false", str: "text"}
_hints_of: dict[type, dict[str, type]] = {}


def _hints(cls: type) -> dict[str, type]:
    if cls not in _hints_of:
        _hints_of[cls] = {name: _plain(hint) for name, hint in typing.get_type_hints(cls).items()}
    return _hints_of[cls]


def _plain(hint: object) -> type:
    if isinstance(hint, types.UnionType):
        hint = next(arg for arg in hint.__args__ if arg is not type(None))
    return hint if isinstance(hint, type) else object


def _spellings(name: str, key: str) -> list[str]:
    """The names a setting goes by: its URL key, camelCase as in Java, dotted and with hyphens."""
    bare = name.rstrip("_")
    head, *rest = bare.split("_")
    camel = head + "".join(part.capitalize() for part in rest)
    own_key = [key] if key and "." in key else []
    return list(dict.fromkeys([camel, bare.replace("_", "-"), bare.replace("_", "."), *own_key]))


def _fits(value: object, kind: type) -> bool:
    if kind is bool:
        return isinstance(value, bool)
    if kind is int:
        return isinstance(value, int) and not isinstance(value, bool)
    if kind is str:  # `token=True` and its like: a switch or a text
        return isinstance(value, str | bool)
    return isinstance(value, kind)


def _convert(key: str, text: str, kind: type) -> object:
    if kind is bool:
        if text.lower() not in ("true", "false"):
            raise ConfigError(f"{key}={text} is neither true nor false")
        return text.lower() == "true"
    if kind is int:
        try:
            return int(text)
        except ValueError:
            raise ConfigError(f"{key}={text} is not a whole number") from None
    return text
