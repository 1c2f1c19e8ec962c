"""Which leader epoch began at which offset (KIP-101), kept in leader-epoch-checkpoint.

Epochs and start offsets both grow. The file is written when the first record of an epoch comes and brought to the disk with
the next flush; after a crash recovery adds what the batches themselves say. An epoch that has no record yet is only in
memory, so that a broker that is elected for thousands of partitions at once writes nothing. A removed epoch may stay in the
file while the disk is full. Opening the log drops it again, and the file is rewritten before the next record.
"""

from __future__ import annotations

import os
from bisect import bisect_left, bisect_right

from headrace.server.log.files import FULL_DISK, Files

FILE_NAME = "leader-epoch-checkpoint"
UNDEFINED_EPOCH = -1
UNDEFINED_OFFSET = -1


class LeaderEpochs:
    __slots__ = ("_epochs", "_files", "_starts", "_synced_version", "_version", "path", "written")

    def __init__(self, files: Files, directory: str) -> None:
        self._files = files
        self.path = os.path.join(directory, FILE_NAME)
        self._epochs: list[int] = []
        self._starts: list[int] = []
        self._version = self._synced_version = 0
        self.written = UNDEFINED_EPOCH
        """The last epoch in the file; -1 if the file must be written before the next record."""

    def load(self) -> None:
        """Read the file; a damaged one counts as empty, since recovery finds epochs in the batches."""
        try:
            lines = self._files.read_whole(self.path).decode("ascii", "replace").split("\n")
        except FileNotFoundError:
            return
        try:
            if int(lines[0]) != 0:
                raise ValueError("unknown version")
            entries = [tuple(map(int, line.split())) for line in lines[2 : 2 + int(lines[1])]]
            for epoch, start in entries:
                self._epochs, self._starts = self._with(epoch, start)
        except (ValueError, IndexError):
            self._epochs, self._starts = [], []
        self.written = self.latest

    @property
    def entries(self) -> list[tuple[int, int]]:
        """(epoch, start offset), oldest first."""
        return list(zip(self._epochs, self._starts, strict=True))

    @property
    def latest(self) -> int:
        return self._epochs[-1] if self._epochs else UNDEFINED_EPOCH

    @property
    def earliest(self) -> tuple[int, int] | None:
        return (self._epochs[0], self._starts[0]) if self._epochs else None

    def begin(self, epoch: int, start_offset: int) -> None:
        """A leader epoch begins at the end of the log; it is written to the file with its first record."""
        if not self._continues(epoch, start_offset):
            self._epochs, self._starts = self._with(epoch, start_offset)

    def assign(self, epoch: int, start_offset: int) -> bool:
        """Record the first offset of an epoch; entries at or after that epoch or offset are dropped."""
        if self._continues(epoch, start_offset):
            if self.written == epoch:
                return False
            self._change(self._epochs, self._starts)
        else:
            self._change(*self._with(epoch, start_offset))
        return True

    def _continues(self, epoch: int, start_offset: int) -> bool:
        return bool(self._epochs) and epoch == self._epochs[-1] and start_offset >= self._starts[-1]

    def _with(self, epoch: int, start_offset: int) -> tuple[list[int], list[int]]:
        keep = min(bisect_left(self._epochs, epoch), bisect_left(self._starts, start_offset))
        return [*self._epochs[:keep], epoch], [*self._starts[:keep], start_offset]

    def _change(self, epochs: list[int], starts: list[int]) -> None:
        """Write first: on an OSError nothing has changed."""
        lines = [
            "0",
            str(len(epochs)),
            *(f"{epoch} {start}" for epoch, start in zip(epochs, starts, strict=True)),
        ]
        self._files.write_whole(self.path, ("\n".join(lines) + "\n").encode(), sync=False)
        self._epochs, self._starts = epochs, starts
        self._version += 1
        self.written = self.latest

    def _forget(self, epochs: list[int], starts: list[int]) -> None:
        """Entries were dropped: that takes effect at once, even if the file cannot be written."""
        self._epochs, self._starts = epochs, starts
        self.written = UNDEFINED_EPOCH
        try:
            self._change(epochs, starts)
        except OSError as error:
            if error.errno not in FULL_DISK:
                raise

    def end_offset_for(self, epoch: int, log_end_offset: int) -> tuple[int, int]:
        """The largest known epoch not above `epoch`, and the offset at which it ended."""
        if epoch == UNDEFINED_EPOCH or not self._epochs:
            return UNDEFINED_EPOCH, UNDEFINED_OFFSET
        if epoch == self._epochs[-1]:
            return epoch, log_end_offset
        higher = bisect_right(self._epochs, epoch)
        if higher == len(self._epochs):
            return UNDEFINED_EPOCH, UNDEFINED_OFFSET
        return (epoch if higher == 0 else self._epochs[higher - 1]), self._starts[higher]

    def epoch_for(self, offset: int) -> int:
        """The epoch in which an offset was written."""
        number = bisect_right(self._starts, offset) - 1
        return self._epochs[number] if number >= 0 else UNDEFINED_EPOCH

    def truncate_from_end(self, end_offset: int) -> None:
        """Forget epochs that began at or after the new end of the log."""
        keep = bisect_left(self._starts, end_offset)
        if keep < len(self._starts):
            self._forget(self._epochs[:keep], self._starts[:keep])

    def truncate_from_start(self, start_offset: int) -> None:
        """Forget epochs that ended before the log's new start; the one that holds it begins there now."""
        passed = bisect_right(self._starts, start_offset)
        if passed and (passed > 1 or self._starts[0] != start_offset):
            self._forget(self._epochs[passed - 1 :], [start_offset, *self._starts[passed:]])

    def clear(self) -> None:
        if self._epochs:
            self._change([], [])

    def adopt(self, other: LeaderEpochs) -> None:
        """Take over the history of another copy of this log, with epochs that have no record."""
        if (self._epochs, self._starts) != (other._epochs, other._starts):
            self._change(list(other._epochs), list(other._starts))

    def move(self, directory: str) -> None:
        self.path = os.path.join(directory, FILE_NAME)

    def sync(self) -> bool:
        """Sync the file; True when it was replaced since the last time, so that its directory must be synced too. Runs in a
        thread; an epoch that begins meanwhile waits for the next flush."""
        version = self._version
        if version == self._synced_version:
            return False
        self._files.open(self.path).sync()
        self._synced_version = version
        return True
