"""The records inside a batch: decoding any codec, and building batches.

The decoder walks untrusted bytes: whatever they hold, it returns exactly the records the header promises or
raises one KafkaError (INVALID_RECORD), in time and memory bounded by the decompressed size allowed.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from crc32c import crc32c

from headrace.wire.batch import (
    CODEC_MASK,
    CONTROL,
    CRC_START,
    DELETE_HORIZON,
    HEADER,
    HEADER_SIZE,
    LENGTH_OVERHEAD,
    LOG_APPEND_TIME,
    MAGIC,
    NO_LEADER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    TRANSACTIONAL,
    BatchHeader,
    Buffer,
    compute_crc,
    parse_header,
)
from headrace.wire.compression import DEFAULT_LIMIT, Codec, CompressionError, compress, decompress
from headrace.wire.raw_records import invalid, iterate_raw, read_varint

Header = tuple[str, bytes | None]

_CRC = struct.Struct(">I")
_UNCHECKED = struct.Struct(">qiibI")
_CHECKED = struct.Struct(">hiqqqhii")
"""The header before the first byte under the checksum, and from there on."""
_MAX_INT64 = 0x7FFFFFFFFFFFFFFF


@dataclass(slots=True, frozen=True)
class Record:
    """One record of a batch."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Sequence[Header] = ()


def read_payload(batch: Buffer, header: BatchHeader, limit: int = DEFAULT_LIMIT) -> bytes:
    """The records of one batch, decompressed."""
    view = memoryview(batch)[HEADER_SIZE : header.size]
    codec = header.codec
    if codec == Codec.NONE:
        return bytes(view)
    try:
        return decompress(codec, view, limit)
    except CompressionError as error:
        raise invalid(str(error)) from None


def decode_records(
    batch: Buffer, header: BatchHeader | None = None, limit: int = DEFAULT_LIMIT
) -> list[Record]:
    """Every record of one batch, with absolute offsets and timestamps."""
    if header is None:
        header = parse_header(batch)
    payload = read_payload(batch, header, limit)
    base_offset, base_timestamp = header.base_offset, header.base_timestamp
    append_time = header.max_timestamp if header.is_log_append_time else None
    records = []
    for raw in iterate_raw(payload, header.records_count):
        _, end, timestamp_delta, offset_delta, key_start, key_length, value_start, value_length, rest = raw
        key = payload[key_start : key_start + key_length] if key_length >= 0 else None
        value = payload[value_start : value_start + value_length] if value_length >= 0 else None
        offset = base_offset + offset_delta
        timestamp = append_time if append_time is not None else base_timestamp + timestamp_delta
        if not (0 <= offset <= _MAX_INT64 and -_MAX_INT64 <= timestamp <= _MAX_INT64):
            raise invalid("an offset or timestamp is out of range")
        records.append(Record(offset, timestamp, key, value, _read_headers(payload, rest, end)))
    return records


def _read_headers(payload: bytes, position: int, end: int) -> Sequence[Header]:
    count, position = read_varint(payload, position, end)
    if count == 0 and position == end:
        return ()
    if count < 0 or count > end - position:
        raise invalid(f"header count {count} does not fit its record")
    headers: list[Header] = []
    for _ in range(count):
        length, position = read_varint(payload, position, end)
        if length < 0 or length > end - position:
            raise invalid(f"header key length {length} does not fit its record")
        try:
            name = str(payload[position : position + length], "utf-8")
        except UnicodeDecodeError:
            raise invalid("a header key is not UTF-8") from None
        position += length
        length, position = read_varint(payload, position, end)
        value = None
        if length >= 0:
            if length > end - position:
                raise invalid(f"header value length {length} does not fit its record")
            value = payload[position : position + length]
            position += length
        elif length != -1:
            raise invalid(f"header value length {length} is negative")
        headers.append((name, value))
    if position != end:
        raise invalid(f"{end - position} bytes follow the last header of a record")
    return headers


def write_varint(out: bytearray, value: int) -> None:
    out += varint(value)


def varint(value: int) -> bytes:
    """A zigzag varint."""
    return _SMALL_VARINTS[value] if 0 <= value < len(_SMALL_VARINTS) else _make_varint(value)


def _make_varint(value: int) -> bytes:
    value = (value << 1) ^ (value >> 63)
    out = bytearray()
    while value > 0x7F:
        out.append((value & 0x7F) | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


_SMALL_VARINTS = tuple(_make_varint(value) for value in range(1024))
"""Nearly every number in a record is small: a length, or a delta from the record before."""


class BatchBuilder:
    """Collects records into one batch. Offsets count up from `base_offset` unless a record has its own."""

    __slots__ = (
        "_attributes",
        "_base_offset",
        "_base_sequence",
        "_base_timestamp",
        "_codec",
        "_leader_epoch",
        "_level",
        "_log_append_time",
        "_max_timestamp",
        "_next_offset",
        "_payload",
        "_producer_epoch",
        "_producer_id",
        "count",
    )

    def __init__(
        self,
        *,
        base_offset: int = 0,
        codec: Codec = Codec.NONE,
        level: int | None = None,
        log_append_time: int | None = None,
        leader_epoch: int = NO_LEADER_EPOCH,
        producer_id: int = NO_PRODUCER_ID,
        producer_epoch: int = NO_PRODUCER_EPOCH,
        base_sequence: int = NO_SEQUENCE,
        transactional: bool = False,
        control: bool = False,
        delete_horizon_ms: int | None = None,
    ) -> None:
        self._base_offset = self._next_offset = base_offset
        self._codec = codec
        self._level = level
        self._leader_epoch = leader_epoch
        self._producer_id = producer_id
        self._producer_epoch = producer_epoch
        self._base_sequence = base_sequence
        self._log_append_time = log_append_time
        self._attributes = (
            codec
            | (LOG_APPEND_TIME if log_append_time is not None else 0)
            | (TRANSACTIONAL if transactional else 0)
            | (CONTROL if control else 0)
            | (DELETE_HORIZON if delete_horizon_ms is not None else 0)
        )
        self._base_timestamp = delete_horizon_ms
        self._max_timestamp = NO_TIMESTAMP
        self._payload = bytearray()
        self.count = 0

    @property
    def size(self) -> int:
        """Bytes of the batch so far, before compression."""
        return HEADER_SIZE + len(self._payload)

    def append(
        self,
        timestamp: int,
        key: Buffer | None,
        value: Buffer | None,
        headers: Iterable[Header] = (),
        *,
        offset: int | None = None,
    ) -> int:
        """Add a record and return its offset."""
        if self._base_timestamp is None:
            self._base_timestamp = timestamp
        if offset is None:
            offset = self._next_offset
        parts = [
            b"\0",
            varint(timestamp - self._base_timestamp),
            varint(offset - self._base_offset),
            *_nullable(key),
            *_nullable(value),
        ]
        headers = tuple(headers)
        parts.append(varint(len(headers)))
        for name, header_value in headers:
            parts += _nullable(name.encode())
            parts += _nullable(header_value)
        body = b"".join(parts)
        self._payload += varint(len(body))
        self._payload += body
        if timestamp > self._max_timestamp:
            self._max_timestamp = timestamp
        self._next_offset = offset + 1
        self.count += 1
        return offset

    def build(self, *, last_offset: int | None = None) -> bytearray:
        """The finished batch. Compaction passes the original `last_offset`, even if the last record was removed."""
        if last_offset is None:
            last_offset = self._next_offset - 1
        header = BatchHeader(
            self._base_offset,
            0,
            self._leader_epoch,
            MAGIC,
            0,
            self._attributes,
            last_offset - self._base_offset,
            NO_TIMESTAMP if self._base_timestamp is None else self._base_timestamp,
            self._max_timestamp if self._log_append_time is None else self._log_append_time,
            self._producer_id,
            self._producer_epoch,
            self._base_sequence,
            self.count,
        )
        return assemble(header, self._payload, self._level)


def build_batch(
    entries: Sequence[tuple[Buffer, Buffer | None]],
    timestamp: int,
    *,
    codec: Codec = Codec.NONE,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = NO_PRODUCER_EPOCH,
    control: bool = False,
) -> bytearray:
    """Records of one moment without headers, (key, value) each; transactional if there is a producer id."""
    records = [plain_record(index, key, value) for index, (key, value) in enumerate(entries)]
    return seal_batch(
        records,
        timestamp,
        codec=codec,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        control=control,
    )


def plain_record(index: int, key: Buffer, value: Buffer | None) -> bytes:
    """The record at `index` of a batch whose records are of one moment and have no headers."""
    body = b"".join(
        (b"\0\0", varint(index), varint(len(key)), key, *_nullable(value), b"\0")  # the last: no headers
    )
    return varint(len(body)) + body


def around_index(key: Buffer, value_size: int, index_size: int) -> tuple[bytes, bytes]:
    """Of such a record what stands before its index, and what between the index and the value; a zero byte ends it."""
    between = b"".join((varint(len(key)), key, varint(value_size)))
    return varint(2 + index_size + len(between) + value_size + 1) + b"\0\0", between


def seal_batch(
    records: Sequence[bytes],
    timestamp: int,
    *,
    codec: Codec = Codec.NONE,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = NO_PRODUCER_EPOCH,
    control: bool = False,
) -> bytearray:
    """The batch of such records, made by `plain_record` or the like; transactional if there is a producer id."""
    attributes = codec | (TRANSACTIONAL if producer_id != NO_PRODUCER_ID else 0) | (CONTROL if control else 0)
    count = len(records)
    payload = b"".join(records)
    if codec is not Codec.NONE:
        payload = compress(codec, payload)
    checked = (
        _CHECKED.pack(
            attributes, count - 1, timestamp, timestamp, producer_id, producer_epoch, NO_SEQUENCE, count
        )
        + payload
    )
    start = _UNCHECKED.pack(
        0, len(checked) + CRC_START - LENGTH_OVERHEAD, NO_LEADER_EPOCH, MAGIC, crc32c(checked)
    )
    return bytearray(start + checked)


def assemble(header: BatchHeader, payload: Buffer, level: int | None = None) -> bytearray:
    """A batch with this header and these records, not compressed; its length and checksum are computed."""
    if header.attributes & CODEC_MASK and payload:
        payload = compress(header.codec, payload, level)
    batch = bytearray(HEADER_SIZE)
    batch += payload
    HEADER.pack_into(batch, 0, *header._replace(length=len(batch) - LENGTH_OVERHEAD))
    _CRC.pack_into(batch, 17, compute_crc(batch))
    return batch


def _nullable(data: Buffer | None) -> tuple[Buffer, ...]:
    return (_NULL,) if data is None else (varint(len(data)), data)


_NULL = _make_varint(-1)
