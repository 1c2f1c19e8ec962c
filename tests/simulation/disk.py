"""A simulated disk behind the broker's one door to files.

What was synced stays. When the power goes, each directory keeps its changes up to some point and each file its writes up to some
point, some of them missing, the last one torn. A disk also runs full, fails, gets slow.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from headrace.server.log.files import FileHandle, Files
from headrace.wire.batch import Buffer
from tests.simulation.threads import pass_time
from tests.simulation.world import World

if TYPE_CHECKING:
    from tests.simulation.process import Process

SECTOR = 512
SYNC_SECONDS = 2e-3


class Inode:
    __slots__ = ("data", "durable", "modified_ms", "pending")

    def __init__(self) -> None:
        self.data = bytearray()
        self.durable = bytearray()
        self.pending: list[tuple[int, bytes] | int] = []
        """Writes (position, data) and sizes set since the last sync."""
        self.modified_ms = 0

    def write(self, position: int, data: Buffer) -> None:
        kept = bytes(data)
        if position > len(self.data):
            self.data.extend(bytes(position - len(self.data)))
        self.data[position : position + len(kept)] = kept
        self.pending.append((position, kept))

    def resize(self, size: int) -> None:
        _resize(self.data, size)
        self.pending.append(size)

    def sync(self) -> None:
        if self.pending:
            for each in self.pending:
                _redo(self.durable, each)
            self.pending.clear()


def _resize(data: bytearray, size: int) -> None:
    if size < len(data):
        del data[size:]
    else:
        data.extend(bytes(size - len(data)))


def _redo(data: bytearray, change: tuple[int, bytes] | int) -> None:
    if isinstance(change, int):
        _resize(data, change)
        return
    position, written = change
    if position > len(data):
        data.extend(bytes(position - len(data)))
    data[position : position + len(written)] = written


class Directory:
    __slots__ = ("durable", "entries", "pending")

    def __init__(self) -> None:
        self.entries: dict[str, Inode | Directory] = {}
        self.durable: dict[str, Inode | Directory] = {}
        self.pending: list[dict[str, Inode | Directory | None]] = []

    def put(self, changes: dict[str, Inode | Directory | None]) -> None:
        """One change, all or nothing: a name made, removed or renamed."""
        _apply(self.entries, changes)
        self.pending.append(changes)

    def sync(self) -> None:
        for changes in self.pending:
            _apply(self.durable, changes)
        self.pending.clear()


def _apply(entries: dict[str, Inode | Directory], changes: dict[str, Inode | Directory | None]) -> None:
    for name, node in changes.items():
        if node is None:
            entries.pop(name, None)
        else:
            entries[name] = node


class Disk:
    def __init__(self, world: World, name: str) -> None:
        self.world = world
        self.name = name
        self.random = world.stream(f"disk of {name}")
        self.root = Directory()
        self.root.put({"data": Directory()})  # Where the disk is mounted.
        self.root.sync()
        self.full = False
        self.failing = False
        self.slowness = 1.0
        self.boots = 0
        self.locks: dict[Inode, Process] = {}

    def unlock(self, process: Process) -> None:
        self.locks = {inode: owner for inode, owner in self.locks.items() if owner is not process}

    def lose_power(self) -> None:
        self.boots += 1
        lost = sum(self._settle(directory) for directory in list(self._directories(self.root)))
        self.world.trace(f"{self.name}: power lost, {lost} unsynced changes gone")

    def _directories(self, directory: Directory) -> Iterator[Directory]:
        yield directory
        for node in {**directory.entries, **directory.durable}.values():
            if isinstance(node, Directory):
                yield from self._directories(node)

    def _settle(self, directory: Directory) -> int:
        """Decide what of a directory, and of its files, is on the disk."""
        lost = self._settle_names(directory)
        for node in directory.entries.values():
            if isinstance(node, Inode):
                lost += self._settle_data(node)
        return lost

    def _settle_names(self, directory: Directory) -> int:
        kept = self.random.randint(0, len(directory.pending))
        lost = len(directory.pending) - kept
        for changes in directory.pending[:kept]:
            _apply(directory.durable, changes)
        directory.pending.clear()
        directory.entries = dict(directory.durable)
        return lost

    def _settle_data(self, inode: Inode) -> int:
        pending, choose = inode.pending, self.random
        if not pending:
            return 0
        kept = choose.randint(0, len(pending))
        lost = len(pending) - kept
        holes = choose.random() < 0.3
        for number, change in enumerate(pending[:kept]):
            if isinstance(change, tuple):
                if holes and choose.random() < 0.3:
                    lost += 1
                    # Its room was allocated, what belongs there was not written.
                    _redo(inode.durable, max(len(inode.durable), change[0] + len(change[1])))
                    continue
                if number == kept - 1:
                    change = self._torn(*change)
            _redo(inode.durable, change)
        pending.clear()
        inode.data = bytearray(inode.durable)
        return lost

    def _torn(self, position: int, data: bytes) -> tuple[int, bytes]:
        how = self.random.randrange(4)
        if how == 0:
            return position, data[: self.random.randint(0, len(data))]
        if how == 1 and data:  # A sector that was being written.
            torn = bytearray(data)
            torn[self.random.randrange(len(torn))] ^= 1 << self.random.randrange(8)
            return position, bytes(torn)
        return position, data


class SimulatedHandle(FileHandle):
    __slots__ = ("_files", "inode")

    def __init__(self, inode: Inode, path: str, writable: bool, files: SimulatedFiles) -> None:
        self.fd = -1
        self.path = path
        self.writable = writable
        self.used = True
        self.inode = inode
        self._files = files

    def __del__(self) -> None:
        pass

    def write_at(self, data: Buffer, position: int) -> None:
        self._files.step(self.path, writes=True)
        if self._files.disk.full and position + len(data) > len(self.inode.data):
            part = self._files.disk.random.randint(0, len(data))
            if part < len(data):
                self.inode.write(position, memoryview(data)[:part])
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), self.path)
        self.inode.write(position, data)
        self.inode.modified_ms = self._files.process.host.now_ms()

    def read_at(self, size: int, position: int, *, nowait: bool = False) -> bytes | bytearray:
        self._files.step(self.path, nowait=nowait)
        return bytes(self.inode.data[position : position + size])

    def read_into(self, buffer: bytearray | memoryview, position: int, *, nowait: bool = False) -> int:
        self._files.step(self.path, nowait=nowait)
        found = self.inode.data[position : position + len(buffer)]
        buffer[: len(found)] = found
        return len(found)

    def is_cached(self, position: int, size: int) -> bool:
        return position + size <= len(self.inode.data) and self._files.disk.random.random() < 0.9

    def send_to(self, socket: int, position: int, size: int) -> int:
        self._files.step(self.path)
        return self._files.process.host.network.send_past_transport(
            socket, self.inode.data[position : position + size]
        )

    def sync(self) -> None:
        self._files.step(self.path, syncs=True)
        self.inode.sync()

    def truncate(self, size: int) -> None:
        self._files.step(self.path, writes=True)
        self.inode.resize(size)

    def preallocate(self, size: int) -> None:
        self._files.step(self.path, writes=True)
        if size > len(self.inode.data):
            if self._files.disk.full:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), self.path)
            self.inode.resize(size)

    def forget_cache(self) -> None:
        pass

    def size(self) -> int:
        return len(self.inode.data)

    def lock(self) -> None:
        locks, process = self._files.disk.locks, self._files.process
        owner = locks.get(self.inode)
        if owner is not None and owner is not process:
            raise BlockingIOError(errno.EAGAIN, "locked", self.path)
        locks[self.inode] = process


class SimulatedFiles(Files):
    """The files of a host, as one of its processes sees them."""

    __slots__ = ("disk", "process")

    def __init__(self, disk: Disk, process: Process) -> None:
        self.disk = disk
        self.process = process

    def step(self, path: str, *, writes: bool = False, syncs: bool = False, nowait: bool = False) -> None:
        """Time passes for a thread; and this is where a disk fails."""
        disk = self.disk
        if nowait:
            if disk.random.random() < 0.03:
                raise BlockingIOError(errno.EAGAIN, "not in the page cache", path)
        elif syncs:
            pass_time(SYNC_SECONDS * disk.slowness)
        else:
            pass_time(1e-6 * disk.slowness if disk.slowness > 1 else 0.0)
        if self.process.dead:
            raise OSError(errno.EIO, "the process is dead", path)
        if disk.failing and (writes or syncs or disk.random.random() < 0.3):
            raise OSError(errno.EIO, os.strerror(errno.EIO), path)

    def _find(self, path: str) -> Inode | Directory | None:
        node: Inode | Directory | None = self.disk.root
        for part in path.split("/"):
            if part:
                node = node.entries.get(part) if isinstance(node, Directory) else None
        return node

    def _parent(self, path: str) -> tuple[Directory, str]:
        above, _, name = path.rpartition("/")
        parent = self._find(above)
        if not isinstance(parent, Directory):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        return parent, name

    def _file(self, path: str) -> Inode:
        node = self._find(path)
        if not isinstance(node, Inode):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        return node

    def _directory(self, path: str) -> Directory:
        node = self._find(path)
        if not isinstance(node, Directory):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        return node

    def open(self, path: str, *, writable: bool = False, create: bool = False) -> FileHandle:
        self.step(path, writes=create)
        parent, name = self._parent(path)
        node = parent.entries.get(name)
        if node is None and create:
            if self.disk.full and self.disk.random.random() < 0.5:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)
            node = Inode()
            node.modified_ms = self.process.host.now_ms()
            parent.put({name: node})
        if not isinstance(node, Inode):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        return SimulatedHandle(node, path, writable, self)

    def create(self, path: str) -> None:
        self.open(path, writable=True, create=True).truncate(0)

    def read_whole(self, path: str) -> bytes:
        self.step(path)
        return bytes(self._file(path).data)

    def rename(self, source: str, target: str) -> None:
        self.step(source, writes=True)
        parent, name = self._parent(source)
        new_parent, new_name = self._parent(target)
        node = parent.entries.get(name)
        if node is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), source)
        if new_parent is parent:
            parent.put({name: None, new_name: node})
        else:
            new_parent.put({new_name: node})
            parent.put({name: None})

    def remove(self, path: str) -> None:
        self.step(path, writes=True)
        try:
            parent, name = self._parent(path)
        except FileNotFoundError:
            return
        if name in parent.entries:
            parent.put({name: None})

    def make_directory(self, path: str) -> None:
        self.step(path, writes=True)
        node = self.disk.root
        for part in path.split("/"):
            if part:
                below = node.entries.get(part)
                if below is None:
                    below = Directory()
                    node.put({part: below})
                if not isinstance(below, Directory):
                    raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path)
                node = below

    def remove_directory(self, path: str) -> None:
        self.step(path, writes=True)
        parent, name = self._parent(path)
        if self._directory(path).entries:
            raise OSError(errno.ENOTEMPTY, os.strerror(errno.ENOTEMPTY), path)
        parent.put({name: None})

    def exists(self, path: str) -> bool:
        return self._find(path) is not None

    def is_directory(self, path: str) -> bool:
        return isinstance(self._find(path), Directory)

    def list(self, path: str) -> dict[str, int]:
        self.step(path)
        entries = self._directory(path).entries
        return {name: len(node.data) for name, node in entries.items() if isinstance(node, Inode)}

    def list_directories(self, path: str) -> Iterable[str]:
        self.step(path)
        entries = self._directory(path).entries
        return [name for name, node in entries.items() if isinstance(node, Directory)]

    def modified_ms(self, path: str) -> int:
        return self._file(path).modified_ms

    def set_modified(self, path: str, milliseconds: int) -> None:
        self._file(path).modified_ms = milliseconds

    def sync_directory(self, path: str) -> None:
        self.step(path, syncs=True)
        self._directory(path).sync()

    def boot_id(self) -> str | None:
        return f"{self.disk.name}-boot-{self.disk.boots}"
