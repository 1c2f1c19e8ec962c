"""What a connector leaves on this machine: its checkpoint, a lock while it runs, and its last report.

One directory a connector.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headrace.connectors.base import Offset
from headrace.connectors.errors import ConnectorError
from headrace.connectors.waiting import forget
from headrace.replacing import replace_file
from headrace.streaming.run_files import RunFiles, RunningElsewhere

DIRECTORY = Path(".headrace") / "connect"
"""Where states are, below the directory of a connector's file."""
_LIVE = ("starting", "running", "waiting")


@dataclass(frozen=True)
class Status:
    """How a connector is doing, or was when it last ran."""

    name: str
    pid: int | None
    """None when it does not run."""
    facts: Mapping[str, Any]
    """What it last reported, by the names of `headrace connect status --json`."""

    @property
    def state(self) -> str:
        """starting, running, waiting, stopped, done, failed, died or never run."""
        state = str(self.facts.get("state", "never run"))
        return "died" if state in _LIVE and self.pid is None else state

    @property
    def rows(self) -> int:
        """Since it was started."""
        return int(self.facts.get("rows", 0))

    @property
    def error(self) -> str | None:
        """Why it failed, or what it waits for."""
        error = self.facts.get("error")
        return None if error is None else str(error)


class State:
    def __init__(self, root: Path, name: str) -> None:
        self.name = name
        self.home = root / name
        self._files = RunFiles(self.home / "lock", self.home / "status.json", self.home / "stop")

    @property
    def checkpoint(self) -> Path:
        return self.home / "checkpoint"

    @property
    def waiting(self) -> Path:
        """Where tasks say what they wait for."""
        return self.home / "waiting"

    def lock(self) -> None:
        """Keep everyone else from running this connector until ``release`` or the end of the process."""
        try:
            self._files.hold()
        except RunningElsewhere:
            raise ConnectorError(
                f"{self.name} runs already (process {self._files.pid or 'unknown'}): stop it with "
                f"'headrace connect stop {self.name}', or give this one another name"
            ) from None
        except OSError as error:
            raise ConnectorError(
                f"{self.home} cannot be used for the state of {self.name}: {error.strerror}; name another directory with "
                "--state"
            ) from None
        forget(self.waiting)

    @property
    def is_held(self) -> bool:
        """By this process, through this object."""
        return self._files.is_held

    def release(self) -> None:
        self._files.release()

    def keep_identity(self, identity: Mapping[str, object]) -> None:
        """Refuse to continue from a checkpoint that was made for other data; the first call records what it is for."""
        path = self.home / "identity.json"
        now = json.loads(json.dumps(identity))
        if path.exists():
            before = self._kept(path)
            changed = sorted(key for key in {*before, *now} if before.get(key) != now.get(key))
            if changed:
                names = " and ".join(changed)
                raise ConnectorError(
                    f"{self.name} was started with another {names}, and its checkpoint does not fit: give it "
                    "another name, or start afresh with --reset"
                )
            return
        replace_file(path, json.dumps(now))

    def keep_topic(self, name: str, identifier: str) -> bool:
        """Remember the id of a topic that was read; says whether the name belonged to another topic before."""
        path = self.home / "topics.json"
        known = self._kept(path) if path.exists() else {}
        before = known.get(name)
        if before != identifier:
            replace_file(path, json.dumps(known | {name: identifier}))
        return before is not None and before != identifier

    def keep_start(self, start: Callable[[], Offset]) -> Offset:
        """Where a source began when it was first run: "only what is new" means since then, also after a restart."""
        path = self.home / "start.json"
        if not path.exists():
            replace_file(path, json.dumps(start()))
        return self._kept(path)

    def reset(self) -> None:
        """Forget the checkpoint; the target keeps what it has, and so the topics' ids stay known."""
        shutil.rmtree(self.checkpoint, ignore_errors=True)
        for name in ("identity.json", "start.json", "status.json"):
            (self.home / name).unlink(missing_ok=True)

    def _kept(self, path: Path) -> dict[str, Any]:
        try:
            kept: dict[str, Any] = json.loads(path.read_text())
        except (OSError, ValueError) as error:
            raise ConnectorError(
                f"{path} is damaged or cannot be read ({error}): if the connector's file is as it was in the last run, "
                f"delete {path.name} and run it again; if not, delete {path.name} and start afresh with --reset"
            ) from None
        return kept

    @property
    def is_alive(self) -> bool:
        """Whether any process runs it."""
        return self._files.is_alive

    def ask_to_stop(self) -> None:
        self._files.ask_to_stop()

    @property
    def is_asked_to_stop(self) -> bool:
        return self._files.is_asked_to_stop

    def wait_until_over(self, seconds: float) -> bool:
        """False when it still runs after so long."""
        return self._files.wait_until_over(seconds)

    def report(self, facts: Mapping[str, Any]) -> None:
        self._files.report(facts)

    def status(self) -> Status:
        try:
            facts = self._files.last_report() or {}
        except ValueError:  # a power cut: the numbers are gone, and nothing depends on them
            facts = {}
        return Status(self.name, self._files.pid if self._files.is_alive else None, facts)


def all_states(root: Path) -> list[State]:
    if not root.is_dir():
        return []
    return [State(root, home.name) for home in sorted(root.iterdir()) if (home / "lock").exists()]
