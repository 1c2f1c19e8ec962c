"""Values in alerts.toml: each reader gives what was meant, or raises ValueError with how to write it."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from headrace.client.durations import seconds_of
from headrace.nearest import nearest

Reader = Callable[[Any], Any]

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_ADDRESS = re.compile(r"(?:\[[0-9A-Fa-f:.]+\]|[^\s:/]+):(\d{1,5})")


@dataclass(frozen=True, slots=True)
class Patterns:
    """Names by shell patterns, such as `payments-*`; one that begins with ! leaves out again."""

    written: tuple[str, ...] = ("*",)

    def matches(self, name: str) -> bool:
        wanted = [each for each in self.written if not each.startswith("!")] or ["*"]
        unwanted = [each[1:] for each in self.written if each.startswith("!")]
        return any(fnmatch.fnmatchcase(name, each) for each in wanted) and not any(
            fnmatch.fnmatchcase(name, each) for each in unwanted
        )


EVERYTHING = Patterns()


def text(value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ValueError('takes text, as in "orders"')
    return value


def name(value: Any) -> str:
    if not isinstance(value, str) or not _NAME.fullmatch(value):
        raise ValueError("takes letters, digits, '.', '_' and '-', at most 100")
    return value


def texts(value: Any) -> tuple[str, ...]:
    found = [value] if isinstance(value, str) else value
    if not isinstance(found, list) or not found or not all(isinstance(each, str) and each for each in found):
        raise ValueError('takes a list of texts, as in ["a", "b"]')
    return tuple(found)


def patterns(value: Any) -> Patterns:
    try:
        return Patterns(texts(value))
    except ValueError:
        raise ValueError('takes patterns, as in ["payments-*", "!payments-test"]') from None


def duration(value: Any) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool):
        raise ValueError(f'takes a duration in quotes, as in "{value}s"')
    if not isinstance(value, str):
        raise ValueError('takes a duration, as in "90s" or "1h30m"')
    try:
        seconds = 0.0 if value.strip() == "0" else seconds_of(value)
    except ValueError as error:
        raise ValueError(f"takes a duration: {str(error).rstrip('.')}") from None
    if seconds < 0:
        raise ValueError("cannot be negative")
    return seconds


def some_time(value: Any) -> float:
    seconds = duration(value)
    if seconds == 0:
        raise ValueError("takes a duration above 0")
    return seconds


def count(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise ValueError("takes a whole number that is not negative")
    return value


def flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError("takes true or false, without quotes")
    return value


def percent(value: Any) -> float:
    """Of 100, as a fraction."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*%", value) if isinstance(value, str) else None
    if match is None or not 0 < float(match[1]) < 100:
        raise ValueError('takes a percentage, as in "10%"')
    return float(match[1]) / 100


def brokers(value: Any) -> tuple[int, ...]:
    if not isinstance(value, list) or not value:
        raise ValueError("takes broker ids, as in [1, 2, 3]")
    return tuple(count(each) for each in value)


def addresses(value: Any) -> tuple[str, ...]:
    found = texts(value)
    for each in found:
        match = _ADDRESS.fullmatch(each)
        if match is None or not 0 < int(match[1]) < 65536:
            raise ValueError(f'takes HOST:PORT, as in "kafka1:9093", not "{each}"')
    return found


def table(value: Any) -> tuple[tuple[str, str], ...]:
    if not isinstance(value, dict) or not all(isinstance(each, str) for each in value.values()):
        raise ValueError('takes a table of texts, as in { team = "payments" }')
    return tuple(sorted(value.items()))


def url(value: Any) -> str:
    try:
        parts = urlsplit(value) if isinstance(value, str) and not re.search(r"\s", value) else None
        if parts is not None and parts.scheme in ("http", "https") and parts.hostname and parts.port != 0:
            return str(value)
    except ValueError:
        pass  # a port or an address that is none
    raise ValueError('takes a URL, as in "https://hooks.example.com/alerts"')


def one_of(*known: str) -> Reader:
    def read(value: Any) -> str:
        if value not in known:
            raise ValueError(_choose(value, known))
        return str(value)

    return read


def several_of(*known: str) -> Reader:
    def read(value: Any) -> tuple[str, ...]:
        found = texts(value)
        for each in found:
            if each not in known:
                raise ValueError(_choose(each, known))
        return found

    return read


def _choose(value: Any, known: Sequence[str]) -> str:
    near = nearest(str(value), known)
    hint = f"; did you mean '{near}'?" if near else ""
    return f"takes {', '.join(known[:-1])} or {known[-1]}, not {value!r}{hint}"
