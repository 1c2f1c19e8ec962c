"""Files and directories as a source: CSV, JSON lines and text line by line as they grow, Parquet file by file.

The same bytes give the same rows, so the topic gets each line exactly once. All of Spark's machines must see
the files under the same path.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import BinaryIO, Literal

from headrace.connectors.base import BadRow, Offset, PolledSource, Raw, Row
from headrace.connectors.errors import ConnectorError
from headrace.connectors.files.follow import FileFollower
from headrace.connectors.settings import Seconds, setting
from headrace.connectors.topic import read_json

_TASKS = 16
_TYPES: dict[str, Callable[[str], object]] = {
    "int": int,
    "float": float,
    "text": str,
    "bool": lambda text: {"true": True, "false": False, "1": True, "0": False}[text.strip().lower()],
}


@dataclass(frozen=True)
class FilesSettings:
    path: str = setting("A directory, a file, or a pattern such as /var/log/app/*.log.", example="/data/in")
    format: Literal["json", "csv", "text", "parquet"] = setting(
        "json (an object a line), csv, text (a line is a value) or parquet.", default="json"
    )
    header: bool = setting("CSV: whether each file begins with the names of its columns.", default=True)
    columns: tuple[str, ...] = setting(
        "CSV without a header: the names of the columns.", default=(), example=["id", "total"]
    )
    types: dict[str, str] = setting(
        "CSV: columns that are not text, as int, float or bool.", default={}, example={"total": "float"}
    )
    delimiter: str = setting("CSV: what stands between columns.", default=",")
    max_bytes: int = setting("The most to read in one batch.", default=64 << 20, minimum=1)
    line_timeout: Seconds = setting(
        "A last line without a line end is taken when its file has not changed for so long.",
        default=5.0,
        minimum=0,
    )

    def problems(self) -> Iterator[str]:
        if self.format == "csv" and not self.header and not self.columns:
            yield "columns is missing: with header = false the columns need names"
        if len(self.delimiter) != 1 or self.delimiter in '"\r\n':
            yield f"delimiter is {self.delimiter!r}: it must be one character, and no quote or line end"
        for name, kind in self.types.items():
            if kind not in _TYPES:
                yield f"types.{name} is {kind!r}: choose {', '.join(_TYPES)}"


class FilesSource(PolledSource):
    delivery = "exactly once"
    summary = "Files and directories: CSV, JSON lines, text, Parquet, followed as they grow."
    Settings = FilesSettings
    settings: FilesSettings

    def __init__(self, name: str, settings: FilesSettings) -> None:
        super().__init__(name, settings)
        self._within: dict[str, int] | None = None

    def check(self) -> None:
        check_directory(self.settings.path)
        self._follower().check()

    def identity(self) -> dict[str, object]:
        return {"path": self.settings.path, "format": self.settings.format}

    def start(self) -> Offset:
        return {}

    def until_now(self) -> None:
        self._within = self._follower().sizes()

    def latest(self, after: Offset) -> Offset:
        return self._follower().latest(after, self._within)

    def split(self, after: Offset, until: Offset) -> Sequence[tuple[Offset, Offset]]:
        changed = list(self._follower().stretches(after, until))
        shares = [dict(changed[number::_TASKS]) for number in range(min(_TASKS, len(changed)))]
        return [({}, share) for share in shares]

    def rows(self, after: Offset, until: Offset) -> Iterator[Row]:
        follower = self._follower()
        read = {"json": self._json, "csv": self._csv, "text": self._text, "parquet": self._parquet}
        for path, place in until.items():
            file = follower.open(path, place)
            if file is not None:
                with file:
                    yield from read[self.settings.format](follower, file, place)

    def _follower(self) -> FileFollower:
        path = self.settings.path
        pattern = os.path.join(path, "*") if os.path.isdir(path) else path
        return FileFollower(
            os.path.abspath(pattern),
            whole=self.settings.format == "parquet",
            max_bytes=self.settings.max_bytes,
            line_timeout=self.settings.line_timeout,
        )

    def _text(self, follower: FileFollower, file: BinaryIO, place: Offset) -> Iterator[Row]:
        for _, line in follower.lines(file, place):
            value = line.rstrip(b"\r\n")
            yield Raw(value, {"value": value})

    def _json(self, follower: FileFollower, file: BinaryIO, place: Offset) -> Iterator[Row]:
        for at, line in follower.lines(file, place):
            value = line.strip()
            if not value:
                continue
            try:
                fields = read_json(value)
            except ValueError as error:
                yield BadRow(value, f"{file.name} at byte {at} is not JSON: {error}")
                continue
            if isinstance(fields, dict):
                yield Raw(value, fields)
            else:
                yield BadRow(value, f"{file.name} at byte {at} is not a JSON object")

    def _csv(self, follower: FileFollower, file: BinaryIO, place: Offset) -> Iterator[Row]:
        columns = list(self.settings.columns)
        if self.settings.header and not columns:
            file.seek(0)
            header = file.readline().decode("utf-8-sig", "replace")
            try:
                columns = next(csv.reader([header], delimiter=self.settings.delimiter), [])
            except csv.Error as error:
                yield BadRow(
                    header.encode(), f"{file.name} does not begin with the names of columns: {error}"
                )
                return
        for at, line in follower.lines(file, place):
            if (at == 0 and self.settings.header) or not line.strip():
                continue
            yield self._csv_row(columns, file.name, at, line)

    def _csv_row(self, columns: list[str], path: str, at: int, line: bytes) -> Row:
        where = f"{path} at byte {at}"
        try:
            cells = next(
                csv.reader([line.decode().rstrip("\r\n")], delimiter=self.settings.delimiter, strict=True)
            )
        except (UnicodeDecodeError, csv.Error) as error:
            return BadRow(line, f"{where} is not CSV: {error}")
        if len(cells) != len(columns):
            return BadRow(line, f"{where} has {len(cells)} columns and not {len(columns)}")
        row: dict[str, object] = dict(zip(columns, cells, strict=True))
        for name, kind in self.settings.types.items():
            if name not in row:
                return BadRow(line, f"{where} has no column {name}")
            try:
                row[name] = _TYPES[kind](str(row[name])) if row[name] != "" else None
            except (ValueError, KeyError):
                return BadRow(line, f"{where} has {row[name]!r} in {name}, which is not {kind}")
        return row

    def _parquet(self, follower: FileFollower, file: BinaryIO, place: Offset) -> Iterator[Row]:
        return read_parquet(file, file.name)


def check_directory(path: str) -> None:
    """Whether a path or pattern lies in a directory that can be looked into."""
    fixed = path.split("*")[0].split("?")[0].split("[")[0]
    directory = fixed if os.path.isdir(fixed) else os.path.dirname(fixed) or "."
    if not os.path.isdir(directory):
        raise ConnectorError(f"source.path is {path!r}, but there is no directory {directory}")
    try:
        os.scandir(directory).close()
    except OSError as error:
        raise ConnectorError(
            f"source.path is {path!r}, but {directory} cannot be looked into: {error.strerror}; let this user read it"
        ) from None


def read_parquet(file: BinaryIO, name: str) -> Iterator[Row]:
    """A file's rows; one that only looks like Parquet is a single bad row."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        for batch in pq.ParquetFile(file).iter_batches(batch_size=5_000):
            yield from batch.to_pylist()
    except (OSError, pa.ArrowException) as error:
        yield BadRow(name.encode(), f"{name} is no Parquet file that can be read: {error}")
