"""A Parquet lake: a directory for each partition, files named after the offsets they hold, small ones merged.

Merging is safe at any moment: the merged file's name covers those it is made of, so what is covered by another is
superfluous and goes, now or at the next start. A reader between the two steps may see rows of both.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.fs
import pyarrow.parquet as pq

from headrace.connectors.base import Chunk
from headrace.connectors.files.landing import FileTree, Landing, Name
from headrace.connectors.lake.partitions import Partitioning, directory


class ParquetWriter:
    """In a task."""

    def __init__(self, path: str, partitioning: Partitioning, metadata: bool) -> None:
        self._landing = Landing(FileTree(path), "parquet", metadata)
        self._partitioning = partitioning

    def write(self, chunk: Chunk, rows: pa.RecordBatch) -> None:
        for values, some in self._partitioning.split(rows):
            self._landing.add(directory(values), chunk.origin, chunk.partition, chunk.first, chunk.next, some)

    def finish(self) -> None:
        self._landing.finish()

    def discard(self) -> None:
        self._landing.discard()


def compact(path: str, target: int) -> int:
    """Merge neighbours into files of about ``target`` bytes; returns how many files there are fewer."""
    place, fewer = FileTree(path), 0
    for below, kept in _swept(place):
        for run in _runs(place, below, kept, target):
            _merge(place, below, run)
            fewer += len(run) - 1
    return fewer


def sweep(path: str) -> None:
    """Finish what a merge that was cut off has left, and delete what writers that were killed have."""
    for _ in _swept(FileTree(path)):
        pass


def _swept(place: FileTree) -> Iterator[tuple[str, list[Name]]]:
    """Each directory's files by topic partition, in order, without those that others cover."""
    for below in place.directories():
        place.clean(below)
        by_partition: dict[tuple[str, int], list[Name]] = defaultdict(list)
        for name in place.names(below):
            by_partition[name.origin, name.partition].append(name)
        for names in by_partition.values():
            yield below, _sweep(place, below, names)


def _sweep(place: FileTree, below: str, names: list[Name]) -> list[Name]:
    """Delete what another file covers: what a merge that did not come to its end left behind."""
    kept: list[Name] = []
    for name in sorted(names, key=lambda name: (name.first, -name.next)):
        if kept and name.next <= kept[-1].next:
            place.files.delete_file(place.path(below, str(name)))
        else:
            kept.append(name)
    return kept


def _runs(place: FileTree, below: str, names: list[Name], target: int) -> list[list[Name]]:
    """Neighbours that together make a file of about the target's size."""
    infos = place.files.get_file_info([place.path(below, str(name)) for name in names])
    runs: list[list[Name]] = []
    run: list[Name] = []
    size = 0
    for name, info in zip(names, infos, strict=True):
        if run and size + info.size > target:
            runs.append(run)
            run, size = [], 0
        run.append(name)
        size += info.size
    runs.append(run)
    return [run for run in runs if len(run) > 1]


def _merge(place: FileTree, below: str, run: Sequence[Name]) -> None:
    merged = Name(run[0].origin, run[0].partition, run[0].first, run[-1].next, run[0].extension)
    temporary = place.path(below, f".{merged}.tmp")
    schemas = [pq.read_schema(place.path(below, str(name)), filesystem=place.files) for name in run]
    schema = pa.unify_schemas(schemas)
    with (
        place.files.open_output_stream(temporary) as stream,
        pq.ParquetWriter(stream, schema, compression="zstd") as writer,
    ):
        for name in run:
            with place.files.open_input_file(place.path(below, str(name))) as file:
                for batch in pq.ParquetFile(file).iter_batches():
                    writer.write_batch(_as(batch, schema))
    place.publish(temporary, place.path(below, str(merged)))
    for name in run:
        place.files.delete_file(place.path(below, str(name)))


def _as(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """A column that came later is empty before."""
    if batch.schema == schema:
        return batch
    columns = [
        batch[field.name] if field.name in batch.schema.names else pa.nulls(batch.num_rows, field.type)
        for field in schema
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)
