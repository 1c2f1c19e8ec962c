"""Alerts, silences and their history as tables and as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from headrace.client.durations import show_seconds
from headrace.watch.alerts.history import Event
from headrace.watch.alerts.notices import iso
from headrace.watch.alerts.observer import Look
from headrace.watch.alerts.silences import Silence
from headrace.watch.alerts.states import Alert, Phase

ALERTS_HEADER = ("RULE", "STATE", "SINCE", "SEVERITY", "SILENCED", "LABELS", "SUMMARY")
SILENCES_HEADER = ("ID", "RULE", "LABELS", "UNTIL", "AUTHOR", "COMMENT")
HISTORY_HEADER = ("AT", "WHAT", "RULE", "LABELS", "RECEIVER", "TEXT")
FINDINGS_HEADER = ("RULE", "NOW", "LABELS", "SUMMARY")

_ORDER = {Phase.FIRING: 0, Phase.PENDING: 1, Phase.RESOLVED: 2}


def labels(found: Mapping[str, str] | Iterable[tuple[str, str]]) -> str | None:
    return ",".join(f"{name}={value}" for name, value in dict(found).items()) or None


def moment(seconds: float) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S}"


def silence_of(alert: Alert, silences: Iterable[Silence], now: float) -> Silence | None:
    """The one that lasts longest."""
    found = [each for each in silences if each.covers(alert, now)]
    return max(found, key=lambda each: each.until, default=None)


def alert_rows(alerts: Sequence[Alert], silences: Sequence[Silence], now: float) -> list[tuple[object, ...]]:
    rows: list[tuple[object, ...]] = []
    for alert in in_order(alerts):
        silence = silence_of(alert, silences, now)
        rows.append(
            (
                alert.rule,
                alert.phase.value,
                f"{show_seconds(max(0.0, now - alert.since))} ago",
                alert.severity,
                None if silence is None else f"{show_seconds(silence.until - now)} more by {silence.author}",
                labels(alert.labels),
                alert.summary,
            )
        )
    return rows


def in_order(alerts: Iterable[Alert]) -> list[Alert]:
    return sorted(alerts, key=lambda each: (_ORDER[each.phase], each.since, each.key))


def alert_document(alert: Alert, silences: Sequence[Silence], now: float) -> dict[str, Any]:
    silence = silence_of(alert, silences, now)
    return {
        "rule": alert.rule,
        "state": alert.phase.value,
        "since": iso(alert.since),
        "fired_at": None if alert.fired_at is None else iso(alert.fired_at),
        "severity": alert.severity,
        "labels": dict(alert.labels),
        "summary": alert.summary,
        "value": alert.value,
        "runbook": alert.runbook,
        "silenced": None if silence is None else silence_document(silence, now),
        "told": {
            name: {"status": told.phase.value, "at": iso(told.at), "outcome": told.outcome.value}
            for name, told in alert.told.items()
        },
    }


def silence_rows(silences: Sequence[Silence], now: float) -> list[tuple[object, ...]]:
    return [
        (
            each.id,
            each.rule,
            labels(each.labels),
            f"{moment(each.until)} ({'over' if each.is_over(now) else f'{show_seconds(each.until - now)} more'})",
            each.author,
            each.comment,
        )
        for each in silences
    ]


def silence_document(silence: Silence, now: float) -> dict[str, Any]:
    return {
        "id": silence.id,
        "rule": silence.rule,
        "labels": dict(silence.labels),
        "until": iso(silence.until),
        "active": not silence.is_over(now),
        "author": silence.author,
        "comment": silence.comment,
        "created": iso(silence.created),
    }


def history_rows(events: Sequence[Event]) -> list[tuple[object, ...]]:
    return [
        (
            moment(each.at),
            each.what.value,
            each.rule or None,
            labels(each.labels or {}),
            each.receiver,
            each.text,
        )
        for each in events
    ]


def event_document(event: Event) -> dict[str, Any]:
    return {
        "at": iso(event.at),
        "what": event.what.value,
        "rule": event.rule or None,
        "labels": dict(event.labels or {}),
        "receiver": event.receiver,
        "text": event.text,
    }


def look_rows(look: Look) -> list[tuple[object, ...]]:
    rows: list[tuple[object, ...]] = [
        (rule, finding.seen.value, labels(finding.labels), finding.summary)
        for rule, findings in look.findings.items()
        for finding in findings
    ]
    rows += [(rule, "no data", None, why) for rule, why in look.missing.items()]
    rows += [
        (rule, "nothing to judge", None, None) for rule, findings in look.findings.items() if not findings
    ]
    return rows


def look_document(look: Look) -> dict[str, Any]:
    return {
        "cluster": look.cluster,
        "at": iso(look.at),
        "rules": {
            **{
                rule: [
                    {
                        "now": each.seen.value,
                        "labels": dict(each.labels),
                        "summary": each.summary,
                        "value": each.value,
                    }
                    for each in findings
                ]
                for rule, findings in look.findings.items()
            },
        },
        "no_data": dict(look.missing),
    }
