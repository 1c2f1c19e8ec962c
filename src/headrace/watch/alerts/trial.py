"""One test notice, sent at once and not repeated: whether receivers can be reached, and what they will get."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping

from headrace.watch.alerts.declared import DEFAULT_REPEAT, Declaration, Rule
from headrace.watch.alerts.notices import Notice
from headrace.watch.alerts.receivers.base import NotDelivered
from headrace.watch.alerts.receivers.opening import open_receiver
from headrace.watch.alerts.states import Phase

_TEXT = "this is a test: nothing is wrong"


def send_test(
    declaration: Declaration, config: Mapping[str, object], receivers: Iterable[str], rule: Rule | None
) -> dict[str, str | None]:
    """By receiver: None when it took the notice, else why not."""
    now = time.time()
    outcomes: dict[str, str | None] = {}
    for name in receivers:
        declared = declaration.receivers[name]
        notice = Notice(
            key="test" if rule is None else f"test/{rule.name}",
            episode=f"test@{now:.3f}",
            phase=Phase.FIRING,
            rule="test" if rule is None else rule.name,
            kind="test" if rule is None else rule.kind,
            severity="info" if rule is None else rule.severity,
            labels=() if rule is None else rule.labels,
            summary=_TEXT,
            value=None,
            since=now,
            at=now,
            ended=None,
            runbook=None if rule is None else rule.runbook,
            cluster=declaration.cluster or str(config.get("bootstrap.servers", "")),
            repeat=declared.repeat or DEFAULT_REPEAT,
            is_test=True,
        )
        receiver = open_receiver(declared, config)
        try:
            receiver.deliver(notice)
            outcomes[name] = None
        except NotDelivered as failure:
            outcomes[name] = str(failure)
        finally:
            receiver.close()
    return outcomes
