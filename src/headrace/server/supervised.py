"""Brokers of one machine end with the supervisor that started them, however it ends."""

from __future__ import annotations

import os
import signal

from headrace.parent import end_with

SUPERVISOR_VARIABLE = "HEADRACE_SUPERVISOR"
"""The supervisor's process id, in the environment of its brokers."""


def end_with_supervisor() -> None:
    """In a broker: get SIGTERM when the supervisor ends. Does nothing without a supervisor."""
    parent = os.environ.get(SUPERVISOR_VARIABLE)
    if parent is not None:
        end_with(int(parent), signal.SIGTERM)
