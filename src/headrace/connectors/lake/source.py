"""Lake tables as a source: the rows a Delta table has, then what each version adds; or new Parquet files below a directory."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import unquote

import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError

from headrace.connectors.base import Offset, PolledSource, Row
from headrace.connectors.errors import ConnectorError, one_line
from headrace.connectors.files.follow import FileFollower
from headrace.connectors.files.landing import FileTree
from headrace.connectors.files.source import check_directory, read_parquet
from headrace.connectors.lake.partitions import UNKNOWN
from headrace.connectors.settings import setting

_TASKS = 16


@dataclass(frozen=True)
class LakeSourceSettings:
    path: str = setting("The table's directory; a URI for Delta.", example="/data/lake/orders")
    format: Literal["parquet", "delta"] = setting("parquet or delta.", default="parquet")
    deletes: Literal["fail", "ignore"] = setting(
        "delta: what to do when a version deletes or changes rows: fail, or ignore and send what it adds.",
        default="fail",
    )
    max_bytes: int = setting("parquet: the most to read in one batch.", default=256 << 20, minimum=1)

    def problems(self) -> Iterator[str]:
        if self.format == "parquet" and "://" in self.path:
            yield f"path is {self.path!r}: Parquet files are read from a directory, and from a URI only as Delta"


class LakeSource(PolledSource):
    delivery = "exactly once"
    summary = "A lake table: a Delta table by its versions, or the Parquet files of a directory."
    Settings = LakeSourceSettings
    settings: LakeSourceSettings

    def __init__(self, name: str, settings: LakeSourceSettings) -> None:
        super().__init__(name, settings)
        self._within: dict[str, int] | None = None
        self._last: int | None = None

    def check(self) -> None:
        if self.settings.format == "delta":
            self._table()
        else:
            check_directory(f"{self.settings.path.rstrip('/')}/")
            self._follower().check()

    def identity(self) -> dict[str, object]:
        return {"path": self.settings.path, "format": self.settings.format}

    def start(self) -> Offset:
        return {"version": -1} if self.settings.format == "delta" else {}

    def until_now(self) -> None:
        if self.settings.format == "parquet":
            self._within = self._follower().sizes()
        else:
            self._last = self._table().version()

    def latest(self, after: Offset) -> Offset:
        if self.settings.format == "parquet":
            return self._follower().latest(after, self._within)
        version = self._table().version() if self._last is None else self._last
        return {"version": version} if version > after["version"] else after

    def split(self, after: Offset, until: Offset) -> Sequence[tuple[Offset, Offset]]:
        if self.settings.format == "parquet":
            files: dict[str, Any] = dict(self._follower().stretches(after, until))
        elif after["version"] < 0:
            files = self._snapshot(until["version"])
        else:
            files = {
                path: values
                for version in range(after["version"] + 1, until["version"] + 1)
                for path, values in self._added(version).items()
            }
        names = sorted(files)
        return [
            ({}, {name: files[name] for name in names[number::_TASKS]})
            for number in range(min(_TASKS, len(names)))
        ]

    def rows(self, after: Offset, until: Offset) -> Iterator[Row]:
        place = FileTree(self.settings.path)
        for name, about in until.items():
            if self.settings.format == "parquet":
                local = self._follower().open(name, about)
                if local is not None:
                    with local:
                        yield from _with(read_parquet(local, local.name), _from_path(local.name))
            else:
                try:
                    file = place.files.open_input_file(place.path(unquote(name)))
                except FileNotFoundError:
                    raise ConnectorError(
                        f"{name} of {self.settings.path} was vacuumed before it was read: start afresh with --reset, which "
                        "sends the whole table again"
                    ) from None
                with file:
                    yield from _with(read_parquet(file, name), about)

    def _follower(self) -> FileFollower:
        pattern = f"{self.settings.path.rstrip('/')}/**/*.parquet"
        return FileFollower(pattern, whole=True, max_bytes=self.settings.max_bytes, line_timeout=0)

    def _table(self, version: int | None = None) -> DeltaTable:
        try:
            return DeltaTable(self.settings.path, version=version)
        except TableNotFoundError:
            raise ConnectorError(
                f"source.path is {self.settings.path}, where there is no Delta table"
            ) from None
        except (DeltaError, OSError, ValueError) as error:
            raise ConnectorError(
                f"source.path is {self.settings.path}, whose Delta table cannot be read: {one_line(error)}"
            ) from None

    def _snapshot(self, version: int) -> dict[str, Any]:
        actions = pa.table(self._table(version).get_add_actions(flatten=False)).to_pylist()
        return {action["path"]: action.get("partition") or {} for action in actions}

    def _added(self, version: int) -> dict[str, Any]:
        """What a version adds, from Delta's log. A merge adds and removes without a change of data."""
        place, added = FileTree(self.settings.path), {}
        log = place.path("_delta_log", f"{version:020d}.json")
        try:
            with place.files.open_input_stream(log) as stream:
                lines = stream.read().splitlines()
        except FileNotFoundError:
            raise ConnectorError(
                f"{self.name} is at version {version} of {self.settings.path}, which its log no longer has: start afresh"
            ) from None
        for line in lines:
            action = json.loads(line)
            if (
                "remove" in action
                and action["remove"].get("dataChange", True)
                and self.settings.deletes == "fail"
            ):
                raise ConnectorError(
                    f"version {version} of {self.settings.path} deletes or changes rows, which a topic cannot: set "
                    'source.deletes to "ignore" to send only what it adds'
                )
            if "add" in action and action["add"].get("dataChange", True):
                added[action["add"]["path"]] = action["add"].get("partitionValues") or {}
        return added


def _with(rows: Iterator[Row], values: dict[str, Any]) -> Iterator[Row]:
    for row in rows:
        yield {**row, **values} if isinstance(row, Mapping) else row


def _from_path(path: str) -> dict[str, str | None]:
    """``date=2026-11-16`` among the directories is a column."""
    pairs = (part.partition("=") for part in path.split("/")[:-1] if "=" in part)
    return {name: None if value == UNKNOWN else unquote(value) for name, _, value in pairs}
