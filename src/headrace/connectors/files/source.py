"""Files and directories as a source: CSV, JSON lines and text line by line as they grow, Parquet file by file.

The same bytes give the same rows, so the topic gets each line exactly once. All of Spark's machines must see
the files under the same path.
"""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from headrace.connectors.base import BadRow, Offset, PolledSource, Raw, Row
from headrace.connectors.errors import ConnectorError
from headrace.connectors.files.follow import Follower
from headrace.connectors.settings import Seconds, setting

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
    columns: tuple[str, ...] = setting("CSV without a header: the names of the columns.", default=())
    types: dict[str, str] = setting("CSV: columns that are not text, as int, float or bool.", default={})
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
        if len(self.delimiter) != 1:
            yield f"delimiter is {self.delimiter!r}: it must be one character"
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
        parent = self.settings.path.split("*")[0]
        directory = parent if os.path.isdir(parent) else os.path.dirname(parent) or "."
        if not os.path.isdir(directory):
            raise ConnectorError(
                f"source.path is {self.settings.path!r}, but there is no directory {directory}"
            )

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
            now = follower.find(path, place)
            if now is not None:
                yield from read[self.settings.format](follower, now, place)

    def _follower(self) -> Follower:
        path = self.settings.path
        pattern = os.path.join(path, "*") if os.path.isdir(path) else path
        return Follower(
            os.path.abspath(pattern),
            whole=self.settings.format == "parquet",
            max_bytes=self.settings.max_bytes,
            line_timeout=self.settings.line_timeout,
        )

    def _text(self, follower: Follower, path: str, place: Offset) -> Iterator[Row]:
        for _, line in follower.lines(path, place):
            value = line.rstrip(b"\r\n")
            yield Raw(value, {"value": value})

    def _json(self, follower: Follower, path: str, place: Offset) -> Iterator[Row]:
        for at, line in follower.lines(path, place):
            value = line.strip()
            if not value:
                continue
            try:
                fields = json.loads(value)
            except ValueError as error:
                yield BadRow(value, f"{path} at byte {at} is not JSON: {error}")
                continue
            if isinstance(fields, dict):
                yield Raw(value, fields)
            else:
                yield BadRow(value, f"{path} at byte {at} is not a JSON object")

    def _csv(self, follower: Follower, path: str, place: Offset) -> Iterator[Row]:
        columns = list(self.settings.columns)
        if self.settings.header:
            with open(path, "rb") as file:
                header = file.readline().decode("utf-8-sig", "replace")
            columns = columns or next(csv.reader([header], delimiter=self.settings.delimiter), [])
        for at, line in follower.lines(path, place):
            if (at == 0 and self.settings.header) or not line.strip():
                continue
            yield self._csv_row(columns, path, at, line)

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

    def _parquet(self, follower: Follower, path: str, place: Offset) -> Iterator[Row]:
        import pyarrow.parquet as pq

        with pq.ParquetFile(path) as file:
            for batch in file.iter_batches(batch_size=5_000):
                yield from batch.to_pylist()
