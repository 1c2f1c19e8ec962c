"""Single keys from a terminal, without Enter; none where standard input is no terminal."""

from __future__ import annotations

import os
import select
import sys
import termios
import time
import tty
from collections.abc import Iterator
from contextlib import contextmanager


class Keys:
    def __init__(self, terminal: int | None) -> None:
        self._terminal = terminal

    def within(self, seconds: float) -> str | None:
        """The next key; None when none is pressed in time. Arrows and the like are passed over."""
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            if self._terminal is None:
                time.sleep(left)
                continue
            ready, _, _ = select.select([self._terminal], [], [], left)
            if not ready:
                return None
            pressed = os.read(self._terminal, 32)
            if not pressed:
                self._terminal = None  # The terminal is gone.
            elif not pressed.startswith(b"\x1b"):
                return chr(pressed[0])
        return None


@contextmanager
def keys() -> Iterator[Keys]:
    """The terminal is as it was afterwards."""
    if not sys.stdin.isatty():
        yield Keys(None)
        return
    terminal = sys.stdin.fileno()
    before = termios.tcgetattr(terminal)
    tty.setcbreak(terminal)
    try:
        yield Keys(terminal)
    finally:
        termios.tcsetattr(terminal, termios.TCSADRAIN, before)
