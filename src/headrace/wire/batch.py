"""The header of a record batch (format v2), read and patched in place without looking at the records.

Parsing promises that a batch lies whole inside its buffer and has magic 2; other functions check the rest. Base offset and
leader epoch lie outside the checksum, so a broker assigns them without touching the rest; setting timestamp type and maximum
computes the checksum again.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

from crc32c import crc32c

from headrace.wire.compression import Codec
from headrace.wire.errors import ErrorCode, KafkaError

Buffer = bytes | bytearray | memoryview

HEADER = struct.Struct(">qiibIhiqqqhii")
HEADER_SIZE = HEADER.size
LENGTH_OVERHEAD = 12
"""Bytes before the part that `length` counts: the base offset and the length itself."""

CRC_START = 21
"""First byte covered by the checksum: the attributes."""

ASSIGNMENT = struct.Struct(">qii")
"""Base offset, length and leader epoch: what a leader writes into a batch it accepts."""

LENGTH = struct.Struct(">i")
_CRC_AND_ATTRIBUTES = struct.Struct(">Ih")
_MAX_TIMESTAMP = struct.Struct(">q")

MAGIC = 2
CODEC_MASK = 0x07
LOG_APPEND_TIME = 0x08
TRANSACTIONAL = 0x10
CONTROL = 0x20
DELETE_HORIZON = 0x40
KNOWN_ATTRIBUTES = 0x7F

NO_TIMESTAMP = -1
NO_PRODUCER_ID = -1
NO_PRODUCER_EPOCH = -1
NO_SEQUENCE = -1
NO_LEADER_EPOCH = -1
MAX_SEQUENCE = 0x7FFFFFFF


class BatchHeader(NamedTuple):
    base_offset: int
    length: int
    leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    records_count: int

    @property
    def size(self) -> int:
        """Bytes of the whole batch."""
        return self.length + LENGTH_OVERHEAD

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        return self.base_offset + self.last_offset_delta + 1

    @property
    def last_sequence(self) -> int:
        if self.base_sequence == NO_SEQUENCE:
            return NO_SEQUENCE
        return advance_sequence(self.base_sequence, self.last_offset_delta)

    @property
    def codec(self) -> Codec:
        return codec_of(self.attributes)

    @property
    def is_log_append_time(self) -> bool:
        return bool(self.attributes & LOG_APPEND_TIME)

    @property
    def is_transactional(self) -> bool:
        return bool(self.attributes & TRANSACTIONAL)

    @property
    def is_control(self) -> bool:
        return bool(self.attributes & CONTROL)

    @property
    def delete_horizon_ms(self) -> int | None:
        """When tombstones and markers of this batch may be removed; the cleaner stores it as the base timestamp."""
        return self.base_timestamp if self.attributes & DELETE_HORIZON else None


def advance_sequence(sequence: int, by: int) -> int:
    """Sequences count 0 … 2^31-1 and begin again at 0."""
    return (sequence + by) & MAX_SEQUENCE


def codec_of(attributes: int) -> Codec:
    code = attributes & CODEC_MASK
    if code > Codec.ZSTD:
        raise KafkaError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, f"Compression codec {code} is not known.")
    return Codec(code)


def parse_header(buffer: Buffer, position: int = 0, end: int | None = None) -> BatchHeader:
    """The header at `position`; CORRUPT_MESSAGE unless the whole batch lies before `end` and has magic 2."""
    if end is None:
        end = len(buffer)
    if end - position < HEADER_SIZE:
        raise KafkaError(
            ErrorCode.CORRUPT_MESSAGE,
            f"A record batch needs at least {HEADER_SIZE} bytes and only {end - position} are there.",
        )
    header = BatchHeader._make(HEADER.unpack_from(buffer, position))
    if header.magic != MAGIC:
        raise KafkaError(
            ErrorCode.CORRUPT_MESSAGE,
            f"Record batch magic {header.magic} is not supported; use a client of Kafka 0.11 or newer.",
        )
    if header.length < HEADER_SIZE - LENGTH_OVERHEAD or header.size > end - position:
        raise KafkaError(
            ErrorCode.CORRUPT_MESSAGE,
            f"Record batch length {header.length} does not fit the {end - position} bytes given.",
        )
    return header


def iterate_batches(buffer: Buffer) -> Iterator[tuple[int, BatchHeader]]:
    """Each batch's position and header; a truncated last batch ends the iteration, as in a fetch reply."""
    position, end = 0, len(buffer)
    while end - position >= LENGTH_OVERHEAD:
        (length,) = LENGTH.unpack_from(buffer, position + 8)
        if length < HEADER_SIZE - LENGTH_OVERHEAD:
            raise KafkaError(
                ErrorCode.CORRUPT_MESSAGE, f"Record batch length {length} is too small for a header."
            )
        if length + LENGTH_OVERHEAD > end - position:
            return
        header = parse_header(buffer, position, end)
        yield position, header
        position += header.size


def compute_crc(batch: Buffer) -> int:
    """The checksum of exactly one batch."""
    return crc32c(memoryview(batch)[CRC_START:])


def check_crc(batch: Buffer, header: BatchHeader) -> None:
    computed = compute_crc(batch)
    if computed != header.crc:
        raise KafkaError(
            ErrorCode.CORRUPT_MESSAGE,
            f"Record batch checksum is {computed:#010x} where its header says {header.crc:#010x}.",
        )


def check_counts(header: BatchHeader) -> None:
    """The record count is positive and agrees with the offsets the batch takes up."""
    if header.records_count <= 0 or header.last_offset_delta != header.records_count - 1:
        raise KafkaError(
            ErrorCode.INVALID_RECORD,
            f"A batch of {header.records_count} records has last offset delta {header.last_offset_delta}.",
        )


def assign(batch: bytearray | memoryview, base_offset: int, leader_epoch: int) -> None:
    """Write the leader's base offset and epoch into one batch, in place."""
    (length,) = LENGTH.unpack_from(batch, 8)
    ASSIGNMENT.pack_into(batch, 0, base_offset, length, leader_epoch)


def set_max_timestamp(batch: bytearray | memoryview, timestamp: int, *, log_append_time: bool) -> None:
    """Set the timestamp type and maximum of one batch in place and update its checksum."""
    _, attributes = _CRC_AND_ATTRIBUTES.unpack_from(batch, 17)
    attributes = attributes | LOG_APPEND_TIME if log_append_time else attributes & ~LOG_APPEND_TIME
    _MAX_TIMESTAMP.pack_into(batch, 35, timestamp)
    _CRC_AND_ATTRIBUTES.pack_into(batch, 17, 0, attributes)
    _CRC_AND_ATTRIBUTES.pack_into(batch, 17, compute_crc(batch), attributes)
