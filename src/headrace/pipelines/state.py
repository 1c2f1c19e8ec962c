"""What a running pipeline leaves in its project's directory `.headrace`: a lock, its numbers, a request to stop.

One run per project and version holds the lock; `status`, `stop` and `list` only look here, so they need no Spark.
"""

from __future__ import annotations

import fcntl
import json
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from headrace.pipelines.errors import PipelineError
from headrace.replacing import replace_file

_DIRECTORY = ".headrace"


@dataclass(frozen=True, slots=True)
class RunState:
    """The files of one version of one project."""

    root: Path
    version: str | None = None

    @property
    def _base(self) -> str:
        return str(self.root / _DIRECTORY / (self.version or "current"))

    @contextmanager
    def held(self) -> Iterator[None]:
        """Be the one run of this version; refused when another is alive."""
        (self.root / _DIRECTORY).mkdir(exist_ok=True)
        with open(self._base + ".lock", "w") as lock:
            if not _taken(lock):
                raise PipelineError(
                    f"This pipeline is already running (pid {self.read().get('pid', 'unknown')}); "
                    "stop it with 'headrace pipeline stop'."
                )
            Path(self._base + ".stop").unlink(missing_ok=True)
            yield

    @property
    def is_alive(self) -> bool:
        try:
            with open(self._base + ".lock") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except FileNotFoundError:
            return False
        except OSError:
            return True
        return False

    def write(self, name: str, state: str, flows: list[dict[str, object]], **more: object) -> None:
        text = json.dumps(
            {
                "pipeline": name,
                "version": self.version,
                "state": state,
                "pid": os.getpid(),
                "host": socket.gethostname(),
                "updated": time.time(),
                **more,
                "flows": flows,
            }
        )
        replace_file(Path(self._base + ".json"), text, durable=False)

    def read(self) -> dict[str, Any]:
        """The last numbers, with what is true now: a run that died says so."""
        try:
            found: dict[str, Any] = json.loads(Path(self._base + ".json").read_text())
        except FileNotFoundError:
            return {"state": "never run", "version": self.version, "flows": []}
        except ValueError:  # a power cut: the numbers are gone, and nothing depends on them
            return {
                "state": "running" if self.is_alive else "died",
                "version": self.version,
                "flows": [],
                "error": f"{self._base}.json is damaged; the next run writes it anew.",
            }
        if found["state"] in ("starting", "running") and not self.is_alive:
            found["state"] = "died"
        return found

    def ask_to_stop(self) -> None:
        Path(self._base + ".stop").touch()

    @property
    def is_asked_to_stop(self) -> bool:
        return Path(self._base + ".stop").exists()


def _taken(lock: TextIO) -> bool:
    """Take a lock that nobody has for longer than a look at it takes."""
    for _ in range(10):
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            time.sleep(0.02)
        else:
            return True
    return False


def versions(root: Path) -> list[RunState]:
    """Every version of a project that was ever run here, the current one first."""
    names = sorted(path.stem for path in (root / _DIRECTORY).glob("*.lock"))
    found = [RunState(root, None if name == "current" else name) for name in names]
    return sorted(found, key=lambda state: (state.version is not None, state.version or "")) or [
        RunState(root)
    ]
