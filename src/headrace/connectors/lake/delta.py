"""A Delta table: tasks write files, the driver adds them in one commit, together with the offsets they reach.

The offsets are Delta's own transaction identifiers (``txn``), one for each topic partition, so a batch that comes
again adds nothing. Files that no commit names are not part of the table and go with its next vacuum.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import IO, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake import CommitProperties, DeltaTable, Schema, Transaction
from deltalake.exceptions import DeltaError, TableNotFoundError
from deltalake.schema import PrimitiveType
from deltalake.transaction import AddAction

from headrace.connectors.base import Chunk
from headrace.connectors.errors import ConnectorError, one_line
from headrace.connectors.files.landing import FileTree, shown
from headrace.connectors.lake.partitions import Partitioning, directory


@dataclass(slots=True)
class Written:
    """What a task made, for the driver to commit."""

    files: list[AddAction] = field(default_factory=list)
    found: dict[str, int] = field(default_factory=dict)
    """The offsets that the table had, by mark, and what they become with these files."""
    reached: dict[str, int] = field(default_factory=dict)


class DeltaWriter:
    """In a task."""

    def __init__(self, connector: str, path: str, partitioning: Partitioning, metadata: bool) -> None:
        self._connector = connector
        with answering(path):
            self._table = DeltaTable(path)
        self._place = FileTree(path)
        self._partitioning = partitioning
        self._metadata = metadata
        self._open: dict[str, _OpenFile] = {}
        self._found: dict[str, int] = {}
        self._reached: dict[str, int] = {}

    def write(self, chunk: Chunk, rows: pa.RecordBatch) -> None:
        mark = f"headrace/{self._connector}/{chunk.origin}/{chunk.partition}"
        if mark not in self._reached:
            self._found[mark] = self._reached[mark] = self._table.transaction_version(mark) or 0
        if chunk.first < self._reached[mark]:
            rows = rows.filter(pc.greater_equal(rows["_offset"], self._reached[mark]))
        self._reached[mark] = max(self._reached[mark], chunk.next)
        for values, some in self._partitioning.split(rows):
            if some.num_rows:
                self._add(values, shown(some, self._metadata))

    def finish(self) -> Written:
        files = [self._close(file) for file in self._open.values()]
        self._open.clear()
        return Written(files, self._found, self._reached)

    def discard(self) -> None:
        for file in self._open.values():
            file.close()
            self._place.files.delete_file(file.path)
        self._open.clear()

    def _add(self, values: dict[str, str | None], rows: pa.RecordBatch) -> None:
        below = directory(values)
        if below not in self._open:
            self._place.files.create_dir(self._place.path(below), recursive=True)
            name = f"part-{uuid.uuid4().hex}.zstd.parquet"
            path = self._place.path(below, name)
            stream = self._place.files.open_output_stream(path)
            writer = pq.ParquetWriter(stream, rows.schema, compression="zstd")
            relative = f"{below}/{name}" if below else name
            self._open[below] = _OpenFile(path, relative, values, writer, stream)
        self._open[below].writer.write_batch(rows)
        self._open[below].rows += rows.num_rows

    def _close(self, file: _OpenFile) -> AddAction:
        file.close()
        self._place.make_durable(file.path)
        size = self._place.files.get_file_info(file.path).size
        statistics = json.dumps({"numRecords": file.rows})
        return AddAction(file.relative, size, file.values, int(time.time() * 1000), True, statistics)


@dataclass(slots=True)
class _OpenFile:
    path: str
    relative: str
    values: dict[str, str | None]
    writer: pq.ParquetWriter
    stream: IO[bytes]
    rows: int = 0

    def close(self) -> None:
        self.writer.close()
        self.stream.close()


@contextmanager
def answering(path: str) -> Iterator[None]:
    """What the library refuses, in a sentence."""
    try:
        yield
    except (DeltaError, OSError, ValueError) as error:
        said = one_line(str(error).partition("\n")[0])
        raise ConnectorError(f"the Delta table {path} cannot be used: {said}") from error


def check(path: str, schema: pa.Schema, partitioning: Partitioning) -> bool:
    """Whether the table is there; if it is, it must have these columns and partitions."""
    with answering(path):
        try:
            table = DeltaTable(path)
        except TableNotFoundError:
            return False
    if table.metadata().partition_columns != partitioning.columns:
        raise ConnectorError(
            f"the Delta table {path} is partitioned by {', '.join(table.metadata().partition_columns) or 'nothing'}, and "
            f"sink.partition asks for {', '.join(partitioning.columns) or 'nothing'}"
        )
    known = {column.name: column.type for column in table.schema().fields}
    for column in Schema.from_arrow(_whole(schema, partitioning)).fields:
        if column.name not in known:
            raise ConnectorError(
                f"the Delta table {path} has no column {column.name}: it has {', '.join(known)}"
            )
        there = known[column.name]
        if isinstance(there, PrimitiveType) and there != column.type:
            given = column.type.type if isinstance(column.type, PrimitiveType) else "nested"
            raise ConnectorError(
                f"the Delta table {path} has {there.type} in the column {column.name}, and topic.schema has {given}: "
                "make them the same"
            )
    return True


def create(path: str, schema: pa.Schema, partitioning: Partitioning) -> None:
    """Make the table if it is missing."""
    if not check(path, schema, partitioning):
        with answering(path):
            whole = _whole(schema, partitioning)
            DeltaTable.create(path, whole, mode="ignore", partition_by=partitioning.columns or None)


def _whole(schema: pa.Schema, partitioning: Partitioning) -> pa.Schema:
    return pa.schema([*schema, *partitioning.fields])


def commit(path: str, partitioning: Partitioning, written: list[Written]) -> None:
    files = [file for one in written for file in one.files]
    marks = [Transaction(mark, offset) for one in written for mark, offset in one.reached.items()]
    if not files:
        return
    with answering(path):
        table = DeltaTable(path)
        for mark, offset in (found for one in written for found in one.found.items()):
            if (table.transaction_version(mark) or 0) != offset:
                raise ConnectorError(
                    f"another writer uses the Delta table {path} as this connector: give one of them another name"
                )
        table.create_write_transaction(
            list(files),
            mode="append",
            schema=table.schema(),
            partition_by=partitioning.columns or None,
            commit_properties=CommitProperties(app_transactions=marks),
        )


def compact(path: str, target: int, keep_hours: int) -> dict[str, Any]:
    """Merge small files and drop what no version of the last ``keep_hours`` needs."""
    with answering(path):
        table = DeltaTable(path)
        metrics: dict[str, Any] = table.optimize.compact(target_size=target)
        table.vacuum(retention_hours=keep_hours, dry_run=False, enforce_retention_duration=False)
    return metrics
