"""Silences: which alerts tell nobody, until when, who said so and why. In a control topic of their own, which commands write."""

from __future__ import annotations

import fnmatch
import getpass
import uuid
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from headrace.watch.alerts.states import Alert

KEEP = 86_400.0
"""Seconds for which a silence that is over can still be looked up."""


@dataclass(frozen=True, slots=True)
class Silence:
    id: str
    rule: str
    """A shell pattern; * for all."""
    labels: Mapping[str, str]
    """Shell patterns by label; all must match."""
    until: float
    author: str
    comment: str
    created: float

    @classmethod
    def make(
        cls, rule: str, labels: Mapping[str, str], until: float, author: str | None, comment: str, now: float
    ) -> Silence:
        return cls(uuid.uuid4().hex[:8], rule, dict(labels), until, author or _user(), comment, now)

    def is_over(self, now: float) -> bool:
        return now >= self.until

    def covers(self, alert: Alert, now: float) -> bool:
        carried = {**dict(alert.labels), "severity": alert.severity}
        return (
            not self.is_over(now)
            and fnmatch.fnmatchcase(alert.rule, self.rule)
            and all(fnmatch.fnmatchcase(carried.get(name, ""), value) for name, value in self.labels.items())
        )

    def as_document(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Silence | None:
        """None for one of another version."""
        try:
            return cls(**document)
        except TypeError:
            return None


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "unknown"  # a container's user often has no name
