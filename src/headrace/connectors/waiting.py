"""What a connector's tasks wait for, left in files where the command that runs the connector finds it.

Spark tells nobody why a task takes its time. Tasks on other machines find no such directory, and say it in their log only.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from pathlib import Path
from uuid import uuid4

from headrace.replacing import replace_file

_GRACE = 60.0
"""Seconds after which one who has not tried again when it said it would is taken to be gone."""


class Waiting:
    """One who may have to wait; sent to the tasks, where each gets a file of its own."""

    def __init__(self, directory: Path | None) -> None:
        self._directory = directory
        self._file: Path | None = None

    def __getstate__(self) -> dict[str, object]:
        return {"_directory": self._directory, "_file": None}

    def begin(self, because: str, seconds: float) -> None:
        """It will try again in so many seconds."""
        if self._directory is None or not self._directory.parent.is_dir():
            return
        if self._file is None:
            self._directory.mkdir(exist_ok=True)
            self._file = self._directory / f"{os.getpid()}-{uuid4().hex[:8]}.json"
        note = {"because": because, "until": time.time() + seconds}
        replace_file(self._file, json.dumps(note), durable=False)

    def end(self) -> None:
        if self._file is not None:
            self._file.unlink(missing_ok=True)
            self._file = None


def waits_because(directory: Path) -> str | None:
    """Why somebody waits now; None when nobody does."""
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
