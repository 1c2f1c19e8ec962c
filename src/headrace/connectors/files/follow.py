"""Follows the files of a directory as they grow: which bytes are new, whatever happens to the names.

A file is known by its device and inode and by its first bytes, so that a rotated log is read on to its end under
its new name, and a new file that got an old inode is read from its beginning.
"""

from __future__ import annotations

import glob
import logging
import os
import time
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from stat import S_ISREG
from typing import BinaryIO

from headrace.connectors.base import Offset
from headrace.connectors.errors import ConnectorError

log = logging.getLogger("headrace.connectors")
_HEAD = 256
_BLOCK = 64 << 10


@dataclass(frozen=True, slots=True)
class FileFollower:
    """``whole`` files are taken once, when they are complete; others line by line."""

    pattern: str
    whole: bool
    max_bytes: int
    line_timeout: float

    def check(self) -> None:
        """Whether the existing files can be read."""
        for path, _ in self._files({}):
            with _readable(path), open(path, "rb"):
                pass

    def sizes(self) -> dict[str, int]:
        """How long each file is now, by identity."""
        return {_identity(stat): stat.st_size for _, stat in self._files({})}

    def latest(self, after: Offset, within: Mapping[str, int] | None = None) -> Offset:
        """The places after one more batch: path to identity, bytes read, a sum of the first bytes, and when it changed.

        ``within`` bounds it: nothing is read beyond these sizes.
        """
        before = {place["id"]: place for place in after.values()}
        budget = self.max_bytes
        places: Offset = {}
        for path, stat in self._files(after):
            identity = _identity(stat)
            known = before.get(identity)
            if known is not None and (stat.st_size, stat.st_mtime_ns) == (known["at"], known.get("mtime")):
                places[path] = _place(stat, known["at"], known["at"], known["head"])
                continue
            with _readable(path), open(path, "rb") as file:
                stat = os.fstat(file.fileno())
                if _identity(stat) != identity:
                    continue  # the name went to another file meanwhile: both are looked at the next time
                at = until = _position(file, stat, known)
                size = stat.st_size if within is None else min(stat.st_size, within.get(identity, 0))
                if budget > 0 and at < size:
                    until = self._end(file, stat, at, size, budget)
                    budget -= until - at
                places[path] = _place(stat, at, until, _head(file, until))
        found = {place["id"] for place in places.values()}
        for path, place in after.items():
            # A file that was renamed while we looked is not gone: its place is kept until the next look.
            if place["id"] not in found and "missing" not in place:
                name = f"{path}#{place['id']}" if path in places else path
                places[name] = {**place, "from": place["at"], "missing": True}
        # Only what changed makes a batch; "from" is where this batch begins in the file.
        return after if _same(places, after) else places

    def stretches(self, after: Offset, until: Offset) -> Iterator[tuple[str, Offset]]:
        """Files with new bytes in this batch."""
        before = {place["id"]: place for place in after.values()}
        for path, place in until.items():
            known = before.get(place["id"])
            if place["from"] < place["at"] and (known is None or known != place):
                yield path, place

    def open(self, path: str, place: Offset) -> BinaryIO | None:
        """A file, whatever its name is now; None, and a warning, when it is gone."""
        for candidate in (path, *_neighbours(path), *glob.iglob(self.pattern, recursive=True)):
            if not _is(candidate, place["id"]):
                continue
            with _readable(candidate):
                file = open(candidate, "rb")  # noqa: SIM115 - the caller closes it
                same = _identity(os.fstat(file.fileno())) == place["id"]
                if same and _head(file, place["at"]) == place["head"]:
                    return file
                file.close()
        log.warning("%s is gone before it was read: %d bytes are lost", path, place["at"] - place["from"])
        return None

    def lines(self, file: BinaryIO, place: Offset) -> Iterator[tuple[int, bytes]]:
        """The lines of a stretch with their places."""
        with _readable(file.name):
            at = file.seek(place["from"])
            while at < place["at"]:
                line = file.readline(place["at"] - at)
                if not line:
                    log.warning("%s became shorter before it was read: what is missing is lost", file.name)
                    return
                yield at, line
                at += len(line)

    def _files(self, after: Offset) -> list[tuple[str, os.stat_result]]:
        """Oldest first. Names that begin with a dot or an underscore are work in progress."""
        found: dict[str, tuple[str, os.stat_result]] = {}
        for path in glob.iglob(self.pattern, recursive=True):
            if not os.path.basename(path).startswith((".", "_")):
                _add(found, path)
        # A log that was rotated out of the pattern is still beside the others, and perhaps not read to its end.
        for path, place in after.items():
            if place["id"] not in found:
                for neighbour in _neighbours(path):
                    if _is(neighbour, place["id"]):
                        _add(found, neighbour)
        return sorted(found.values(), key=lambda each: (each[1].st_mtime_ns, each[0]))

    def _end(self, file: BinaryIO, stat: os.stat_result, at: int, size: int, budget: int) -> int:
        if self.whole:
            return stat.st_size if _is_complete_parquet(file) else at
        end = _last_newline(file.fileno(), at, min(size, at + budget))
        if end > at:
            return end
        file.seek(at)
        line = file.readline()
        if line.endswith(b"\n") or time.time() - stat.st_mtime >= self.line_timeout:
            return at + len(line)
        return at


def _place(stat: os.stat_result, start: int, end: int, head: int) -> Offset:
    return {"id": _identity(stat), "from": start, "at": end, "head": head, "mtime": stat.st_mtime_ns}


@contextmanager
def _readable(path: str) -> Iterator[None]:
    """A file that is gone is handled elsewhere; one that exists but cannot be read must not be skipped."""
    try:
        yield
    except FileNotFoundError:
        return
    except OSError as error:
        raise ConnectorError(
            f"{path} cannot be read: {error.strerror}; let this user read it, or leave it out of source.path"
        ) from error


def _position(file: BinaryIO, stat: os.stat_result, known: Offset | None) -> int:
    if known is None or stat.st_size < known["at"]:
        return 0
    return int(known["at"]) if _head(file, known["at"]) == known["head"] else 0


def _head(file: BinaryIO, length: int) -> int:
    return zlib.crc32(os.pread(file.fileno(), min(length, _HEAD), 0))


def _last_newline(descriptor: int, start: int, end: int) -> int:
    """One past the last newline in a range, or its start."""
    while end > start:
        block_start = max(start, end - _BLOCK)
        found = os.pread(descriptor, end - block_start, block_start).rfind(b"\n")
        if found >= 0:
            return block_start + found + 1
        end = block_start
    return start


def _is_complete_parquet(file: BinaryIO) -> bool:
    size = file.seek(0, os.SEEK_END)
    return size >= 12 and os.pread(file.fileno(), 4, size - 4) == b"PAR1"


def _same(places: Offset, after: Offset) -> bool:
    return {p["id"]: (p["at"], p["head"]) for p in places.values()} == {
        p["id"]: (p["at"], p["head"]) for p in after.values()
    }


def _add(found: dict[str, tuple[str, os.stat_result]], path: str) -> None:
    with _readable(path):
        stat = os.stat(path)
        if S_ISREG(stat.st_mode):
            found[_identity(stat)] = path, stat


def _is(path: str, identity: str) -> bool:
    """Whether this is the file; a name that cannot even be looked at is another file."""
    try:
        return _identity(os.stat(path)) == identity
    except OSError:
        return False


def _identity(stat: os.stat_result) -> str:
    return f"{stat.st_dev}:{stat.st_ino}"


def _neighbours(path: str) -> Iterator[str]:
    return glob.iglob(os.path.join(glob.escape(os.path.dirname(path)), "*"))
