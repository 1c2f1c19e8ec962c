"""A file system that fails when a test says so: full disks, broken writes, failed fsyncs, disks that are slow."""

from __future__ import annotations

import errno
import os
import time

from headrace.server.log.files import FileHandle, Files
from headrace.wire.batch import Buffer


class FaultyFiles(Files):
    """Fails for paths that contain `where`: writes with `write_error`, fsyncs with `sync_error` (errno values).

    Writes there take `write_seconds` longer, fsyncs `sync_seconds`.
    """

    __slots__ = ("sync_error", "sync_seconds", "where", "write_error", "write_seconds")

    def __init__(self) -> None:
        self.where = ""
        self.write_error: int | None = None
        self.sync_error: int | None = None
        self.write_seconds = self.sync_seconds = 0.0

    def fill(self, where: str = "") -> None:
        """From now on the disk is full for files whose path contains `where`: all of them by default."""
        self.where, self.write_error = where, errno.ENOSPC

    def heal(self) -> None:
        """Everything works again."""
        self.write_error = self.sync_error = None
        self.write_seconds = self.sync_seconds = 0.0

    def open(self, path: str, *, writable: bool = False, create: bool = False) -> FileHandle:
        handle = super().open(path, writable=writable, create=create)
        return _FaultyHandle(self, os.dup(handle.fd), path, writable)

    def check(self, error: int | None, path: str) -> None:
        if error is not None and self.where in path:
            raise OSError(error, os.strerror(error), path)

    def hesitate(self, seconds: float, path: str) -> None:
        if seconds and self.where in path:
            time.sleep(seconds)


class _FaultyHandle(FileHandle):
    __slots__ = ("_files",)

    def __init__(self, files: FaultyFiles, fd: int, path: str, writable: bool) -> None:
        super().__init__(fd, path, writable)
        self._files = files

    def write_at(self, data: Buffer, position: int) -> None:
        self._files.hesitate(self._files.write_seconds, self.path)
        if self._files.write_error == errno.ENOSPC and self._files.where in self.path:
            # A disk that fills up takes the first part of a write.
            super().write_at(memoryview(data)[: len(data) // 2], position)
        self._files.check(self._files.write_error, self.path)
        super().write_at(data, position)

    def sync(self) -> None:
        self._files.hesitate(self._files.sync_seconds, self.path)
        self._files.check(self._files.sync_error, self.path)
        super().sync()
