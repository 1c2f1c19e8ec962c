"""Files as a sink: JSON lines, CSV, text or Parquet in one directory, each file named after the offsets it holds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import pyarrow.compute as pc

from headrace.connectors.base import Chunk, Sink
from headrace.connectors.errors import ConnectorError, Rejected
from headrace.connectors.files.landing import FileTree, Landing, writable
from headrace.connectors.settings import setting

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


@dataclass(frozen=True)
class FilesSinkSettings:
    path: str = setting("The directory, or a URI such as s3://bucket/orders.", example="/data/out")
    format: Literal["json", "csv", "text", "parquet"] = setting(
        "json (an object a line), csv, text (the value as it is, a line each) or parquet.", default="json"
    )
    metadata: bool = setting(
        "Add the columns _topic, _partition, _offset, _timestamp and _key.", default=False
    )


class FilesSink(Sink):
    delivery = "exactly once"
    summary = "Files in a directory: JSON lines, CSV, text, Parquet."
    Settings = FilesSinkSettings
    settings: FilesSinkSettings

    def identity(self) -> dict[str, object]:
        return {"path": self.settings.path}

    def check(self) -> None:
        with writable(self.settings.path):
            FileTree(self.settings.path).check()

    def check_schema(self, schema: StructType) -> None:
        nested = [field.name for field in schema if field.dataType.typeName() in ("struct", "array", "map")]
        if self.settings.format == "csv" and nested:
            raise ConnectorError(f"CSV has no place for the nested field {nested[0]}: use json or parquet")

    def prepare(self, schema: StructType) -> None:
        with writable(self.settings.path):
            FileTree(self.settings.path).clean("")

    def open(self) -> None:
        self._landing = Landing(FileTree(self.settings.path), self.settings.format, self.settings.metadata)

    def write(self, chunk: Chunk) -> None:
        rows = chunk.rows.filter(pc.is_valid(chunk.rows["_value"]))
        if self.settings.format == "text":
            broken = rows.filter(pc.match_substring(rows["_value"], "\n"))
            if broken.num_rows:
                raise Rejected(dict.fromkeys(broken["_offset"].to_pylist(), "its value has several lines"))
        with writable(self.settings.path):
            self._landing.add("", chunk.origin, chunk.partition, chunk.first, chunk.next, rows)

    def finish(self) -> None:
        with writable(self.settings.path):
            self._landing.finish()

    def close(self) -> None:
        self._landing.discard()
