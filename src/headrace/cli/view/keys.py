"""Single keys from a terminal, without Enter; none where standard input is no terminal."""

from __future__ import annotations

import os
import re
import select
import sys
import termios
import time
import tty
from collections.abc import Iterator
from contextlib import contextmanager

_ESCAPED = re.compile(r"\x1b(?:[\[O][0-?]*[ -/]*[@-~]?)?")


class Keys:
    def __init__(self, terminal: int | None) -> None:
        self._terminal = terminal
        self._pressed = ""
        """Keys that came together, and are still to be told."""

    def within(self, seconds: float) -> str | None:
        """The next key; None when none is pressed in time. Arrows and the like are passed over."""
        if self._pressed:
            return self._next()
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            if self._terminal is None:
                time.sleep(left)
                continue
            ready, _, _ = select.select([self._terminal], [], [], left)
            if not ready:
                return None
            pressed = os.read(self._terminal, 1024)
            if not pressed:
                self._terminal = None  # The terminal is gone.
            self._pressed = _ESCAPED.sub("", pressed.decode("utf-8", "replace"))
            if self._pressed:
                return self._next()
        return None

    def _next(self) -> str:
        key, self._pressed = self._pressed[0], self._pressed[1:]
        return key


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
