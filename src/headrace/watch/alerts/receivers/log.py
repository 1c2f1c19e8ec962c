"""The log: a line for each notice on stderr, for people or, as JSON, for what collects logs."""

from __future__ import annotations

import json
import sys

from headrace.watch.alerts.declared import LogReceiver
from headrace.watch.alerts.notices import Notice, iso
from headrace.watch.alerts.receivers.base import NotDelivered


class Log:
    def __init__(self, settings: LogReceiver) -> None:
        self._as_json = settings.format == "json"

    def deliver(self, notice: Notice) -> None:
        if self._as_json:
            line = json.dumps(notice.as_document(), ensure_ascii=False)
        else:
            runbook = f" — {notice.runbook}" if notice.runbook else ""
            line = f"{iso(notice.at)} {notice.title}: {notice.summary}{runbook}"
        try:
            print(line, file=sys.stderr, flush=True)
        except OSError as error:
            raise NotDelivered(f"stderr cannot be written: {error.strerror}") from None

    def close(self) -> None:
        """Nothing to release."""
