"""Rows of Arrow columns into record batches, whole columns at a time: no Python object is made for a row.

The numbers of a record (lengths, deltas) are written as arrays of variable-length bytes; joining them with the key
and value columns element by element gives the records, which lie one after another in the result's own buffer.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from crc32c import crc32c

from headrace.wire.batch import (
    CRC_START,
    HEADER,
    HEADER_SIZE,
    LENGTH_OVERHEAD,
    MAGIC,
    NO_LEADER_EPOCH,
    TRANSACTIONAL,
)
from headrace.wire.compression import Codec, compress

Numbers = npt.NDArray[np.int64]

RECORD_OVERHEAD = 5 + 1 + 10 + 5 + 5 + 5 + 5
"""The most that a record's own numbers take up beside its key, value and headers."""


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows to be written, as columns of one length; nulls are Kafka's nulls."""

    value: pa.Array
    key: pa.Array | None = None
    headers: pa.Array | None = None
    timestamp: Numbers | None = None
    """Milliseconds since 1970, one for each row; without it they carry the time of writing."""

    def __len__(self) -> int:
        return len(self.value)

    def sizes(self) -> Numbers:
        """At most how many bytes each row takes up in a batch."""
        total = lengths(self.value) + RECORD_OVERHEAD
        if self.key is not None:
            total += lengths(self.key)
        if self.headers is not None:
            total += np.maximum(lengths(_header_bytes(self.headers)), 0)
        return total


@dataclass(frozen=True, slots=True)
class Draft:
    """A batch whose records are ready and whose header awaits the producer's identity and sequence."""

    topic: str
    partition: int
    count: int
    records: pa.Buffer | bytes
    codec: Codec
    base_timestamp: int
    max_timestamp: int

    def seal(self, producer_id: int, epoch: int, sequence: int, transactional: bool) -> bytes:
        size = len(self.records)
        attributes = self.codec | (TRANSACTIONAL if transactional else 0)
        header = bytearray(
            HEADER.pack(
                0,
                HEADER_SIZE - LENGTH_OVERHEAD + size,
                NO_LEADER_EPOCH,
                MAGIC,
                0,
                attributes,
                self.count - 1,
                self.base_timestamp,
                self.max_timestamp,
                producer_id,
                epoch,
                sequence,
                self.count,
            )
        )
        checksum = crc32c(self.records, crc32c(memoryview(header)[CRC_START:]))
        header[CRC_START - 4 : CRC_START] = checksum.to_bytes(4, "big")
        return b"".join((header, self.records))


@dataclass(frozen=True, slots=True)
class Destination:
    """Rows `start` to `end`, in the order they are taken, go to one partition."""

    topic: str
    partition: int
    start: int
    end: int


def encode(
    rows: Rows,
    sizes: Numbers,
    order: Numbers | None,
    destinations: Sequence[Destination],
    limit: int,
    codec: Codec,
    level: int | None,
    now_ms: int,
) -> Iterator[Draft]:
    """The batches of at most `limit` bytes (or one record) that bring the rows, taken in `order`, to their places."""
    ends = np.cumsum(sizes if order is None else sizes[order])
    batches = [
        (destination, start, end)
        for destination in destinations
        for start, end in _cut(ends, destination, limit)
    ]
    starts = np.array([start for _, start, _ in batches], np.int64)
    counts = np.array([end - start for _, start, end in batches], np.int64)
    offset_delta = np.arange(len(rows)) - np.repeat(starts, counts)
    if rows.timestamp is None:
        first = last = np.full(len(batches), now_ms, np.int64)
        timestamp_delta = np.zeros(len(rows), np.int64)
    else:
        stamps = rows.timestamp if order is None else rows.timestamp[order]
        first, last = stamps[starts], np.maximum.reduceat(stamps, starts)
        timestamp_delta = stamps - np.repeat(first, counts)
    if order is not None:
        # The records are written where their rows lie and moved once, whole.
        back = np.empty_like(order)
        back[order] = np.arange(len(order))
        offset_delta, timestamp_delta = offset_delta[back], timestamp_delta[back]
    records = _records(rows, offset_delta, timestamp_delta)
    if order is not None:
        records = records.take(as_indices(order))
    bounds = bounds_of(records)
    data = records.buffers()[2]
    for index, (destination, start, end) in enumerate(batches):
        body: pa.Buffer | bytes = data.slice(int(bounds[start]), int(bounds[end] - bounds[start]))
        if codec != Codec.NONE:
            body = compress(codec, memoryview(body), level)
        yield Draft(
            destination.topic,
            destination.partition,
            end - start,
            body,
            codec,
            int(first[index]),
            int(last[index]),
        )


def _cut(ends: Numbers, destination: Destination, limit: int) -> Iterator[tuple[int, int]]:
    """Where each batch begins and ends: as many rows as the limit allows, one at least."""
    start = destination.start
    while start < destination.end:
        before = int(ends[start - 1]) if start else 0
        end = int(np.searchsorted(ends, before + limit, "right"))
        end = min(max(end, start + 1), destination.end)
        yield start, end
        start = end


def _records(rows: Rows, offset_delta: Numbers, timestamp_delta: Numbers) -> pa.Array:
    """One binary value per row: the whole record, its length in front."""
    value_length = lengths(rows.value)
    value_width = np.maximum(value_length, 0)
    parts: list[pa.Array] = []
    if rows.key is None:
        key_length = np.full(len(rows), -1, np.int64)
        front: list[Numbers] = [value_length]
        rest: list[pa.Array] = [rows.value]
        size = varint_size(value_length) + value_width
    else:
        key_length = lengths(rows.key)
        front = []
        rest = [rows.key, varints([value_length]), rows.value]
        size = np.maximum(key_length, 0) + varint_size(value_length) + value_width
    if rows.headers is None:
        tail = _NO_HEADERS
        size += 1
    else:
        tail = _header_bytes(rows.headers)
        size += lengths(tail)
    size += 1 + varint_size(timestamp_delta) + varint_size(offset_delta) + varint_size(key_length)
    attributes = np.zeros(len(rows), np.int64)
    parts = [varints([size, attributes, timestamp_delta, offset_delta, key_length, *front]), *rest, tail]
    return pc.binary_join_element_wise(*parts, _NOTHING, null_handling="replace", null_replacement="")


def _header_bytes(headers: pa.Array) -> pa.Array:
    """The headers of each row as a record holds them: how many, then each key and value with their lengths."""
    counts = np.maximum(lengths(headers), 0)
    flat = headers.flatten()
    keys, values = (as_binary(field) for field in flat.flatten())
    if keys.null_count:
        raise ValueError("a header has no key; every header needs one")
    each = pc.binary_join_element_wise(
        varints([lengths(keys)]),
        keys,
        varints([lengths(values)]),
        values,
        _NOTHING,
        null_handling="replace",
        null_replacement="",
    )
    bounds = np.zeros(len(headers) + 1, np.int32)
    np.cumsum(counts, out=bounds[1:])
    joined = pc.binary_join(
        pa.ListArray.from_buffers(
            pa.list_(pa.binary()), len(headers), [None, pa.py_buffer(bounds)], children=[each]
        ),
        _NOTHING,
    )
    return pc.binary_join_element_wise(varints([counts]), joined, _NOTHING)


def as_binary(column: pa.Array) -> pa.Array:
    """A string or binary column as plain binary."""
    return column if column.type == pa.binary() else column.cast(pa.binary())


# Arrow's memory as numpy's and back. Arrow's own ways (`to_numpy`, `pa.array`, `pa.scalar`) import pandas, which costs
# every new worker a second.


def _binary(data: bytes) -> pa.Scalar:
    bounds = np.array([0, len(data)], np.int32)
    return pa.Array.from_buffers(pa.binary(), 1, [None, pa.py_buffer(bounds), pa.py_buffer(data)])[0]


_NOTHING = _binary(b"")
_NO_HEADERS = _binary(b"\x00")


def as_indices(numbers: Numbers) -> pa.Array:
    return pa.Array.from_buffers(pa.int64(), len(numbers), [None, pa.py_buffer(numbers)])


def bounds_of(column: pa.Array) -> Numbers:
    """Where each value of a binary or list column begins in its data, and where the last one ends."""
    found = np.frombuffer(column.buffers()[1] or bytes(4), np.int32, len(column) + 1, column.offset * 4)
    return found.astype(np.int64)


def valid(column: pa.Array) -> npt.NDArray[np.bool_]:
    """Which values are not null."""
    bitmap = column.buffers()[0]
    if bitmap is None:
        return np.ones(len(column), np.bool_)
    bits = np.unpackbits(np.frombuffer(bitmap, np.uint8), bitorder="little")
    return bits[column.offset : column.offset + len(column)].astype(np.bool_)


def numbers_of(column: pa.Array, missing: int) -> Numbers:
    """A column of numbers, `missing` where one is null."""
    wide = column.cast(pa.int64())
    found = np.frombuffer(wide.buffers()[1] or b"", np.int64, len(wide), wide.offset * 8)
    return found if wide.null_count == 0 else np.where(valid(wide), found, missing)


def lengths(column: pa.Array) -> Numbers:
    """Bytes of each value (or members of each list), -1 for null: as records write them."""
    found: Numbers = np.diff(bounds_of(column))
    return found if column.null_count == 0 else np.where(valid(column), found, -1)


def varint_size(numbers: Numbers) -> Numbers:
    """Bytes that each number takes up as a zigzag varint."""
    zigzag = ((numbers << 1) ^ (numbers >> 63)).view(np.uint64)
    size = np.ones(len(numbers), np.int64)
    limit, most = 7, int(zigzag.max(initial=0))
    while most >> limit:
        size += zigzag >= np.uint64(1 << limit)
        limit += 7
    return size


def varints(columns: Sequence[Numbers]) -> pa.Array:
    """Per row, the numbers of all columns as zigzag varints one after another."""
    count = len(columns[0])
    digits: list[npt.NDArray[np.uint8]] = []
    present: list[npt.NDArray[np.bool_] | None] = []
    for numbers in columns:
        rest = ((numbers << 1) ^ (numbers >> 63)).view(np.uint64)
        here: npt.NDArray[np.bool_] | None = None
        while True:
            digit = rest.astype(np.uint8) & np.uint8(0x7F)
            rest = rest >> np.uint64(7)
            more = rest > 0
            if more.any():
                digit |= more.view(np.uint8) << np.uint8(7)
            digits.append(digit)
            present.append(here)
            if not more.any():
                break
            here = None if more.all() else more
    table = np.stack(digits, 1) if count else np.empty((0, len(digits)), np.uint8)
    bounds = np.empty(count + 1, np.int32)
    bounds[0] = 0
    if all(mask is None for mask in present):
        data = table.ravel()
        bounds[1:] = np.arange(1, count + 1) * len(digits)
    else:
        mask = np.ones(table.shape, np.bool_)
        for column, where in enumerate(present):
            if where is not None:
                mask[:, column] = where
        data = table[mask]
        np.cumsum(mask.sum(1), out=bounds[1:])
    return pa.BinaryArray.from_buffers(pa.binary(), count, [None, pa.py_buffer(bounds), pa.py_buffer(data)])
