"""Files named after the offsets they hold: ``<topic>@<its id>-<partition>-<first>-<next>.<format>``.

A file appears whole, under its final name, and says that this directory has all records of its topic partition up
to ``next``. So the names are the ledger: a writer that repeats, after a crash or a lost checkpoint, skips what is covered.
"""

from __future__ import annotations

import os
import re
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, Any, Literal, Protocol

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.fs
import pyarrow.parquet as pq

from headrace.connectors.errors import ConnectorError, one_line
from headrace.connectors.topic import METADATA, to_json

Format = Literal["json", "csv", "text", "parquet"]
_NAME = re.compile(
    r"(?P<origin>.+)-(?P<partition>\d{5,})-(?P<first>\d{20})-(?P<next>\d{20})\.(?P<ext>[a-z.]+)"
)
_EXTENSIONS = {"json": "jsonl", "csv": "csv", "text": "txt", "parquet": "parquet"}
SHOWN = ("_topic", "_partition", "_offset", "_timestamp", "_key")
"""The metadata columns a user may want in the data."""


@dataclass(frozen=True, slots=True)
class Name:
    origin: str
    """A chunk's: the topic and, where topics have ids, its id."""
    partition: int
    first: int
    next: int
    extension: str

    def __str__(self) -> str:
        return f"{self.origin}-{self.partition:05d}-{self.first:020d}-{self.next:020d}.{self.extension}"


def parse(base: str) -> Name | None:
    match = _NAME.fullmatch(base)
    if match is None:
        return None
    return Name(
        match["origin"], int(match["partition"]), int(match["first"]), int(match["next"]), match["ext"]
    )


@contextmanager
def writable(uri: str) -> Iterator[None]:
    """What the file system refuses, in a sentence."""
    try:
        yield
    except OSError as error:
        raise ConnectorError(
            f"sink.path is {uri}, which cannot be written to ({one_line(error)}): check that it is a directory, that this user "
            "may write there, and that there is space"
        ) from error


class FileTree:
    """A directory tree on any file system that Arrow knows, by URI or by path."""

    def __init__(self, uri: str) -> None:
        if "://" not in uri:
            self.files, self.root = pa.fs.LocalFileSystem(), os.path.abspath(uri)
            return
        try:
            self.files, self.root = pa.fs.FileSystem.from_uri(uri)
        except (OSError, ValueError) as error:
            raise ConnectorError(f"the path {uri} cannot be used: {one_line(error)}") from None

    def check(self) -> None:
        """Whether files could be made here, as far as can be seen without making one; OSError if not."""
        if not isinstance(self.files, pa.fs.LocalFileSystem):
            self.files.get_file_info(self.root)
            return
        there = self.root
        while not os.path.lexists(there):
            there = os.path.dirname(there)
        if not os.path.isdir(there):
            raise NotADirectoryError(f"{there} is not a directory")
        effective = os.access in os.supports_effective_ids
        if not os.access(there, os.W_OK | os.X_OK, effective_ids=effective):
            raise PermissionError(f"{there} is not this user's to write")

    def names(self, directory: str) -> list[Name]:
        selector = pa.fs.FileSelector(self.path(directory), allow_not_found=True)
        found = (parse(info.base_name) for info in self.files.get_file_info(selector) if info.is_file)
        return [name for name in found if name is not None]

    def directories(self) -> list[str]:
        """Every directory below the root that may hold files, the root included, relative to it."""
        selector = pa.fs.FileSelector(self.root, recursive=True, allow_not_found=True)
        below = [
            info.path for info in self.files.get_file_info(selector) if info.type == pa.fs.FileType.Directory
        ]
        return ["", *sorted(path[len(self.root) :].strip("/") for path in below)]

    def path(self, directory: str, base: str = "") -> str:
        return "/".join(part for part in (self.root, directory, base) if part)

    def clean(self, directory: str, older_than: float = 86_400) -> None:
        """Delete what writers that were killed have left unfinished."""
        selector = pa.fs.FileSelector(self.path(directory), allow_not_found=True)
        for info in self.files.get_file_info(selector):
            unfinished = info.is_file and info.base_name.startswith(".") and info.base_name.endswith(".tmp")
            if unfinished and info.mtime is not None and info.mtime.timestamp() < time.time() - older_than:
                self.files.delete_file(info.path)

    def publish(self, temporary: str, final: str) -> None:
        """Rename, so that readers see the file whole or not at all, and on a local disk after it is safe there."""
        self.make_durable(temporary)
        self.files.move(temporary, final)
        self.make_durable(final.rpartition("/")[0])

    def make_durable(self, path: str) -> None:
        """An object store has what it acknowledged; a local disk is asked."""
        if isinstance(self.files, pa.fs.LocalFileSystem):
            descriptor = os.open(path, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)


class Writer(Protocol):
    def write(self, rows: pa.RecordBatch) -> None: ...

    def close(self) -> None: ...


class Landing:
    """Writes the chunks of one task; ``finish`` makes its files appear."""

    def __init__(self, place: FileTree, format: Format, metadata: bool) -> None:
        self._place = place
        self._format = format
        self._metadata = metadata
        self._open: dict[tuple[str, str, int], _OpenFile] = {}
        self._covered: dict[tuple[str, str, int], int] = {}

    def add(
        self, directory: str, origin: str, partition: int, first: int, next: int, rows: pa.RecordBatch
    ) -> None:
        """Rows of one topic partition for one directory; ``first`` and ``next`` say what they cover."""
        key = directory, origin, partition
        if key not in self._covered:
            names = self._place.names(directory)
            mine = [name.next for name in names if (name.origin, name.partition) == (origin, partition)]
            self._covered[key] = max(mine, default=0)
        covered = self._covered[key]
        if first < covered:
            rows = rows.filter(pc.greater_equal(rows["_offset"], covered))
            first = covered
        if not rows.num_rows:
            return
        data = rows.select(["_value"]) if self._format == "text" else shown(rows, self._metadata)
        if key not in self._open:
            self._open[key] = self._create(directory, first, data.schema)
        self._open[key].next = next
        self._open[key].writer.write(data)

    def finish(self) -> None:
        for place, file in list(self._open.items()):
            directory, origin, partition = place
            file.close()
            name = Name(origin, partition, file.first, file.next, _EXTENSIONS[self._format])
            self._place.publish(file.temporary, self._place.path(directory, str(name)))
            del self._open[place]  # What is published is not discarded when a later one fails.

    def discard(self) -> None:
        """What was not finished was never there."""
        for file in self._open.values():
            file.close()
            self._place.files.delete_file(file.temporary)
        self._open.clear()

    def _create(self, directory: str, first: int, schema: pa.Schema) -> _OpenFile:
        self._place.files.create_dir(self._place.path(directory), recursive=True)
        temporary = self._place.path(directory, f".{uuid.uuid4().hex}.tmp")
        stream = self._place.files.open_output_stream(temporary)
        return _OpenFile(temporary, first, first, _WRITERS[self._format](stream, schema), stream)


@dataclass(slots=True)
class _OpenFile:
    temporary: str
    first: int
    next: int
    writer: Writer
    stream: IO[bytes]

    def close(self) -> None:
        self.writer.close()
        self.stream.close()


def shown(rows: pa.RecordBatch, metadata: bool) -> pa.RecordBatch:
    """The columns that go into a file."""
    keep = SHOWN if metadata else ()
    return rows.select([name for name in rows.schema.names if name in keep or name not in METADATA])


class _Lines:
    def __init__(self, stream: IO[bytes], schema: pa.Schema) -> None:
        self._stream = stream

    def write(self, rows: pa.RecordBatch) -> None:
        self._stream.write(b"".join(to_json(row) + b"\n" for row in rows.to_pylist()))

    def close(self) -> None: ...


class _Text(_Lines):
    def write(self, rows: pa.RecordBatch) -> None:
        self._stream.write(b"".join(value + b"\n" for value in rows["_value"].to_pylist()))


_WRITERS: dict[str, Callable[[Any, pa.Schema], Writer]] = {
    "json": _Lines,
    "text": _Text,
    "csv": pa.csv.CSVWriter,
    "parquet": lambda stream, schema: pq.ParquetWriter(stream, schema, compression="zstd"),
}
