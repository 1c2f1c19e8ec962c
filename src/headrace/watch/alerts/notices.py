"""A notice: what a receiver is told about one alert, as a value that each shape is made from."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from headrace.watch.alerts.declared import Labels
from headrace.watch.alerts.states import Alert, Phase

VERSION = 1


@dataclass(frozen=True, slots=True)
class Notice:
    key: str
    episode: str
    phase: Phase
    rule: str
    kind: str
    severity: str
    labels: Labels
    summary: str
    value: float | None
    since: float
    """When the condition was first seen."""
    at: float
    ended: float | None
    runbook: str | None
    cluster: str
    repeat: float
    """Seconds after which it comes again while the alert fires."""
    is_test: bool = False

    @classmethod
    def of(cls, alert: Alert, phase: Phase, kind: str, cluster: str, repeat: float, at: float) -> Notice:
        began = alert.since if alert.phase is not Phase.RESOLVED else alert.fired_at or alert.since
        return cls(
            alert.key,
            alert.episode,
            phase,
            alert.rule,
            kind,
            alert.severity,
            alert.labels,
            alert.summary,
            alert.value,
            began,
            at,
            alert.since if phase is Phase.RESOLVED else None,
            alert.runbook,
            cluster,
            repeat,
        )

    @property
    def title(self) -> str:
        word = "RESOLVED" if self.phase is Phase.RESOLVED else self.severity.upper()
        return f"{'TEST ' if self.is_test else ''}[{word}] {self.rule} ({self.cluster})"

    def as_document(self) -> dict[str, Any]:
        """What the generic webhook, commands and topics get."""
        return {
            "version": VERSION,
            "id": self.episode,
            "status": self.phase.value,
            "rule": self.rule,
            "kind": self.kind,
            "severity": self.severity,
            "cluster": self.cluster,
            "labels": dict(self.labels),
            "summary": self.summary,
            "value": self.value,
            "since": iso(self.since),
            "at": iso(self.at),
            "ended": None if self.ended is None else iso(self.ended),
            "runbook": self.runbook,
            "test": self.is_test,
        }


def iso(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
