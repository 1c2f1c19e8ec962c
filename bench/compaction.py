"""How much compaction did while something else was measured: seen from outside, by the same signs for every broker that
keeps Kafka's layout on disk.
"""

import os
import threading
import time
from contextlib import AbstractContextManager
from pathlib import Path
from types import TracebackType

_INTERVAL = 0.1


class CompactionWatch(AbstractContextManager["CompactionWatch"]):
    """Looks at a partition's directory ten times a second for the length of a `with` block.

    A cleaner writes files that end in .cleaned, renames them to .swap, and puts them in the place of the segments they
    were made from: a segment's name then vanishes or belongs to another file.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._segments: dict[str, tuple[int, int]] = {}
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self._begun = self._seconds = 0.0
        self.replaced = 0
        """Bytes of the segments whose place was taken."""
        self.writing = False
        """New segments were being written."""

    def __enter__(self) -> "CompactionWatch":
        self._segments, self.writing = self._look()
        self._begun = time.monotonic()
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join()
        self._seconds = time.monotonic() - self._begun

    @property
    def seen(self) -> bool:
        return self.writing or self.replaced > 0

    @property
    def replaced_per_second(self) -> float:
        return self.replaced / self._seconds

    def _watch(self) -> None:
        while not self._ended.wait(_INTERVAL):
            segments, writing = self._look()
            self.writing = self.writing or writing
            for name, (inode, size) in self._segments.items():
                if name not in segments or segments[name][0] != inode:
                    self.replaced += size
            self._segments = segments

    def _look(self) -> tuple[dict[str, tuple[int, int]], bool]:
        """The segments in service by name, with inode and size, and whether others are on their way."""
        segments: dict[str, tuple[int, int]] = {}
        writing = False
        with os.scandir(self._directory) as entries:
            for entry in entries:
                if entry.name.endswith((".cleaned", ".swap")):
                    writing = True
                elif entry.name.endswith(".log"):
                    try:
                        status = entry.stat()
                    except FileNotFoundError:
                        continue
                    segments[entry.name] = (status.st_ino, status.st_size)
        return segments, writing
