"""The snapshot files of one log, and the only code that creates or removes them.

The event loop writes one where a segment begins; a flush writes one where it ends, in a thread and perhaps for the same
offset. Each writes a file of its own and publishes it under the lock. At one offset the producers are the same unless
records were cut off in between, so the file that is there stays, and a snapshot that a truncation has overtaken is
never published.
"""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Callable, Iterable

from headrace.server.log.files import TEMPORARY, Files
from headrace.server.log.producers import ProducerEntry
from headrace.server.log.snapshots import SUFFIX, read_snapshot, snapshot_path


class SnapshotFiles:
    __slots__ = ("_files", "_lock", "_numbers", "_offsets", "directory")

    def __init__(self, files: Files, directory: str, offsets: Iterable[int]) -> None:
        self._files = files
        self.directory = directory
        self._offsets = set(offsets)
        self._numbers = itertools.count()
        self._lock = threading.Lock()
        """Never held during an fsync: the loop takes it too."""

    def __contains__(self, offset: int) -> bool:
        return offset in self._offsets

    @property
    def offsets(self) -> list[int]:
        """Oldest first."""
        with self._lock:
            return sorted(self._offsets)

    def path(self, offset: int) -> str:
        return snapshot_path(self.directory, offset)

    def read(self, offset: int) -> list[ProducerEntry]:
        """ValueError when it is damaged."""
        return read_snapshot(self._files, self.path(offset))

    def write(self, offset: int, data: bytes, bases: Iterable[int]) -> None:
        """On the loop. It is not synced; one that did not reach the disk is found damaged. Older snapshots that belong to no
        segment (`bases`) are removed."""
        with self._lock:
            self._files.write_whole(self.path(offset), data, sync=False)
            self._publish(offset, bases)

    def write_durably(
        self, offset: int, data: bytes, bases: Iterable[int], still_true: Callable[[], bool]
    ) -> None:
        """In a thread. `still_true` returns whether the log still holds the records that `data` describes."""
        name = f"{offset:020d}.{next(self._numbers)}{SUFFIX}{TEMPORARY}"
        temporary = os.path.join(self.directory, name)
        try:
            self._files.write_new(temporary, data, sync=True)
            with self._lock:
                if still_true() and offset not in self._offsets:
                    self._files.rename(temporary, self.path(offset))
                    self._publish(offset, bases)
                else:
                    self._files.remove(temporary)
        except OSError:
            self._files.remove(temporary)
            raise
        self._files.sync_directory(self.directory)

    def _publish(self, offset: int, bases: Iterable[int]) -> None:
        self._offsets.add(offset)
        for stray in [known for known in self._offsets.difference(bases) if known < offset]:
            self._remove(stray)

    def remove(self, offset: int) -> None:
        """Remove the snapshot at an offset."""
        with self._lock:
            self._remove(offset)

    def remove_after(self, offset: int) -> None:
        """The log ends at `offset` now."""
        with self._lock:
            for later in [known for known in self._offsets if known > offset]:
                self._remove(later)

    def clear(self) -> None:
        self.remove_after(-1)

    def _remove(self, offset: int) -> None:
        self._files.remove(self.path(offset))
        self._offsets.discard(offset)

    def move(self, directory: str) -> None:
        """Follow a rename of the directory."""
        self.directory = directory
