"""A table that renews itself is drawn whole although a signal comes in the middle."""

import io
import os
import signal

import pytest
from rich.console import Console
from rich.live import Live

from headrace.cli.view.redraw import redraw


class Interrupted(io.StringIO):
    """A terminal at which somebody presses Ctrl-C just when the word has appeared."""

    is_pressed = False

    def write(self, text):
        super().write(text)
        if "running" in text and not self.is_pressed:
            self.is_pressed = True
            os.kill(os.getpid(), signal.SIGINT)
        return len(text)


def test_ctrl_c_while_the_table_is_written_comes_after_it():
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    terminal = Interrupted()
    with Live(console=Console(file=terminal, force_terminal=True), auto_refresh=False) as live:
        with pytest.raises(KeyboardInterrupt):
            redraw(live, "gate running")
        redraw(live, "gate stopped")
    assert terminal.getvalue().count("running") == 1
    assert terminal.getvalue().count("stopped") <= 2  # rich draws the last one again when it ends
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before
