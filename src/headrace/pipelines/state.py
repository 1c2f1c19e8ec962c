"""What a running pipeline leaves in its project's directory `.headrace`: a lock, its numbers, a request to stop.

One run per project and version holds the lock; `status`, `stop` and `list` only look here, so they need no Spark.
"""

from __future__ import annotations

import os
import socket
import time
from pathlib import Path
from typing import Any

from headrace.pipelines.errors import PipelineError
from headrace.streaming.run_files import RunFiles, RunningElsewhere

_DIRECTORY = ".headrace"
_LIVE = ("starting", "running")


class RunState:
    """The files of one version of one project."""

    def __init__(self, root: Path, version: str | None = None) -> None:
        self.version = version
        name, home = version or "current", root / _DIRECTORY
        self._report = home / f"{name}.json"
        self._files = RunFiles(home / f"{name}.lock", self._report, home / f"{name}.stop")

    def hold(self) -> None:
        """Be the one run of this version; refused when another is alive."""
        try:
            self._files.hold()
        except RunningElsewhere:
            pid = self._files.pid or self.read().get("pid", "unknown")
            raise PipelineError(
                f"This pipeline is already running (pid {pid}); stop it with 'headrace pipeline stop'."
            ) from None

    def release(self) -> None:
        self._files.release()

    @property
    def is_alive(self) -> bool:
        return self._files.is_alive

    def write(self, name: str, state: str, flows: list[dict[str, object]], **more: object) -> None:
        self._files.report(
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

    def read(self) -> dict[str, Any]:
        """The last numbers, with what is true now: a run that died says so."""
        try:
            found = self._files.last_report()
        except ValueError:  # a power cut: the numbers are gone, and nothing depends on them
            return {
                "state": "running" if self.is_alive else "died",
                "version": self.version,
                "flows": [],
                "error": f"{self._report} is damaged; the next run writes it anew.",
            }
        if found is None:
            return {"state": "never run", "version": self.version, "flows": []}
        if found["state"] in _LIVE and not self.is_alive:
            found["state"] = "died"
        return found

    def ask_to_stop(self) -> None:
        self._files.ask_to_stop()

    @property
    def is_asked_to_stop(self) -> bool:
        return self._files.is_asked_to_stop

    def wait_until_over(self, seconds: float) -> bool:
        """False when it still runs after so long."""
        return self._files.wait_until_over(seconds)


def versions(root: Path) -> list[RunState]:
    """Every version of a project that was ever run here, the current one first."""
    names = sorted(path.stem for path in (root / _DIRECTORY).glob("*.lock"))
    found = [RunState(root, None if name == "current" else name) for name in names]
    return sorted(found, key=lambda state: (state.version is not None, state.version or "")) or [
        RunState(root)
    ]
