"""Bodies of webhooks: our own document, Slack's message, Alertmanager's list of alerts (its v2 API)."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

from headrace.watch.alerts.declared import Shape
from headrace.watch.alerts.notices import Notice, iso
from headrace.watch.alerts.states import Phase

_ALERTMANAGER_PATH = "/api/v2/alerts"
_EXPIRES_AFTER = 4
"""Repetitions that may be missing before Alertmanager takes an alert for resolved, as with Prometheus."""
_COLOURS = {"info": "#439fe0", "warning": "#daa038", "critical": "#d00000"}


def body(shape: Shape, notice: Notice) -> bytes:
    return json.dumps(_SHAPES[shape](notice), ensure_ascii=False, separators=(",", ":")).encode()


def address(shape: Shape, url: str) -> str:
    """Alertmanager may be named by its address alone."""
    if shape == "alertmanager" and urlsplit(url).path in ("", "/"):
        return url.rstrip("/") + _ALERTMANAGER_PATH
    return url


def _generic(notice: Notice) -> dict[str, Any]:
    return notice.as_document()


def _slack(notice: Notice) -> dict[str, Any]:
    resolved = notice.phase is Phase.RESOLVED
    labels = ", ".join(f"{name}={value}" for name, value in notice.labels)
    lines = [
        notice.summary,
        *([labels] if labels else []),
        *([f"Runbook: {notice.runbook}"] if notice.runbook else []),
    ]
    text = "\n".join(lines).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return {
        "text": notice.title,
        "attachments": [
            {
                "color": "#2eb886" if resolved else _COLOURS[notice.severity],
                "fallback": f"{notice.title}: {notice.summary}",
                "text": text,
                "ts": int(notice.at),
            }
        ],
    }


def _alertmanager(notice: Notice) -> list[dict[str, Any]]:
    labels = {
        **{re.sub(r"[^A-Za-z0-9_]", "_", name): value for name, value in notice.labels},
        "alertname": notice.rule,
        "kind": notice.kind,
        "severity": notice.severity,
        "cluster": notice.cluster,
    }
    if notice.is_test:
        labels["test"] = "true"
    annotations = {"summary": notice.summary}
    if notice.runbook:
        annotations["runbook_url"] = notice.runbook
    ends = notice.ended if notice.ended is not None else notice.at + _EXPIRES_AFTER * notice.repeat
    return [
        {
            "labels": {name: value for name, value in labels.items() if value},
            "annotations": annotations,
            "startsAt": iso(min(notice.since, ends)),
            "endsAt": iso(ends),
        }
    ]


_SHAPES: Mapping[Shape, Callable[[Notice], Any]] = {
    "generic": _generic,
    "slack": _slack,
    "alertmanager": _alertmanager,
}
