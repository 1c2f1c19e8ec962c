"""Lake tables as a sink: Parquet or Delta, partitioned by time, small files merged as it goes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import pyarrow as pa
import pyarrow.compute as pc

from headrace.connectors.base import Chunk, Sink
from headrace.connectors.errors import ConnectorError
from headrace.connectors.files.landing import SHOWN, FileTree, writable
from headrace.connectors.lake import parquet
from headrace.connectors.lake.partitions import Partitioning
from headrace.connectors.settings import setting
from headrace.connectors.topic import METADATA

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from headrace.connectors.lake.delta import DeltaWriter

_SHOWN_TYPES = {
    "_topic": pa.string(),
    "_partition": pa.int32(),
    "_offset": pa.int64(),
    "_timestamp": pa.timestamp("us", "UTC"),
    "_key": pa.binary(),
}


@dataclass(frozen=True)
class LakeSinkSettings:
    path: str = setting(
        "The table's directory, or a URI such as s3://bucket/orders.", example="/data/lake/orders"
    )
    format: Literal["parquet", "delta"] = setting("parquet or delta.", default="parquet")
    partition: Literal["day", "hour", "none"] = setting(
        "A directory a day or an hour (UTC), or none.", default="day"
    )
    time_field: str | None = setting(
        "The field whose time chooses the partition. [the record's timestamp]",
        default=None,
        example="created_at",
    )
    metadata: bool = setting(
        "Add the columns _topic, _partition, _offset, _timestamp and _key.", default=False
    )
    compact_every: int = setting("Merge small files every so many batches; 0 never.", default=20, minimum=0)
    target_size: int = setting("About how many bytes a merged file has.", default=128 << 20, minimum=1)
    keep_hours: int = setting(
        "delta: how long files that are no longer part of the table stay, for readers and time travel.",
        default=168,
        minimum=1,
    )

    def problems(self) -> Iterator[str]:
        if self.partition == "none" and self.time_field is not None:
            yield 'time_field is given, but partition is "none"'


class LakeSink(Sink):
    delivery = "exactly once"
    summary = "A lake table: Parquet or Delta, partitioned by day or hour, small files merged."
    Settings = LakeSinkSettings
    settings: LakeSinkSettings

    def identity(self) -> dict[str, object]:
        return {
            "path": self.settings.path,
            "format": self.settings.format,
            "partition": self.settings.partition,
        }

    def check(self) -> None:
        with writable(self.settings.path):
            FileTree(self.settings.path).check()

    def check_schema(self, schema: StructType) -> None:
        settings = self.settings
        if settings.time_field is not None:
            kinds = {field.name: field.dataType.typeName() for field in schema}
            if kinds.get(settings.time_field) not in ("timestamp", "timestamp_ntz", "date"):
                raise ConnectorError(
                    f"sink.time_field is {settings.time_field!r}, which must be a TIMESTAMP or DATE in topic.schema"
                )
        taken = set(self._partitioning().columns) & set(schema.names)
        if taken:
            raise ConnectorError(
                f"topic.schema has the field {taken.pop()}, which is the name of a partition here"
            )
        if settings.format == "delta":
            from headrace.connectors.lake import delta

            delta.check(settings.path, self._columns(schema), self._partitioning())

    def prepare(self, schema: StructType) -> None:
        if self.settings.format == "parquet":
            with writable(self.settings.path):
                parquet.sweep(self.settings.path)
            return
        from headrace.connectors.lake import delta

        delta.create(self.settings.path, self._columns(schema), self._partitioning())

    def open(self) -> None:
        settings = self.settings
        self._writer: parquet.ParquetWriter | DeltaWriter
        if settings.format == "parquet":
            self._writer = parquet.ParquetWriter(settings.path, self._partitioning(), settings.metadata)
        else:
            from headrace.connectors.lake.delta import DeltaWriter

            self._writer = DeltaWriter(self.name, settings.path, self._partitioning(), settings.metadata)

    def write(self, chunk: Chunk) -> None:
        with writable(self.settings.path):
            self._writer.write(chunk, chunk.rows.filter(pc.is_valid(chunk.rows["_value"])))

    def finish(self) -> object:
        with writable(self.settings.path):
            return self._writer.finish()

    def close(self) -> None:
        self._writer.discard()

    def commit(self, batch: int, written: Sequence[object]) -> None:
        settings = self.settings
        due = settings.compact_every and batch % settings.compact_every == settings.compact_every - 1
        if settings.format == "parquet":
            if due:
                with writable(settings.path):
                    parquet.compact(settings.path, settings.target_size)
            return
        from headrace.connectors.lake import delta

        delta.commit(
            settings.path, self._partitioning(), [one for one in written if isinstance(one, delta.Written)]
        )
        if due:
            delta.compact(settings.path, settings.target_size, settings.keep_hours)

    def _columns(self, schema: StructType) -> pa.Schema:
        from pyspark.sql.pandas.types import to_arrow_schema

        extra = [pa.field(name, _SHOWN_TYPES[name]) for name in SHOWN] if self.settings.metadata else []
        return pa.schema([*extra, *to_arrow_schema(schema, timezone="UTC")])

    def _partitioning(self) -> Partitioning:
        return Partitioning(self.settings.partition, self.settings.time_field or METADATA[3])
