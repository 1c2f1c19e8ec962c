"""The frame around every command: a failure is one sentence on stderr, Ctrl-C and a closed pipe are quiet."""

from __future__ import annotations

import io
import os
import signal
import struct
import sys
import time
from collections.abc import Callable
from types import FrameType
from typing import Any, NamedTuple

from headrace.cli.failure import Exit, Failure

_EXTRAS = {
    "httptools": "services",
    "kazoo": "services",
    "msgspec": "registry",
    "uvicorn": "registry",
} | dict.fromkeys(("grpc", "numpy", "pandas", "pyarrow", "pyspark"), "spark")
"""Modules that the base install does not have, and the extra that brings them."""


_IMPORT_PATIENCE = 5.0
"""A module of the user's may never come back from its import."""
_LOOK_AGAIN = 0.01

_Handler = Callable[[int, FrameType | None], Any] | int | signal.Handlers | None


class Terminated(BaseException):
    """SIGTERM, raised so that a command leaves its group and closes its files on the way out."""


def run(action: Callable[[], int]) -> int:
    """Run one command and return its exit code."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        # A character that the terminal cannot show, or a name that is not text, must not end a command.
        sys.stdout.reconfigure(errors="backslashreplace")
    terminate = _Terminate()
    before = signal.signal(signal.SIGTERM, terminate)
    try:
        return _guarded(action)
    finally:
        terminate.give_back_the_alarm()
        signal.signal(signal.SIGTERM, before)


def _guarded(action: Callable[[], int]) -> int:
    try:
        code = action()
        sys.stdout.flush()
    except Failure as failure:
        _say(failure.sentence)
        return failure.code
    except ModuleNotFoundError as missing:
        module = (missing.name or "").partition(".")[0]
        if module not in _EXTRAS:
            raise
        _say(
            f"This command needs {module}, which is not installed: pip install 'headrace[{_EXTRAS[module]}]', or make setup "
            "in a checkout."
        )
        return Exit.FAILED
    except KeyboardInterrupt:
        return Exit.INTERRUPTED
    except Terminated:
        return Exit.TERMINATED
    except BrokenPipeError:
        return _output_closed()
    except SystemExit as stop:
        # typer answers a broken pipe itself, as a failure; but a reader that has seen enough is none.
        if isinstance(stop.__context__, BrokenPipeError):
            return _output_closed()
        return stop.code if isinstance(stop.code, int) else Exit.OK if stop.code is None else Exit.FAILED
    except (OverflowError, struct.error):  # what the protocol has no room for; every other range is checked
        _say("A number on the command line is too large.")
        return Exit.USAGE
    except OSError as error:  # a file or directory that was not checked before its use, or a full disk
        _let_go_of_stdout()
        what = f"{error.filename} cannot be used" if error.filename else "Reading or writing failed"
        _say(f"{what}: {error.strerror or error}.")
        return Exit.FAILED
    return code


class _Terminate:
    """The handler of SIGTERM, and of the alarm by which it looks again.

    The import system swallows what is raised inside some of its steps, and a command begins with imports: a signal that
    arrives during one is handled when it is over. The alarm may belong to something else, such as a test runner: it is borrowed
    for that time only.
    """

    def __init__(self) -> None:
        self._patience_ends: float | None = None
        self._borrowed: _Alarm | None = None

    def __call__(self, number: int, frame: FrameType | None) -> None:
        in_charge: object = signal.getsignal(signal.SIGTERM)
        if in_charge is not self:
            # The alarm of a signal that something else has taken over since, such as a broker's event loop: pass it on.
            self.give_back_the_alarm()
            signal.raise_signal(signal.SIGTERM)
            return
        now = time.monotonic()
        if self._patience_ends is None:
            self._patience_ends = now + _IMPORT_PATIENCE
        if _is_importing(frame) and now < self._patience_ends:
            if self._borrowed is None:
                self._borrowed = _Alarm(
                    signal.signal(signal.SIGALRM, self), *signal.getitimer(signal.ITIMER_REAL), now
                )
            signal.setitimer(signal.ITIMER_REAL, _LOOK_AGAIN)
            return
        raise Terminated

    def give_back_the_alarm(self) -> None:
        if self._borrowed is not None:
            alarm, self._borrowed = self._borrowed, None
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, alarm.handler)
            if alarm.left:
                passed = time.monotonic() - alarm.borrowed_at
                signal.setitimer(signal.ITIMER_REAL, max(_LOOK_AGAIN, alarm.left - passed), alarm.interval)


class _Alarm(NamedTuple):
    handler: _Handler
    left: float  # seconds; 0 means that it was not set
    interval: float
    borrowed_at: float


def _is_importing(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False


def _say(sentence: str) -> None:
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        _output_closed()
    print(f"headrace: {sentence}", file=sys.stderr)


def _output_closed() -> int:
    _let_go_of_stdout()
    return Exit.OUTPUT_CLOSED


def _let_go_of_stdout() -> None:
    """The interpreter flushes stdout once more when it ends; give it somewhere to flush to."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
