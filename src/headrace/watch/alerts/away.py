"""The alert that needs no cluster: that no broker answers. It lives in memory, since nothing can be written then.

The instance that acts fires it after the rule's `for`; the others, which cannot know whether that one still lives, after four times as long.
"""

from __future__ import annotations

import time
from dataclasses import replace

from headrace.client.durations import show_seconds
from headrace.watch.alerts.declared import Declaration
from headrace.watch.alerts.observer import Look
from headrace.watch.alerts.states import Alert, Phase, Seen, step

_STANDBY_WAITS = 4
_LONGEST_LOOK = 60.0
"""Seconds, or four intervals: a cluster that keeps us waiting for longer does not answer."""


class Away:
    def __init__(self, declaration: Declaration) -> None:
        self._rule = declaration.away
        self._longest_look = max(_LONGEST_LOOK, 4 * declaration.interval)
        self.alert: Alert | None = None
        self._reason: str | None = "no look at it has ended yet"
        self._answered_at = time.time()
        self._heard = time.monotonic()

    @property
    def is_unanswered(self) -> bool:
        """Whether the last look failed, or none has ended for long; so it is until the first one has ended."""
        return self._reason is not None or time.monotonic() - self._heard > self._longest_look

    def take(self, look: Look) -> None:
        self._heard = time.monotonic()
        self._reason = look.away
        if look.away is None:
            self._answered_at = look.at

    def put(self, alert: Alert) -> None:
        self.alert = alert

    def judge(self, now: float, *, is_acting: bool) -> None:
        wait = self._rule.wait * (1 if is_acting else _STANDBY_WAITS)
        if not self.is_unanswered:
            if self.alert is not None:
                self.alert = step(self.alert, Seen.CLEAR, now, wait, float("inf"))
                if self.alert is not None and self.alert.phase is Phase.RESOLVED:
                    self.alert = replace(self.alert, summary="the cluster answers again")
            return
        alert = self.alert
        if alert is None or alert.phase is Phase.RESOLVED:
            told = {} if alert is None else alert.told
            alert = Alert(
                self._rule.name,
                self._rule.name,
                self._rule.labels,
                Phase.PENDING,
                self._answered_at,
                now,
                told=told,
            )
        away_for = show_seconds(max(0.0, now - alert.since))
        reason = self._reason or "no look at it has ended since"
        self.alert = replace(
            step(alert, Seen.ACTIVE, now, wait, float("inf")) or alert,
            summary=f"the cluster has not answered for {away_for}: {reason}; other rules are not judged meanwhile",
            severity=self._rule.severity,
            runbook=self._rule.runbook,
            receivers=self._rule.receivers,
        )
