"""The only access to the file system: every byte the log reads or writes passes through here, so that tests can inject failures.

A FileHandle owns one descriptor and closes it when the last reference goes: a slice being sent to a client
keeps its segment readable although retention has removed the file meanwhile.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import resource
from collections import deque
from collections.abc import Iterable

from headrace.wire.batch import Buffer

_NOWAIT = getattr(os, "RWF_NOWAIT", 0)
TEMPORARY = ".tmp"
"""Suffix of a small file before it takes the place of the old one."""

FULL_DISK = frozenset({errno.ENOSPC, errno.EDQUOT})
"""Errors after which a write may succeed once there is room."""

_BOOT_ID = "/proc/sys/kernel/random/boot_id"
_WITHOUT_NOWAIT = {errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL}


class FileHandle:
    """An open file. Positions are always explicit, so readers and the writer never disturb each other."""

    __slots__ = ("__weakref__", "fd", "path", "used", "writable")

    def __init__(self, fd: int, path: str, writable: bool) -> None:
        self.fd = fd
        self.path = path
        self.writable = writable
        self.used = True

    def __del__(self) -> None:
        os.close(self.fd)

    def write_at(self, data: Buffer, position: int) -> None:
        """Write all of `data`; on an error any part of it may have been written."""
        written = os.pwrite(self.fd, data, position)
        if written != len(data):
            view = memoryview(data)
            while written < len(view):
                written += os.pwrite(self.fd, view[written:], position + written)

    def read_at(self, size: int, position: int, *, nowait: bool = False) -> bytes | bytearray:
        """Up to `size` bytes, fewer only at the end of the file.

        With `nowait`, BlockingIOError when they are not all in the page cache.
        """
        if not nowait:
            return os.pread(self.fd, size, position)
        buffer = bytearray(size)
        count = self.read_into(buffer, position, nowait=True)
        if count < size:
            # The kernel stops short both at the end of the file and at the first page it does not have.
            if position + count < os.fstat(self.fd).st_size:
                raise BlockingIOError(errno.EAGAIN, "not in the page cache", self.path)
            del buffer[count:]
        return buffer

    def read_into(self, buffer: bytearray | memoryview, position: int, *, nowait: bool = False) -> int:
        """Fill `buffer` as far as one system call does; 0 at the end of the file.

        With `nowait`, it returns what the page cache has and raises BlockingIOError when that is nothing.
        """
        if nowait and _NOWAIT:
            try:
                return os.preadv(self.fd, [buffer], position, _NOWAIT)
            except OSError as error:
                if error.errno not in _WITHOUT_NOWAIT:
                    raise
        return os.preadv(self.fd, [buffer], position)

    def is_cached(self, position: int, size: int) -> bool:
        """Whether the page cache has the last of these bytes; logs are read forwards, so it then has the others too."""
        try:
            return self.read_into(bytearray(1), position + size - 1, nowait=True) == 1
        except OSError:
            return False

    def send_to(self, socket: int, position: int, size: int) -> int:
        """Send from the page cache; returns how much the socket took. BlockingIOError when it takes nothing."""
        return os.sendfile(socket, self.fd, position, size)

    def sync(self) -> None:
        """Bring the contents and the size to the disk."""
        os.fdatasync(self.fd)

    def truncate(self, size: int) -> None:
        os.ftruncate(self.fd, size)

    def preallocate(self, size: int) -> None:
        os.posix_fallocate(self.fd, 0, size)

    def forget_cache(self) -> None:
        """Drop cached pages, so that the next read comes from the disk."""
        os.posix_fadvise(self.fd, 0, 0, os.POSIX_FADV_DONTNEED)

    def size(self) -> int:
        return os.fstat(self.fd).st_size

    def lock(self) -> None:
        """Keep other processes from locking the file for as long as this handle lives; BlockingIOError when one has it."""
        fcntl.flock(self.fd, fcntl.LOCK_EX | fcntl.LOCK_NB)


class Files:
    """The operations on names. A test passes a subclass that fails where it wants."""

    __slots__ = ()

    def open(self, path: str, *, writable: bool = False, create: bool = False) -> FileHandle:
        flags = os.O_CLOEXEC | (os.O_RDWR if writable else os.O_RDONLY) | (os.O_CREAT if create else 0)
        return FileHandle(os.open(path, flags, 0o644), path, writable)

    def create(self, path: str) -> None:
        """Create an empty file, or truncate an existing one."""
        os.close(os.open(path, os.O_CLOEXEC | os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644))

    def read_whole(self, path: str) -> bytes:
        with open(path, "rb") as file:
            return file.read()

    def write_whole(self, path: str, data: Buffer, *, sync: bool) -> None:
        """Replace a small file so that a crash leaves the old or the new contents, never a mixture.

        A file has one writer at a time: two would write the same temporary file. Without `sync` a crash of the machine
        (not of the process) may leave it empty.
        """
        temporary = path + TEMPORARY
        self.write_new(temporary, data, sync=sync)
        self.rename(temporary, path)
        if sync:
            self.sync_directory(os.path.dirname(path))

    def write_new(self, path: str, data: Buffer, *, sync: bool) -> None:
        """Write a small file that nobody reads yet."""
        handle = self.open(path, writable=True, create=True)
        handle.truncate(0)
        handle.write_at(data, 0)
        if sync:
            handle.sync()

    def rename(self, source: str, target: str) -> None:
        os.replace(source, target)

    def remove(self, path: str) -> None:
        """Remove a file; not an error if it does not exist."""
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)

    def make_directory(self, path: str) -> None:
        os.makedirs(path, exist_ok=True)

    def remove_directory(self, path: str) -> None:
        """Remove an empty directory."""
        os.rmdir(path)

    def exists(self, path: str) -> bool:
        return os.path.exists(path)

    def is_directory(self, path: str) -> bool:
        return os.path.isdir(path)

    def list(self, path: str) -> dict[str, int]:
        """The regular files of a directory and their sizes, without those that vanish meanwhile: a thread removes files that
        are out of service."""
        sizes: dict[str, int] = {}
        with os.scandir(path) as entries:
            for entry in entries:
                if entry.is_file():
                    with contextlib.suppress(FileNotFoundError):
                        sizes[entry.name] = entry.stat().st_size
        return sizes

    def list_directories(self, path: str) -> Iterable[str]:
        with os.scandir(path) as entries:
            return [entry.name for entry in entries if entry.is_dir(follow_symlinks=True)]

    def modified_ms(self, path: str) -> int:
        return os.stat(path).st_mtime_ns // 1_000_000

    def set_modified(self, path: str, milliseconds: int) -> None:
        os.utime(path, ns=(milliseconds * 1_000_000, milliseconds * 1_000_000))

    def sync_directory(self, path: str) -> None:
        """Make creations, renames and removals in a directory survive a crash of the machine."""
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)

    def boot_id(self) -> str | None:
        """An id that changes with every boot of the machine, which forgets what was not synced; None where the system has none."""
        try:
            return self.read_whole(_BOOT_ID).decode().strip()
        except OSError:
            return None


class HandleSlot:
    """A place for one handle that its owner can reopen at any time, so that the pool may empty it."""

    __slots__ = ("handle", "listed")

    def __init__(self) -> None:
        self.handle: FileHandle | None = None
        self.listed = False
        """The slot is in the pool's list, perhaps empty; it must not be added twice."""


class HandlePool:
    """Bounds how many files the logs keep open: the slots not used lately are emptied first."""

    __slots__ = ("_slots", "limit")

    def __init__(self, limit: int | None = None) -> None:
        if limit is None:
            # Half of what the process may open; the rest is for connections.
            limit = min(max(resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 2, 32), 16_384)
        self.limit = limit
        self._slots: deque[HandleSlot] = deque()

    def fill(self, slot: HandleSlot, handle: FileHandle) -> None:
        slot.handle = handle
        if not slot.listed:
            slot.listed = True
            self._slots.append(slot)
        while len(self._slots) > self.limit:
            oldest = self._slots.popleft()
            if oldest is slot:
                self._slots.append(oldest)
            elif (other := oldest.handle) is not None and other.used:
                other.used = False
                self._slots.append(oldest)
            else:
                oldest.handle = None
                oldest.listed = False

    def empty(self, slot: HandleSlot) -> None:
        """Close the handle unless somebody still reads from it; the pool forgets the slot in passing."""
        slot.handle = None

    @property
    def open_count(self) -> int:
        return sum(slot.handle is not None for slot in self._slots)
