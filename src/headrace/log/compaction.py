"""The rules of compaction, applied to one batch at a time; no files.

Of each key the latest record stays. A tombstone stays until the delete horizon of its batch, which the
first compaction that sees it sets to delete.retention.ms from then. Records of aborted transactions go; a
transaction's marker goes, after the same delay, when none of its records is left. The last batch of a
producer that may come back stays, emptied if need be, because it carries the producer's sequence or epoch.
"""

from __future__ import annotations

import hashlib
import heapq
import struct
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from headrace.log.transaction_index import AbortedTransaction
from headrace.wire.batch import (
    CONTROL,
    HEADER,
    HEADER_SIZE,
    LENGTH_OVERHEAD,
    LOG_APPEND_TIME,
    MAGIC,
    NO_TIMESTAMP,
    TRANSACTIONAL,
    BatchHeader,
    Buffer,
    compute_crc,
)
from headrace.wire.markers import read_end_transaction_marker
from headrace.wire.records import BatchBuilder, Record, decode_records, iterate_raw, read_payload

BYTES_PER_KEY = 176
"""What one key costs in the map, by measurement: a digest, an offset and their place in the table."""

_SHORT_KEY = 15
_CRC = struct.Struct(">I")


class OffsetMap:
    """The latest offset of each key in the part of the log that is being compacted, in bounded memory."""

    __slots__ = ("_offsets", "_room", "latest_offset")

    def __init__(self, max_bytes: int) -> None:
        self._offsets: dict[bytes, int] = {}
        self._room = max(max_bytes // BYTES_PER_KEY, 1)
        self.latest_offset = -1
        """The last offset the map knows about: records after it are left alone."""

    def __len__(self) -> int:
        return len(self._offsets)

    @property
    def is_full(self) -> bool:
        return len(self._offsets) >= self._room

    def put(self, key: bytes, offset: int) -> None:
        self._offsets[_digest(key)] = offset

    def get(self, key: bytes) -> int:
        """-1 when the key has no record in the part that was mapped."""
        return self._offsets.get(_digest(key), -1)


def _digest(key: bytes) -> bytes:
    # A key shorter than a digest stands for itself; the lengths keep the two kinds apart.
    return key if len(key) <= _SHORT_KEY else hashlib.md5(key, usedforsecurity=False).digest()


class TransactionFilter:
    """Knows, reading a log in order, which batches belong to aborted transactions and which markers are
    spent."""

    __slots__ = ("_aborted", "_committed_with_data", "_ongoing", "_with_data", "keep_index")

    def __init__(self, keep_index: Callable[[AbortedTransaction], None] | None = None) -> None:
        self._aborted: list[tuple[int, AbortedTransaction]] = []
        self._ongoing: dict[int, AbortedTransaction] = {}
        self._with_data: set[int] = set()
        """Aborted producers of whose transaction a batch was seen."""
        self._committed_with_data: set[int] = set()
        self.keep_index = keep_index
        """Told of aborted transactions whose marker stays, for the new segment's index."""

    def add(self, transactions: Iterable[AbortedTransaction]) -> None:
        for transaction in transactions:
            heapq.heappush(self._aborted, (transaction.first_offset, transaction))

    def _advance(self, offset: int) -> None:
        while self._aborted and self._aborted[0][0] <= offset:
            transaction = heapq.heappop(self._aborted)[1]
            self._ongoing.setdefault(transaction.producer_id, transaction)

    def is_aborted(self, header: BatchHeader) -> bool:
        """Whether a data batch belongs to an aborted transaction."""
        self._advance(header.last_offset)
        if not header.is_transactional:
            return False
        if header.producer_id in self._ongoing:
            self._with_data.add(header.producer_id)
            return True
        self._committed_with_data.add(header.producer_id)
        return False

    def is_spent(self, header: BatchHeader, batch: Buffer) -> bool:
        """Whether a control batch ends a transaction of which nothing is left."""
        self._advance(header.last_offset)
        marker = read_end_transaction_marker(batch, header)
        if marker is None:
            return header.records_count == 0
        if marker.committed:
            seen = header.producer_id in self._committed_with_data
            self._committed_with_data.discard(header.producer_id)
            return not seen
        transaction = self._ongoing.pop(header.producer_id, None)
        if transaction is None or header.producer_id not in self._with_data:
            return True
        self._with_data.discard(header.producer_id)
        if self.keep_index is not None:
            self.keep_index(transaction)
        return False


@dataclass(slots=True, frozen=True)
class LastRecord:
    """Where an active producer last wrote: its last data offset, or -1 and the epoch its last marker
    carries."""

    last_data_offset: int
    producer_epoch: int


def map_batch(
    offsets: OffsetMap, transactions: TransactionFilter, header: BatchHeader, batch: Buffer, start: int
) -> bool:
    """Take a batch's keys into the map; False when the map is full, with the batch not wholly mapped."""
    if header.is_control:
        transactions.is_spent(header, batch)
    elif not transactions.is_aborted(header) and header.records_count:
        payload = read_payload(batch, header)
        base_offset = header.base_offset
        for raw in iterate_raw(payload, header.records_count):
            offset = base_offset + raw.offset_delta
            if raw.key_length < 0 or offset < start:
                continue
            if offsets.is_full:
                return False
            offsets.put(bytes(payload[raw.key_start : raw.key_start + raw.key_length]), offset)
    if header.last_offset >= start:
        offsets.latest_offset = max(offsets.latest_offset, header.last_offset)
    return True


@dataclass(slots=True)
class BatchFilter:
    """Decides what of a batch stays."""

    offsets: OffsetMap
    transactions: TransactionFilter
    last_records: dict[int, LastRecord]
    now_ms: int
    delete_retention_ms: int
    upper: int
    """Where this round of compaction ends; the batch before it stays, so that the log's end is not
    forgotten."""

    def filter(self, header: BatchHeader, batch: Buffer) -> Buffer | None:
        """The batch as it was, a smaller one, or None when nothing of it stays."""
        horizon = header.delete_horizon_ms
        spent = False
        if header.is_control:
            spent = self.transactions.is_spent(header, batch)
            discard = spent and horizon is not None and horizon <= self.now_ms
        else:
            discard = self.transactions.is_aborted(header)
        keep_empty = header.next_offset == self.upper or self._is_last_of_producer(header)
        if discard or not header.records_count:
            return _emptied(header) if keep_empty else None
        if header.is_control:
            if spent and horizon is None:
                return _rebuilt(header, decode_records(batch, header), self.now_ms + self.delete_retention_ms)
            return batch
        return self._filter_records(header, batch, horizon, keep_empty)

    def _filter_records(
        self, header: BatchHeader, batch: Buffer, horizon: int | None, keep_empty: bool
    ) -> Buffer | None:
        payload = read_payload(batch, header)
        latest_mapped = self.offsets.latest_offset
        tombstones_stay = horizon is None or self.now_ms < horizon
        kept = []
        has_tombstone = False
        for number, raw in enumerate(iterate_raw(payload, header.records_count)):
            offset = header.base_offset + raw.offset_delta
            is_tombstone = raw.value_length < 0
            if offset <= latest_mapped:
                if raw.key_length < 0:
                    continue
                key = bytes(payload[raw.key_start : raw.key_start + raw.key_length])
                if offset < self.offsets.get(key) or (is_tombstone and not tombstones_stay):
                    continue
            kept.append(number)
            has_tombstone = has_tombstone or is_tombstone
        if not kept:
            return _emptied(header) if keep_empty else None
        new_horizon = self.now_ms + self.delete_retention_ms if has_tombstone and horizon is None else horizon
        if len(kept) == header.records_count and new_horizon == horizon:
            return batch
        records = decode_records(batch, header)
        return _rebuilt(header, [records[number] for number in kept], new_horizon)

    def _is_last_of_producer(self, header: BatchHeader) -> bool:
        last = self.last_records.get(header.producer_id) if header.producer_id >= 0 else None
        if last is None:
            return False
        if last.last_data_offset >= 0:
            return header.last_offset == last.last_data_offset
        return header.is_control and header.producer_epoch == last.producer_epoch


def _rebuilt(header: BatchHeader, records: list[Record], horizon: int | None) -> bytearray:
    builder = BatchBuilder(
        base_offset=header.base_offset,
        codec=header.codec,
        log_append_time=header.max_timestamp if header.is_log_append_time else None,
        leader_epoch=header.leader_epoch,
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        base_sequence=header.base_sequence,
        transactional=header.is_transactional,
        control=header.is_control,
        delete_horizon_ms=horizon,
    )
    for record in records:
        builder.append(record.timestamp, record.key, record.value, record.headers, offset=record.offset)
    return builder.build(last_offset=header.last_offset)


def _emptied(header: BatchHeader) -> bytearray:
    """A batch without records that keeps its offsets, epochs and sequences."""
    batch = bytearray(HEADER_SIZE)
    HEADER.pack_into(
        batch,
        0,
        header.base_offset,
        HEADER_SIZE - LENGTH_OVERHEAD,
        header.leader_epoch,
        MAGIC,
        0,
        header.attributes & (LOG_APPEND_TIME | TRANSACTIONAL | CONTROL),
        header.last_offset_delta,
        NO_TIMESTAMP,
        header.max_timestamp,
        header.producer_id,
        header.producer_epoch,
        header.base_sequence,
        0,
    )
    _CRC.pack_into(batch, 17, compute_crc(batch))
    return batch
