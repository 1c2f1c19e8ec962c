"""A command: the notice as JSON on its stdin and in HEADRACE_ALERT_… variables. It ends in time, or it is killed with what it started."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from contextlib import suppress

from headrace.watch.alerts.declared import CommandReceiver
from headrace.watch.alerts.notices import Notice
from headrace.watch.alerts.receivers.base import NotDelivered

_LONGEST_REASON = 200


class Command:
    def __init__(self, settings: CommandReceiver) -> None:
        self._settings = settings

    def deliver(self, notice: Notice) -> None:
        try:
            process = subprocess.Popen(
                self._settings.command,
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                env={**os.environ, **variables(notice)},
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            raise NotDelivered(f"it cannot be started: {getattr(error, 'strerror', None) or error}") from None
        document = json.dumps(notice.as_document(), ensure_ascii=False).encode()
        try:
            _, errors = process.communicate(document, self._settings.timeout)
        except subprocess.TimeoutExpired:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            why = f"it took longer than {self._settings.timeout:g} s and was killed"
            raise NotDelivered(why, may_have_arrived=True) from None
        if process.returncode != 0:
            said = errors.decode("utf-8", "replace").strip().splitlines()[-1:]
            why = f": {said[0][:_LONGEST_REASON]}" if said else ""
            raise NotDelivered(f"it ended with status {process.returncode}{why}")

    def close(self) -> None:
        """Nothing to release."""


def variables(notice: Notice) -> dict[str, str]:
    document = notice.as_document()
    labels = document.pop("labels")
    texts = {name.upper(): "" if value is None else str(value) for name, value in document.items()}
    named = {f"LABEL_{re.sub(r'[^A-Za-z0-9_]', '_', name).upper()}": value for name, value in labels.items()}
    return {f"HEADRACE_ALERT_{name}": value.replace("\0", "") for name, value in {**texts, **named}.items()}
