"""What a run leaves on this machine: a lock while it lives, its last report, and a request to stop.

Commands that show or stop a run need only these files, and no Spark. The lock belongs to the process, so it is gone
when the process is, however it ended.
"""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from headrace.replacing import replace_file

_LOOKS = 10
_PAUSE = 0.02
"""A check by another process holds the lock for a moment, so taking it is retried this often, with these pauses."""
_LOOK_AGAIN = 0.1


class RunningElsewhere(Exception):
    """Another run holds the lock."""


class RunFiles:
    def __init__(self, lock: Path, report: Path, request: Path) -> None:
        self._lock = lock
        self._report = report
        self._request = request
        self._held: int | None = None

    # The run itself

    def hold(self) -> None:
        """Be the one run until ``release`` or the end of the process. RunningElsewhere when another is; OSError."""
        self._lock.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(self._lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        if not _taken(descriptor):
            os.close(descriptor)
            raise RunningElsewhere
        self._held = descriptor
        try:
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, str(os.getpid()).encode(), 0)
            self._request.unlink(missing_ok=True)
        except OSError:
            self.release()
            raise

    @property
    def is_held(self) -> bool:
        """By this process, through this object."""
        return self._held is not None

    def release(self) -> None:
        if self._held is not None:
            os.close(self._held)
            self._held = None

    @property
    def is_asked_to_stop(self) -> bool:
        return self._request.exists()

    def report(self, facts: Mapping[str, Any]) -> None:
        replace_file(self._report, json.dumps(facts), durable=False)

    # Other processes

    def last_report(self) -> dict[str, Any] | None:
        """None when there was none; ValueError when a power cut has damaged it."""
        try:
            facts: dict[str, Any] = json.loads(self._report.read_text())
        except FileNotFoundError:
            return None
        return facts

    @property
    def is_alive(self) -> bool:
        try:
            descriptor = os.open(self._lock, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return False
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            return True
        finally:
            os.close(descriptor)
        return False

    @property
    def pid(self) -> int | None:
        """Of the process that holds the lock, or held it last; None when it left no number."""
        try:
            return int(self._lock.read_text())
        except (FileNotFoundError, ValueError):
            return None

    def ask_to_stop(self) -> None:
        self._request.touch()

    def wait_until_over(self, seconds: float) -> bool:
        deadline = time.monotonic() + seconds
        while self.is_alive:
            if time.monotonic() > deadline:
                return False
            time.sleep(_LOOK_AGAIN)
        return True


def _taken(descriptor: int) -> bool:
    for _ in range(_LOOKS):
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            time.sleep(_PAUSE)
        else:
            return True
    return False
