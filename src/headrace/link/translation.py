"""Client settings under the names of Kafka's Java client, turned into librdkafka's by the table in `java_settings`.

Settings that were translated once pass unchanged, so one client may hand its settings to another. Where two names mean
the same setting, the later one wins.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Generic, TypeVar

from headrace.link.errors import SettingsError
from headrace.link.java_settings import (
    Converted,
    Ignored,
    Obsolete,
    Refused,
    Renamed,
    Replaced,
    Same,
    fate_of,
)
from headrace.link.java_values import Given
from headrace.link.references import resolve

V = TypeVar("V")


class Removed(Enum):
    """What to do with a setting that was removed from Kafka."""

    NOTED = "use its successor, and note it"
    REFUSED = "raise SettingsError"


@dataclass
class Translation(Generic[V]):
    settings: dict[str, V | str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    """A sentence for each setting or value that was removed from Kafka."""
    ignored: list[str] = field(default_factory=list)
    """A sentence for each setting that has no effect outside the Java client."""


def translate(
    properties: Mapping[str, V],
    *,
    removed: Removed = Removed.NOTED,
    own: Collection[str] = (),
    prefix: str = "",
) -> Translation[V]:
    """Settings of ``own`` are the caller's to read and stay as they are; ``prefix`` is what the user writes before the
    names, for messages. Raises SettingsError for what cannot be honoured and must not be dropped in silence.
    """
    resolved = resolve(properties, prefix)
    given = Given({name: _text(value) for name, value in resolved.items()}, prefix)
    result: Translation[V] = Translation()
    for name, value in resolved.items():
        current = name if name in own else _current_name(name, given, removed, result.notes)
        if current is not None:
            _put(current, value, given, current in own, result)
    _check_pairs(result.settings, given)
    return result


def _current_name(name: str, given: Given, removed: Removed, notes: list[str]) -> str | None:
    """The name that Kafka uses today; None for a setting that leaves nothing behind."""
    match fate_of(name):
        case Replaced(successor):
            if removed is Removed.REFUSED:
                raise SettingsError(
                    f"{given.named(name)} was removed from Kafka: use {given.named(successor)}."
                )
            notes.append(
                f"{given.named(name)} was removed from Kafka; {given.named(successor)} is its successor and is used "
                "instead."
            )
            return None if successor in given.settings else successor
        case Obsolete(instead):
            if removed is Removed.REFUSED:
                raise SettingsError(f"{given.named(name)} was removed from Kafka: {instead}.")
            notes.append(f"{given.named(name)} was removed from Kafka and is ignored: {instead}.")
            return None
    return name


def _put(name: str, value: V | str, given: Given, is_own: bool, result: Translation[V]) -> None:
    fate = None if is_own else fate_of(name)
    match fate:
        case Same(old_values) if (today := old_values.get(_text(value))) is not None:
            called = given.named(name)
            result.notes.append(f"{called}={value} was removed from Kafka; {called}={today} is used instead.")
            result.settings[name] = today
        case Renamed(other):
            result.settings[other] = value
        case Converted(convert):
            result.settings.update(convert(_text(value), given))
        case Ignored(because):
            result.ignored.append(f"{given.named(name)} has no effect here: {because}.")
        case Refused(sentence):
            raise SettingsError(f"{given.named(name)} {sentence}")
        case _:
            result.settings[name] = value


def _check_pairs(settings: Mapping[str, object], given: Given) -> None:
    """A certificate is of no use without its key."""
    certificate = settings.keys() & {"ssl.certificate.pem", "ssl.certificate.location"}
    key = settings.keys() & {"ssl.key.pem", "ssl.key.location"}
    if (certificate == {"ssl.certificate.pem"} and not key) or (key == {"ssl.key.pem"} and not certificate):
        raise SettingsError(
            f"{given.named('ssl.keystore.certificate.chain')} and {given.named('ssl.keystore.key')} belong together; "
            "one is missing."
        )


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
