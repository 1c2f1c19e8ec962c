"""Record batches, as a broker sends them, to Arrow: every record of a block at once, only the columns asked for.

No Python object is made for a record. Keys and values are taken out of the block by Arrow itself: the block is
seen as an array whose elements are, in turn, a value and what lies between it and the next, and every other
element is taken.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headrace.spark import varints
from headrace.spark.varints import Bytes, Numbers
from headrace.wire.batch import CODEC_MASK, HEADER_SIZE, BatchHeader, check_crc
from headrace.wire.errors import ErrorCode, KafkaError
from headrace.wire.records import read_payload

LARGEST_GROUP = 16 * 1024 * 1024
"""Bytes of records, after decompression, that are turned into one Arrow batch."""

LARGEST_BATCH = 1024 * 1024 * 1024
"""What a single batch may unfold to; Kafka's consumers set no limit, an Arrow array can hold 2 GiB."""


class Located(NamedTuple):
    """A batch and where it lies in its block."""

    position: int
    header: BatchHeader


class ArrowDecoder:
    """Turns the blocks of one partition into Arrow batches of a given schema."""

    def __init__(
        self,
        topic: str,
        partition: int,
        schema: pa.Schema,
        *,
        check_crcs: bool = True,
        topic_id: str | None = None,
    ) -> None:
        self._topic = topic
        self._topic_id = topic_id
        self._partition = partition
        self._schema = schema
        self._check_crcs = check_crcs
        self._constants: dict[str | int, pa.Array] = {}

    def decode(
        self, block: bytes, batches: Sequence[Located], start: int, end: int
    ) -> Iterator[pa.RecordBatch]:
        """The records of `batches` with start <= offset < end, in order."""
        for data, group, positions in self._groups(block, batches):
            try:
                decoded = self._decode_group(data, group, positions, start, end)
            except (IndexError, ValueError) as error:
                raise KafkaError(
                    ErrorCode.CORRUPT_MESSAGE,
                    f"A record of {self._topic}-{self._partition} between offsets {group[0].base_offset} and "
                    f"{group[-1].last_offset} cannot be read: {error}.",
                ) from None
            if decoded is not None:
                yield decoded

    def _groups(
        self, block: bytes, batches: Sequence[Located]
    ) -> Iterator[tuple[bytes, list[BatchHeader], list[tuple[int, int]]]]:
        """Batches whose records lie in one buffer: (buffer, headers, where each batch's records are in it)."""
        view = memoryview(block)
        if self._check_crcs:
            for position, header in batches:
                check_crc(view[position : position + header.size], header)
        if not any(header.attributes & CODEC_MASK for _, header in batches):
            # Nothing is compressed: the block itself is the buffer.
            where = [(position + HEADER_SIZE, position + header.size) for position, header in batches]
            yield block, [header for _, header in batches], where
            return
        headers: list[BatchHeader] = []
        payloads: list[bytes] = []
        size = 0
        for position, header in batches:
            payload = read_payload(view[position : position + header.size], header, LARGEST_BATCH)
            if size and size + len(payload) > LARGEST_GROUP:
                yield _joined(headers, payloads)
                headers, payloads, size = [], [], 0
            headers.append(header)
            payloads.append(payload)
            size += len(payload)
        yield _joined(headers, payloads)

    def _decode_group(
        self,
        data: bytes,
        headers: list[BatchHeader],
        positions: list[tuple[int, int]],
        start: int,
        end: int,
    ) -> pa.RecordBatch | None:
        view: Bytes = np.frombuffer(data, np.uint8)
        pieces: list[Numbers] = []
        for header, (first, last) in zip(headers, positions, strict=True):
            pieces += varints.record_bodies(data, view, first, last, header.records_count)
        if not pieces:
            return None
        bodies = pieces[0] if len(pieces) == 1 else np.concatenate(pieces)
        counts = np.array([header.records_count for header in headers], np.int64)
        timestamp_delta, position = varints.read(view, bodies + 1)
        offset_delta, position = varints.read(view, position)
        offsets = _spread([header.base_offset for header in headers], counts) + offset_delta
        low, high = int(np.searchsorted(offsets, start)), int(np.searchsorted(offsets, end))
        rows = high - low
        if rows <= 0:
            return None
        wanted = slice(low, high)
        position = position[wanted]
        columns: dict[str, pa.Array] = {}
        names = self._schema.names
        if "key" in names or "value" in names or "headers" in names:
            key_length, key_start = varints.read(view, position)
            key_end = key_start + np.maximum(key_length, 0)
            if "key" in names:
                columns["key"] = binary(data, key_start, key_end, key_length < 0)
            if "value" in names or "headers" in names:
                value_length, value_start = varints.read(view, key_end)
                value_end = value_start + np.maximum(value_length, 0)
                if "value" in names:
                    columns["value"] = binary(data, value_start, value_end, value_length < 0)
                if "headers" in names:
                    kind = self._schema.field("headers").type
                    columns["headers"] = _headers(data, view, value_end, kind)
        if "offset" in names:
            columns["offset"] = pa.array(offsets[wanted])
        if "timestamp" in names:
            columns["timestamp"] = self._timestamps(headers, counts, timestamp_delta, wanted)
        if "timestampType" in names:
            kinds = {int(header.is_log_append_time) for header in headers}
            if len(kinds) == 1:
                columns["timestampType"] = self._constant(kinds.pop(), rows)
            else:
                each = _spread([int(header.is_log_append_time) for header in headers], counts)
                columns["timestampType"] = pa.array(each[wanted].astype(np.int32))
        if "topic" in names:
            columns["topic"] = self._constant(self._topic, rows)
        if "partition" in names:
            columns["partition"] = self._constant(self._partition, rows)
        if "topicId" in names:
            known = self._topic_id
            columns["topicId"] = pa.nulls(rows, pa.string()) if known is None else self._constant(known, rows)
        return pa.RecordBatch.from_arrays([columns[name] for name in names], schema=self._schema)

    def _timestamps(
        self, headers: list[BatchHeader], counts: Numbers, delta: Numbers, wanted: slice
    ) -> pa.Array:
        appended = [header.is_log_append_time for header in headers]
        base = _spread(
            [
                h.max_timestamp if log_time else h.base_timestamp
                for h, log_time in zip(headers, appended, strict=True)
            ],
            counts,
        )[wanted]
        if any(appended):
            delta = np.where(_spread([int(flag) for flag in appended], counts), 0, delta)
        milliseconds = base + delta[wanted]
        return pa.array(milliseconds * 1000).view(self._schema.field("timestamp").type)

    def _constant(self, value: str | int, rows: int) -> pa.Array:
        """The same text or number in every row, kept and sliced."""
        found = self._constants.get(value)
        if found is None or len(found) < rows:
            size = max(rows, 1024)
            if isinstance(value, int):
                found = pa.array(np.full(size, value, np.int32))
            else:
                found = pa.array([value], pa.string()).take(pa.array(np.zeros(size, np.int32)))
            self._constants[value] = found
        return found.slice(0, rows)


def binary(data: bytes, start: Numbers, end: Numbers, null: npt.NDArray[np.bool_]) -> pa.Array:
    """The pieces data[start:end] as one Arrow array of binary; starts never go back."""
    rows = len(start)
    nulls = int(np.count_nonzero(null))
    if nulls == rows:
        return pa.nulls(rows, pa.binary())
    if int(end.max()) > len(data) or np.any(end < start):
        raise ValueError("a length in it is not true")  # Arrow would read whatever lies there in memory
    edges = np.empty(2 * rows, np.int32)
    edges[0::2] = start
    edges[1::2] = end
    alternating = pa.Array.from_buffers(
        pa.binary(), 2 * rows - 1, [None, pa.py_buffer(edges), pa.py_buffer(data)]
    )
    taken = alternating.take(pa.array(np.arange(0, 2 * rows, 2, dtype=np.int32)))
    if not nulls:
        return taken
    valid = pa.py_buffer(np.packbits(~null, bitorder="little"))
    return pa.Array.from_buffers(pa.binary(), rows, [valid, *taken.buffers()[1:]], nulls)


def _headers(data: bytes, view: Bytes, position: Numbers, kind: pa.DataType) -> pa.Array:
    """Each record's headers as a list of (key, value); null where a record has none."""
    counts, position = varints.read(view, position)
    if not counts.any():
        return pa.nulls(len(counts), kind)
    if counts.min() < 0:
        raise ValueError("a record has a negative number of headers")
    edges = np.concatenate(([0], np.cumsum(counts)))
    total = int(edges[-1])
    key_start, key_end, value_start, value_end = (np.empty(total, np.int64) for _ in range(4))
    null = np.empty(total, np.bool_)
    rows = np.flatnonzero(counts)
    number = 0
    while len(rows):
        at = edges[rows] + number
        length, first = varints.read(view, position[rows])
        key_start[at], key_end[at] = first, first + length
        length, first = varints.read(view, key_end[at])
        null[at] = length < 0
        value_start[at] = first
        value_end[at] = position[rows] = first + np.maximum(length, 0)
        number += 1
        rows = rows[counts[rows] > number]
    keys = _text(binary(data, key_start, key_end, np.zeros(total, np.bool_)))
    values = binary(data, value_start, value_end, null)
    items = pa.StructArray.from_arrays([keys, values], fields=list(kind.value_type))
    valid = pa.py_buffer(np.packbits(counts > 0, bitorder="little"))
    offsets = pa.py_buffer(edges.astype(np.int32))
    return pa.Array.from_buffers(kind, len(counts), [valid, offsets], children=[items])


def _text(column: pa.Array) -> pa.Array:
    """Bytes as text; what is not UTF-8 is shown as Java shows it and never fails."""
    try:
        return column.cast(pa.string())
    except pa.ArrowInvalid:
        return pa.array([value.decode("utf-8", "replace") for value in column.to_pylist()], pa.string())


def _joined(
    headers: list[BatchHeader], payloads: list[bytes]
) -> tuple[bytes, list[BatchHeader], list[tuple[int, int]]]:
    edges = [0]
    for payload in payloads:
        edges.append(edges[-1] + len(payload))
    data = payloads[0] if len(payloads) == 1 else b"".join(payloads)
    return data, headers, list(itertools.pairwise(edges))


def _spread(values: list[int], counts: Numbers) -> Numbers:
    """One value per batch to one per record."""
    return np.repeat(np.array(values, np.int64), counts)
