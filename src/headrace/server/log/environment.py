"""What the logs of a broker share: the file system, the clock, the limit on open files, the trash."""

from __future__ import annotations

import heapq
import logging
import math
import os
from dataclasses import dataclass, field

from headrace.clock import Clock, SystemClock
from headrace.server.log.files import Files, HandlePool

logger = logging.getLogger(__name__)

FULL_DISK_REMINDER = 60.0
"""Seconds between two lines about it."""


class Trash:
    """Files and directories already renamed out of service, waiting for file.delete.delay.ms to pass."""

    __slots__ = ("_heap", "_number")

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, str]] = []
        self._number = 0

    def __len__(self) -> int:
        return len(self._heap)

    def put(self, path: str, due_ms: int) -> None:
        heapq.heappush(self._heap, (due_ms, self._number, path))
        self._number += 1

    def take_due(self, now_ms: int) -> list[str]:
        due = []
        while self._heap and self._heap[0][0] <= now_ms:
            due.append(heapq.heappop(self._heap)[2])
        return due


def remove_for_good(files: Files, paths: list[str]) -> None:
    """Delete files, and directories with their files. Runs in a thread; failures are logged."""
    for path in paths:
        try:
            if files.is_directory(path):
                for name in files.list(path):
                    files.remove(os.path.join(path, name))
                files.remove_directory(path)
            else:
                files.remove(path)
        except OSError as error:
            logger.warning("Could not delete %s, which is no longer in use: %s", path, error.strerror)


@dataclass(slots=True)
class Environment:
    """What all logs of a broker share."""

    files: Files = field(default_factory=Files)
    clock: Clock = field(default_factory=SystemClock)
    pool: HandlePool = field(default_factory=HandlePool)
    trash: Trash = field(default_factory=Trash)
    rolled: set[str] = field(default_factory=set)
    """Directories of logs that began a new segment, so that the finished one should be brought to the disk soon."""
    producer_id_expiration_ms: int = 86_400_000
    transaction_verification: bool = False
    """Refuse transactional records of clients that no coordinator has vouched for (see VerificationGuard)."""
    stray_retention_ms: int = 604_800_000
    """How long stray partitions are kept; -1 keeps them forever."""
    full_directories: set[str] = field(default_factory=set)
    """Data directories in which a write found no room; removed again by the probe that finds some."""
    _full_disk_logged_at: float = -math.inf

    def note_full_disk(self, directory: str) -> None:
        """Remember it, and log it once a minute: every refused write has the same cause."""
        self.full_directories.add(directory)
        now = self.clock.monotonic()
        if now - self._full_disk_logged_at >= FULL_DISK_REMINDER:
            self._full_disk_logged_at = now
            logger.error(
                "No room is left on the disk of %s: writes are refused until there is some.", directory
            )
