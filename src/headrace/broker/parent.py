"""Brokers of one machine end with the supervisor that started them, however it ends."""

from __future__ import annotations

import os
import signal

SUPERVISOR_VARIABLE = "HEADRACE_SUPERVISOR"
"""The supervisor's process id, in the environment of its brokers."""

_SET_PARENT_DEATH_SIGNAL = 1


def end_with_supervisor() -> None:
    """In a broker: have the kernel send SIGTERM when the supervisor is gone. Does nothing without one."""
    parent = os.environ.get(SUPERVISOR_VARIABLE)
    if parent is None:
        return
    import ctypes

    ctypes.CDLL(None).prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGTERM)
    if os.getppid() != int(parent):
        # It ended before the kernel was asked.
        os.kill(os.getpid(), signal.SIGTERM)
