"""What a connector's tasks wait for, left in files where the command that runs the connector finds it.

Spark does not say why a task takes its time. Tasks on other machines find no such directory, and report it in their log only.
"""

from __future__ import annotations

import json
import logging
import os
import shutil
import time
from pathlib import Path
from uuid import uuid4

from headrace.replacing import replace_file

_GRACE = 60.0
"""Seconds past its announced retry after which a waiter counts as gone."""
_log = logging.getLogger(__name__)


class Waiting:
    """One who may have to wait; sent to the tasks, where each gets a file of its own.

    The file only informs: a full or read-only disk costs the note, never the delivery it is about."""

    def __init__(self, directory: Path | None) -> None:
        self._directory = directory
        self._file: Path | None = None
        self._has_complained = False

    def __getstate__(self) -> dict[str, object]:
        return {"_directory": self._directory, "_file": None, "_has_complained": False}

    def begin(self, because: str, seconds: float) -> None:
        """It will try again in so many seconds."""
        if self._directory is None:
            return
        file = self._file or self._directory / f"{os.getpid()}-{uuid4().hex[:8]}.json"
        note = {"because": because, "until": time.time() + seconds}
        try:
            if not self._directory.parent.is_dir():
                return
            self._directory.mkdir(exist_ok=True)
            replace_file(file, json.dumps(note), durable=False)
        except OSError as error:
            self._complain(error)
        else:
            self._file = file

    def end(self) -> None:
        if self._file is None:
            return
        try:
            self._file.unlink(missing_ok=True)
        except OSError as error:
            self._complain(error)
        self._file = None

    def _complain(self, error: OSError) -> None:
        if not self._has_complained:
            _log.debug("Cannot note in %s what a task waits for: %s", self._directory, error)
            self._has_complained = True


def waits_because(directory: Path) -> str | None:
    """Why a task waits now; None when none does."""
    now = time.time()
    for file in sorted(directory.glob("[!.]*.json")):
        try:
            note = json.loads(file.read_text())
        except FileNotFoundError:
            continue
        if now < note["until"] + _GRACE:
            return str(note["because"])
    return None


def forget(directory: Path) -> None:
    """What an earlier run has left."""
    shutil.rmtree(directory, ignore_errors=True)
