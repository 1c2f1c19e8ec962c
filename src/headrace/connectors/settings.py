"""Settings as a frozen dataclass: declared once with type, default and help, checked as a whole.

``check`` names every mistake in a sentence of its own, and an unknown setting with the nearest known one.
"""

from __future__ import annotations

import dataclasses
import math
import re
import types
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, Field
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from headrace.connectors.errors import ConfigError
from headrace.nearest import nearest

Seconds = Annotated[float, "seconds"]
"""A duration: "5 seconds", "2 minutes", or a number of seconds."""

T = TypeVar("T")
_UNITS = {"ms": 0.001, "millisecond": 0.001, "s": 1, "sec": 1, "second": 1, "m": 60, "min": 60, "minute": 60}
_UNITS |= {"h": 3600, "hour": 3600, "d": 86400, "day": 86400}
_LARGEST = 2**63 - 1
_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*([a-z]+)")


def setting(
    help: str, *, default: Any = MISSING, minimum: float | None = None, example: object = None
) -> Any:
    """A field of a settings class; without a default it must be given."""
    about = {"help": help, "minimum": minimum, "example": example}
    if isinstance(default, dict):
        return dataclasses.field(default_factory=lambda: dict(default), kw_only=True, metadata=about)
    return dataclasses.field(default=default, kw_only=True, metadata=about)


def check(kind: type[T], given: Mapping[str, object], where: str, what: str) -> T:
    """An instance of ``kind``, or a ConfigError with every mistake; ``where`` is the table's name in the file."""
    assert dataclasses.is_dataclass(kind)
    fields = {field.name: field for field in dataclasses.fields(kind)}
    hints = get_type_hints(kind, include_extras=True)
    problems = [
        f"{where}.{name} is not a setting of {what}{_nearest(name, fields)}"
        for name in given
        if name not in fields
    ]
    values: dict[str, object] = {}
    for name, field in fields.items():
        if name not in given:
            if _is_required(field):
                problems.append(f"{where}.{name} is missing: {_lower(field.metadata['help'])}")
            continue
        try:
            values[name] = _bounded(_parse(hints[name], given[name]), field.metadata.get("minimum"))
            if values[name] == () and _is_required(field):
                raise ValueError("it must name at least one")
        except ValueError as error:
            problems.append(f"{where}.{name} is {_show(given[name])}: {error}")
    if problems:
        raise ConfigError(problems)
    made = kind(**values)
    contradictions = [f"{where}.{text}" for text in _contradictions(made)]
    if contradictions:
        raise ConfigError(contradictions)
    return made


def describe(kind: type) -> Iterator[tuple[Field[Any], str]]:
    """Each setting with its type in words, for templates and documentation."""
    hints = get_type_hints(kind, include_extras=True)
    for field in dataclasses.fields(kind):
        yield field, _in_words(hints[field.name])


def _contradictions(made: object) -> list[str]:
    """What the settings class itself objects to: sentences that begin with a setting's name."""
    problems = getattr(made, "problems", None)
    return list(problems()) if problems is not None else []


def _parse(kind: Any, value: object) -> object:
    origin = get_origin(kind)
    if origin in (Union, types.UnionType):
        inner = [option for option in get_args(kind) if option is not type(None)]
        return _parse(inner[0], value)
    if origin is Annotated:
        return _seconds(value)
    if origin is Literal:
        if value not in get_args(kind):
            raise ValueError(f"choose {_in_words(kind)}")
        return value
    if origin is tuple:
        names = [value] if isinstance(value, str) else value
        if not isinstance(names, list) or not all(isinstance(name, str) and name for name in names):
            raise ValueError("it must be a text or a list of texts")
        return tuple(_text(name) for name in names)
    if origin is dict:
        if not isinstance(value, dict):
            raise ValueError("it must be a table of names and values")
        if not all(isinstance(inner, str | int | float) for inner in _leaves(value)):
            raise ValueError("its values must be texts, numbers, true or false")
        return {name: _text(inner) for name, inner in flat(value)}
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise ValueError(f"it must be {_in_words(kind)}")
    if value == "":
        raise ValueError("it must not be empty")
    return _text(value) if isinstance(value, str) else value


def _text(value: str) -> str:
    if "\0" in value:
        raise ValueError("it must not hold the character NUL")
    return value


def _leaves(table: Mapping[str, object]) -> Iterator[object]:
    for value in table.values():
        if isinstance(value, dict):
            yield from _leaves(value)
        else:
            yield value


def _seconds(value: object) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    match = _DURATION.fullmatch(str(value).strip().lower())
    unit = match and (_UNITS.get(match[2]) or _UNITS.get(match[2].removesuffix("s")))
    if match is None or unit is None:
        raise ValueError('it must be a duration such as "5 seconds" or "2 minutes"')
    return float(match[1]) * unit


def _bounded(value: object, minimum: float | None) -> object:
    if not isinstance(value, int | float):
        return value
    if not math.isfinite(value) or abs(value) > _LARGEST:
        raise ValueError("it must be a number of an ordinary size")
    if minimum is not None and value < minimum:
        raise ValueError(f"it must be at least {minimum:g}")
    return value


def flat(table: Mapping[str, object], prefix: str = "") -> Iterator[tuple[str, str]]:
    """TOML reads ``security.protocol = "SSL"`` as a table in a table; Kafka's settings are flat."""
    for name, value in table.items():
        if isinstance(value, dict):
            yield from flat(value, f"{prefix}{name}.")
        elif isinstance(value, bool):
            yield prefix + name, str(value).lower()
        else:
            yield prefix + name, str(value)


def _in_words(kind: Any) -> str:
    origin = get_origin(kind)
    if origin in (Union, types.UnionType):
        return _in_words(next(option for option in get_args(kind) if option is not type(None)))
    if origin is Literal:
        *first, last = (str(option) for option in get_args(kind))
        return f"{', '.join(first)} or {last}" if first else last
    if origin is Annotated:
        return "a duration"
    return {tuple: "texts", dict: "a table"}.get(
        origin or kind,
        {str: "a text", int: "a whole number", float: "a number", bool: "true or false"}.get(kind, str(kind)),
    )


def _is_required(field: Field[Any]) -> bool:
    return field.default is MISSING and field.default_factory is MISSING


def _nearest(name: str, known: Mapping[str, object]) -> str:
    near = nearest(name, known, cutoff=0.5)
    return f"; did you mean {near}?" if near else f"; it has {', '.join(known)}"


def _show(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else repr(value)


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:].rstrip(".")
