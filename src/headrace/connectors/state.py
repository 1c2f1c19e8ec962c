"""What a connector leaves on this machine: its checkpoint, a lock while it runs, and its last progress.

One directory a connector. The lock belongs to the process, so it is gone when the process is, however it ended.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headrace.connectors.base import Offset
from headrace.connectors.errors import ConnectorError
from headrace.connectors.waiting import forget
from headrace.replacing import replace_file

DIRECTORY = Path(".headrace") / "connect"
"""Where states are, below the directory of a connector's file."""


@dataclass(frozen=True)
class Status:
    name: str
    pid: int | None
    """None when it does not run."""
    facts: Mapping[str, Any]
    """What the connector last said about itself."""


class State:
    def __init__(self, root: Path, name: str) -> None:
        self.name = name
        self.home = root / name
        self._lock: int | None = None

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
            self.home.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(self.home / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise ConnectorError(
                f"{self.home} cannot be used for the state of {self.name}: {error.strerror}; name another directory with "
                "--state"
            ) from None
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            holder = os.read(descriptor, 20).decode() or "another process"
            os.close(descriptor)
            raise ConnectorError(
                f"{self.name} runs already (process {holder}): stop it with 'headrace connect stop {self.name}', "
                "or give this one another name"
            ) from None
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, str(os.getpid()).encode(), 0)
        self._lock = descriptor
        self._request.unlink(missing_ok=True)
        forget(self.waiting)

    @property
    def is_held(self) -> bool:
        """By this process, through this object."""
        return self._lock is not None

    def release(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def keep_identity(self, identity: Mapping[str, object]) -> None:
        """Refuse to go on from a checkpoint that was made for other data; the first call notes what it is for."""
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

    def ask_to_stop(self) -> None:
        self._request.touch()

    @property
    def is_asked_to_stop(self) -> bool:
        return self._request.exists()

    @property
    def _request(self) -> Path:
        return self.home / "stop"

    def report(self, facts: Mapping[str, Any]) -> None:
        replace_file(self.home / "status.json", json.dumps(facts), durable=False)

    def status(self) -> Status:
        try:
            facts = json.loads((self.home / "status.json").read_text())
        except (FileNotFoundError, ValueError):
            facts = {}
        return Status(self.name, self._holder(), facts)

    def _holder(self) -> int | None:
        try:
            descriptor = os.open(self.home / "lock", os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return None
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            return int(os.read(descriptor, 20) or 0) or None
        else:
            return None
        finally:
            os.close(descriptor)


def all_states(root: Path) -> list[State]:
    if not root.is_dir():
        return []
    return [State(root, home.name) for home in sorted(root.iterdir()) if (home / "lock").exists()]
