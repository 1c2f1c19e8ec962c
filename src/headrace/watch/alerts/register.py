"""The alerts of the instance that acts, what of them is written down, and what has happened and is not yet.

A finding moves its alert; an alert that a complete look no longer finds is over; a rule without data moves nothing.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import replace

from headrace.watch.alerts.declared import Declaration, Rule
from headrace.watch.alerts.history import SLOTS, Event, Happened
from headrace.watch.alerts.observer import Look
from headrace.watch.alerts.states import Alert, Finding, Phase, Seen, begin, key_of, step

_MISSED_LOOKS = 3


class Register:
    def __init__(self, declaration: Declaration) -> None:
        self._declaration = declaration
        # What a look or two, or a change of the acting instance, leaves out still counts towards `for`.
        self._longest_gap = _MISSED_LOOKS * declaration.interval + 2 * declaration.failover
        self.alerts: dict[str, Alert] = {}
        self._written: dict[str, Alert] = {}
        self._events: deque[Event] = deque(maxlen=SLOTS)
        self._number = 0

    def load(self, stored: Mapping[str, Alert], number: int) -> None:
        """What another instance, or this one before a restart, has left."""
        self.alerts, self._written = dict(stored), dict(stored)
        self._events.clear()
        self._number = number

    def clear(self) -> None:
        self.load({}, 0)

    def put(self, alert: Alert) -> None:
        self.alerts[alert.key] = alert

    def record(self, event: Event) -> None:
        self._number += 1
        self._events.append(event.numbered(self._number))

    def take(self, look: Look) -> None:
        for rule in self._declaration.rules:
            found = look.findings.get(rule.name)
            if found is not None:
                self._judge(rule, found, look.at)
        known = {rule.name for rule in self._declaration.rules}
        for alert in [each for each in self.alerts.values() if each.rule not in known]:
            self._end(alert, look.at, f"the rule {alert.rule} is no longer in the file")

    def changes(self) -> tuple[dict[str, Alert | None], list[Event]]:
        """What is to be written: alerts by key, None for those to forget, and what has happened."""
        changed: dict[str, Alert | None] = {
            key: alert for key, alert in self.alerts.items() if self._written.get(key) != alert
        }
        return {**changed, **dict.fromkeys(self._written.keys() - self.alerts.keys())}, list(self._events)

    def wrote(self, changed: Mapping[str, Alert | None], events: int) -> None:
        for key, alert in changed.items():
            if alert is None:
                self._written.pop(key, None)
            else:
                self._written[key] = alert
        for _ in range(events):
            self._events.popleft()

    def _judge(self, rule: Rule, findings: list[Finding], at: float) -> None:
        seen = set()
        for finding in findings:
            key = key_of(rule.name, finding.labels)
            seen.add(key)
            before = self.alerts.get(key)
            if before is None and finding.seen is Seen.ACTIVE:
                self._move(None, begin(_alert(key, rule, finding, at), at, rule.wait), at)
            elif before is not None:
                if finding.seen is Seen.ACTIVE:
                    before = _described(before, rule, finding)
                self._move(before, step(before, finding.seen, at, rule.wait, self._longest_gap), at)
        for alert in [
            each for each in self.alerts.values() if each.rule == rule.name and each.key not in seen
        ]:
            self._end(alert, at, "it is no longer there")

    def _end(self, alert: Alert, at: float, why: str) -> None:
        if alert.phase is not Phase.RESOLVED:
            alert = replace(alert, summary=f"{alert.summary} ({why})")
        self._move(alert, step(alert, Seen.CLEAR, at, 0.0, self._longest_gap), at)

    def _move(self, before: Alert | None, after: Alert | None, at: float) -> None:
        if after is None:
            if before is not None:
                del self.alerts[before.key]
            return
        self.alerts[after.key] = after
        phase = None if before is None else before.phase
        if after.phase is Phase.FIRING and phase is not Phase.FIRING:
            self.record(Event.of(after, Happened.FIRED, at))
        elif after.phase is Phase.RESOLVED and phase is Phase.FIRING:
            self.record(Event.of(after, Happened.RESOLVED, at))


def _alert(key: str, rule: Rule, finding: Finding, at: float) -> Alert:
    bare = Alert(key, rule.name, (), Phase.PENDING, at, at)
    return _described(bare, rule, finding)


def _described(alert: Alert, rule: Rule, finding: Finding) -> Alert:
    """With what the rule and the last finding say; the file may have changed since it fired."""
    return replace(
        alert,
        labels=tuple(sorted({**dict(rule.labels), **dict(finding.labels)}.items())),
        summary=finding.summary,
        value=finding.value,
        severity=rule.severity,
        runbook=rule.runbook,
        receivers=rule.receivers,
    )
