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
from dataclasses import dataclass
from stat import S_ISREG

from headrace.connectors.base import Offset

log = logging.getLogger("headrace.connectors")
_HEAD = 256
_BLOCK = 64 << 10


@dataclass(frozen=True, slots=True)
class Follower:
    """``whole`` files are taken once, when they are complete; others line by line."""

    pattern: str
    whole: bool
    max_bytes: int
    line_timeout: float

    def sizes(self) -> dict[str, int]:
        """How long each file is now, by identity."""
        return {_identity(stat): stat.st_size for _, stat in self._files({})}

    def latest(self, after: Offset, within: Mapping[str, int] | None = None) -> Offset:
        """The places after one more batch: path to identity, bytes read, and a sum of the first bytes.

        ``within`` bounds it: nothing is read beyond these sizes.
        """
        before = {place["id"]: place for place in after.values()}
        budget = self.max_bytes
        places: Offset = {}
        for path, stat in self._files(after):
            known = before.get(_identity(stat))
            at = until = _position(path, stat, known)
            size = stat.st_size if within is None else min(stat.st_size, within.get(_identity(stat), 0))
            if budget > 0 and at < size:
                until = self._end(path, stat, at, size, budget)
                budget -= until - at
            if known is not None and until == at == known["at"]:
                places[path] = known
            else:
                places[path] = {"id": _identity(stat), "at": until, "from": at, "head": _head(path, until)}
        # Only what changed makes a batch; "from" is where this batch begins in the file.
        return after if _same(places, after) else places

    def stretches(self, after: Offset, until: Offset) -> Iterator[tuple[str, Offset]]:
        """Files with new bytes in this batch."""
        before = {place["id"]: place for place in after.values()}
        for path, place in until.items():
            known = before.get(place["id"])
            if place["from"] < place["at"] and (known is None or known != place):
                yield path, place

    def lines(self, path: str, place: Offset) -> Iterator[tuple[int, bytes]]:
        """The lines of a stretch with their places."""
        with open(path, "rb") as file:
            file.seek(place["from"])
            at = int(place["from"])
            while at < place["at"]:
                line = file.readline(place["at"] - at)
                if not line:
                    log.warning("%s became shorter before it was read: what is missing is lost", path)
                    return
                yield at, line
                at += len(line)

    def find(self, path: str, place: Offset) -> str | None:
        """The name a file has now, or None, and a warning, when it is gone."""
        for candidate in (path, *_neighbours(path), *glob.iglob(self.pattern, recursive=True)):
            try:
                stat = os.stat(candidate)
            except OSError:
                continue
            if _identity(stat) == place["id"] and _head(candidate, place["at"]) == place["head"]:
                return candidate
        log.warning("%s is gone before it was read: %d bytes are lost", path, place["at"] - place["from"])
        return None

    def _files(self, after: Offset) -> list[tuple[str, os.stat_result]]:
        """Oldest first. Names that begin with a dot or an underscore are somebody's work in progress."""
        found: dict[str, tuple[str, os.stat_result]] = {}
        for path in glob.iglob(self.pattern, recursive=True):
            if not os.path.basename(path).startswith((".", "_")):
                _add(found, path)
        # A log that was rotated out of the pattern is still beside the others, and perhaps not read to its end.
        for path, place in after.items():
            if place["id"] not in found:
                aside: dict[str, tuple[str, os.stat_result]] = {}
                for neighbour in _neighbours(path):
                    _add(aside, neighbour)
                if place["id"] in aside:
                    found[place["id"]] = aside[place["id"]]
        return sorted(found.values(), key=lambda each: (each[1].st_mtime_ns, each[0]))

    def _end(self, path: str, stat: os.stat_result, at: int, size: int, budget: int) -> int:
        if self.whole:
            return stat.st_size if _is_complete_parquet(path) else at
        with open(path, "rb") as file:
            end = _last_newline(file.fileno(), at, min(size, at + budget))
            if end > at:
                return end
            file.seek(at)
            line = file.readline()
        if line.endswith(b"\n") or time.time() - stat.st_mtime >= self.line_timeout:
            return at + len(line)
        return at


def _position(path: str, stat: os.stat_result, known: Offset | None) -> int:
    if known is None or stat.st_size < known["at"]:
        return 0
    same = stat.st_size == known["at"] or _head(path, known["at"]) == known["head"]
    return int(known["at"]) if same else 0


def _head(path: str, length: int) -> int:
    try:
        with open(path, "rb") as file:
            return zlib.crc32(file.read(min(length, _HEAD)))
    except FileNotFoundError:
        return 0


def _last_newline(descriptor: int, start: int, end: int) -> int:
    """One past the last newline in a range, or its start."""
    while end > start:
        block_start = max(start, end - _BLOCK)
        found = os.pread(descriptor, end - block_start, block_start).rfind(b"\n")
        if found >= 0:
            return block_start + found + 1
        end = block_start
    return start


def _is_complete_parquet(path: str) -> bool:
    with open(path, "rb") as file:
        size = file.seek(0, os.SEEK_END)
        if size < 12:
            return False
        file.seek(-4, os.SEEK_END)
        return file.read(4) == b"PAR1"


def _same(places: Offset, after: Offset) -> bool:
    return {p["id"]: (p["at"], p["head"]) for p in places.values()} == {
        p["id"]: (p["at"], p["head"]) for p in after.values()
    }


def _add(found: dict[str, tuple[str, os.stat_result]], path: str) -> None:
    try:
        stat = os.stat(path)
    except FileNotFoundError:
        return
    if S_ISREG(stat.st_mode):
        found[_identity(stat)] = path, stat


def _identity(stat: os.stat_result) -> str:
    return f"{stat.st_dev}:{stat.st_ino}"


def _neighbours(path: str) -> Iterator[str]:
    return glob.iglob(os.path.join(glob.escape(os.path.dirname(path)), "*"))
