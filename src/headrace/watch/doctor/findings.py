"""What a check is, and what it says: a problem in one sentence, how bad it is, and what to do about it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from headrace.watch.doctor.scene import Scene

_NAMED = 3


class Severity(StrEnum):
    """From the least to the worst."""

    NOTE = "note"
    """Worth knowing; nothing is in danger."""
    WARNING = "warning"
    """Works now, and will not on a bad day."""
    ERROR = "error"
    """Records or service are being lost, or soon will be."""

    @property
    def rank(self) -> int:
        return list(Severity).index(self)


@dataclass(frozen=True, slots=True)
class Finding:
    severity: Severity
    sentence: str
    remedy: str
    subjects: tuple[str, ...] = ()
    """All topics, partitions, groups or brokers concerned; the sentence names the first few."""


class Needs(StrEnum):
    """What a check cannot do without."""

    MACHINE = "machine"
    SETTINGS = "settings"
    """Settings to read: a broker's file, or running brokers."""
    BROKERS = "brokers"
    """Servers to ask, whether or not they answer."""
    CLUSTER = "cluster"
    """At least one broker that answers at its advertised address."""


@dataclass(frozen=True, slots=True)
class Check:
    name: str
    severity: Severity
    """The worst it may say."""
    looks_at: str
    needs: Needs
    find: Callable[[Scene], Iterable[Finding]]
    watches: bool = False
    """It compares two moments, so it is asked last."""


def note(sentence: str, remedy: str, subjects: Sequence[object] = ()) -> Finding:
    return Finding(Severity.NOTE, sentence, remedy, tuple(map(str, subjects)))


def warning(sentence: str, remedy: str, subjects: Sequence[object] = ()) -> Finding:
    return Finding(Severity.WARNING, sentence, remedy, tuple(map(str, subjects)))


def error(sentence: str, remedy: str, subjects: Sequence[object] = ()) -> Finding:
    return Finding(Severity.ERROR, sentence, remedy, tuple(map(str, subjects)))


def listed(names: Sequence[object]) -> str:
    """a, b, c and 4 more"""
    shown = ", ".join(map(str, names[:_NAMED]))
    return shown if len(names) <= _NAMED else f"{shown} and {len(names) - _NAMED} more"


def counted(number: int, what: str) -> str:
    """1 topic, 2 topics"""
    return f"{number:,} {what}" + ("" if number == 1 else "s")
