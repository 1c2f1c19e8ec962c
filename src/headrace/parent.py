"""A process that another one started ends with it, however that one ends."""

from __future__ import annotations

import os
import signal

_SET_PARENT_DEATH_SIGNAL = 1


def end_with(parent: int, how: signal.Signals) -> None:
    """Have the kernel send this process a signal when its parent is gone.

    To the kernel the parent is the thread that started this process: it must live as long as its process does.
    """
    import ctypes

    ctypes.CDLL(None).prctl(_SET_PARENT_DEATH_SIGNAL, how)
    if os.getppid() != parent:
        # It ended before the kernel was asked.
        os.kill(os.getpid(), how)
