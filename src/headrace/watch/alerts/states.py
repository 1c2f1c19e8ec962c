"""The life of one alert, and which notices it owes. Pure: values in, values out; no clock, no I/O.

    seen:      active                          clear                      missing
    (none)     pending, or firing at once      –                          –
    pending    firing after `for`              forgotten, or resolved     unchanged
    firing     firing                          resolved                   unchanged
    resolved   pending, or firing at once      resolved until all know    unchanged

A pending alert that is seen clear is forgotten, unless somebody was told of an earlier firing and not yet of its end. Missing data
changes nothing: time in which nobody could look does not count towards `for`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any


class Phase(StrEnum):
    PENDING = "pending"
    FIRING = "firing"
    RESOLVED = "resolved"


class Seen(StrEnum):
    """What a look says about an alert."""

    ACTIVE = "active"
    CLEAR = "clear"
    MISSING = "missing"


class Outcome(StrEnum):
    """What became of a notice. After a restart, one that was being sent is sent again: it may not have arrived."""

    SENDING = "sending"
    SENT = "sent"
    FAILED = "failed"
    DOUBTFUL = "doubtful"
    """Given up without an answer: it may have arrived."""


@dataclass(frozen=True, slots=True)
class Told:
    """The last notice to one receiver."""

    phase: Phase
    at: float
    outcome: Outcome


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing a rule found, well or not. The labels tell it from the rule's other findings."""

    labels: tuple[tuple[str, str], ...]
    seen: Seen
    summary: str = ""
    value: float | None = None


@dataclass(frozen=True, slots=True)
class Alert:
    key: str
    rule: str
    labels: tuple[tuple[str, str], ...]
    phase: Phase
    since: float
    """When the condition was first seen; for a resolved alert, when it ended. Seconds since 1970."""
    looked: float
    """While it is pending: when a look last said that it is active."""
    summary: str = ""
    value: float | None = None
    severity: str = "warning"
    runbook: str | None = None
    receivers: tuple[str, ...] = ()
    fired_at: float | None = None
    told: Mapping[str, Told] = field(default_factory=dict)

    @property
    def episode(self) -> str:
        """Tells this firing from earlier ones of the same alert; a repeated or repeatedly delivered notice has the same."""
        return f"{self.key}@{self.fired_at or self.since:.3f}"

    def told_of_firing(self) -> list[str]:
        """Receivers that believe, or may believe, that it fires."""
        return [
            name
            for name, told in self.told.items()
            if (told.phase is Phase.FIRING and told.outcome is not Outcome.FAILED)
            or (told.phase is Phase.RESOLVED and told.outcome is Outcome.SENDING)
        ]

    def as_document(self) -> dict[str, Any]:
        return {
            "key": self.key,
            "rule": self.rule,
            "labels": dict(self.labels),
            "phase": self.phase.value,
            "since": self.since,
            "looked": self.looked,
            "summary": self.summary,
            "value": self.value,
            "severity": self.severity,
            "runbook": self.runbook,
            "receivers": list(self.receivers),
            "fired_at": self.fired_at,
            "told": {
                name: {"phase": told.phase.value, "at": told.at, "outcome": told.outcome.value}
                for name, told in self.told.items()
            },
        }

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Alert | None:
        """None for one of another version."""
        try:
            return cls(
                key=document["key"],
                rule=document["rule"],
                labels=tuple(sorted(document["labels"].items())),
                phase=Phase(document["phase"]),
                since=float(document["since"]),
                looked=float(document["looked"]),
                summary=document["summary"],
                value=document["value"],
                severity=document["severity"],
                runbook=document["runbook"],
                receivers=tuple(document["receivers"]),
                fired_at=document["fired_at"],
                told={
                    name: Told(Phase(each["phase"]), float(each["at"]), Outcome(each["outcome"]))
                    for name, each in document["told"].items()
                },
            )
        except (KeyError, TypeError, ValueError, AttributeError):
            return None


def key_of(rule: str, labels: Iterable[tuple[str, str]]) -> str:
    return "/".join([rule, *(f"{name}={value}" for name, value in sorted(labels))])


def begin(alert: Alert, now: float, wait: float) -> Alert:
    """A condition that is seen for the first time, or again after its end."""
    pending = replace(alert, phase=Phase.PENDING, since=now, looked=now, fired_at=None)
    return fire(pending, now) if wait <= 0 else pending


def fire(alert: Alert, now: float) -> Alert:
    return replace(alert, phase=Phase.FIRING, fired_at=now)


def step(alert: Alert, seen: Seen, now: float, wait: float, longest_gap: float) -> Alert | None:
    """The alert after a look; None when there is nothing left to say about it. ``wait`` is the rule's `for`."""
    if seen is Seen.MISSING:
        return alert
    if seen is Seen.CLEAR:
        return _ended(alert, now)
    match alert.phase:
        case Phase.FIRING:
            return alert
        case Phase.RESOLVED:
            return begin(alert, now, wait)
        case Phase.PENDING:
            gap = max(0.0, now - alert.looked)
            # Nobody looked, or could: that time is not time in which the condition held.
            since = alert.since + gap if gap > longest_gap else alert.since
            seen_again = replace(alert, since=since, looked=now)
            return fire(seen_again, now) if now - since >= wait else seen_again


def _ended(alert: Alert, now: float) -> Alert | None:
    if alert.phase is Phase.RESOLVED:
        return alert if alert.told_of_firing() else None
    if alert.phase is Phase.PENDING and not alert.told_of_firing():
        return None
    return replace(alert, phase=Phase.RESOLVED, since=now)


def due(alert: Alert, now: float, repeat: Mapping[str, float], *, silenced: bool) -> list[tuple[str, Phase]]:
    """The notices to send now, by receiver; ``repeat`` says after how many seconds each receiver is told again."""
    match alert.phase:
        case Phase.PENDING:
            return []
        case Phase.RESOLVED:
            # Silenced or not: every receiver that was notified of the firing is notified of its end.
            return [(name, Phase.RESOLVED) for name in alert.told_of_firing()]
        case Phase.FIRING:
            if silenced:
                return []
            return [
                (name, Phase.FIRING)
                for name in alert.receivers
                if _owes(alert.told.get(name), now, repeat[name])
            ]


def _owes(told: Told | None, now: float, repeat: float) -> bool:
    if told is None or told.phase is Phase.RESOLVED or told.outcome is Outcome.SENDING:
        return True
    return now - told.at >= repeat


def tell(alert: Alert, receiver: str, phase: Phase, now: float, outcome: Outcome) -> Alert:
    return replace(alert, told={**alert.told, receiver: Told(phase, now, outcome)})
