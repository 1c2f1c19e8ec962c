"""What happened, as `headrace alerts history` shows it: a ring of keys in a control topic, so that compaction forgets the oldest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from typing import Any

from headrace.watch.alerts.states import Alert

SLOTS = 2000


class Happened(StrEnum):
    FIRED = "fired"
    RESOLVED = "resolved"
    DELIVERED = "delivered"
    NOT_DELIVERED = "not delivered"
    TOOK_OVER = "took over"


@dataclass(frozen=True, slots=True)
class Event:
    at: float
    what: Happened
    rule: str = ""
    labels: Mapping[str, str] | None = None
    text: str = ""
    receiver: str | None = None
    number: int = 0

    @classmethod
    def of(
        cls, alert: Alert, what: Happened, at: float, text: str = "", receiver: str | None = None
    ) -> Event:
        return cls(at, what, alert.rule, dict(alert.labels), text or alert.summary, receiver)

    def numbered(self, number: int) -> Event:
        return replace(self, number=number)

    @property
    def key(self) -> str:
        return str(self.number % SLOTS)

    def as_document(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Event | None:
        """None for one of another version."""
        try:
            return cls(**{**document, "what": Happened(document["what"])})
        except (TypeError, ValueError, KeyError):
            return None
