"""The rules of compaction, applied to one batch at a time; no files.

Of each key the latest record stays. A tombstone stays until the delete horizon of its batch, which the first compaction that
sees it sets to delete.retention.ms from then. Records of aborted transactions go; a transaction's marker goes, after the
same delay, when none of its records is left. The last batch of an active producer stays, emptied if need be, because it
carries the producer's sequence or epoch.
"""

from __future__ import annotations

import hashlib
import heapq
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from headrace.server.log.transaction_index import AbortedTransaction
from headrace.wire.batch import (
    CONTROL,
    LOG_APPEND_TIME,
    NO_TIMESTAMP,
    TRANSACTIONAL,
    BatchHeader,
    Buffer,
    parse_header,
)
from headrace.wire.markers import read_end_transaction_marker
from headrace.wire.raw_records import iterate_raw, pick_records, read_keys
from headrace.wire.records import BatchBuilder, assemble, decode_records, read_payload

BYTES_PER_KEY = 192
"""What one key costs in the map: 176 bytes, measured, for a digest, an offset and their slot in the table, and 16 while the
offsets are sorted."""

_SHORT_KEY = 15


class OffsetMap:
    """The latest offset of each key in the part of the log that is being compacted, in bounded memory."""

    __slots__ = ("_latest", "_offsets", "_out_of_order", "_room", "latest_offset", "start")

    def __init__(self, max_bytes: int, start: int) -> None:
        self._offsets: dict[bytes, int] = {}
        self._room = max(max_bytes // BYTES_PER_KEY, 1)
        self.start = start
        """The first offset that is mapped."""
        self.latest_offset = -1
        """The last offset the map knows about: records after it are left alone."""
        self._latest: array[int] = array("q")
        """The offsets in the map, in order."""
        self._out_of_order: set[int] = set()
        """Base offsets of batches whose records' offsets do not match their positions."""

    def __len__(self) -> int:
        return len(self._offsets)

    def put_records(self, payload: bytes, base_offset: int, count: int) -> bool:
        """Take the keys of a batch's records; False when there is no room for them all."""
        keys, in_order = read_keys(payload, count)
        numbered: Iterable[tuple[int, bytes | None]] = enumerate(keys, base_offset)
        if not in_order:
            self._out_of_order.add(base_offset)
            deltas = (raw[3] for raw in iterate_raw(payload, count))
            numbered = ((base_offset + delta, key) for delta, key in zip(deltas, keys, strict=True))
        start, offsets, room = self.start, self._offsets, self._room
        for offset, key in numbered:
            if key is None or offset < start:
                continue
            if len(offsets) >= room:
                return False
            offsets[key if len(key) <= _SHORT_KEY else _digest(key)] = offset
        return True

    def finish(self) -> None:
        """Every key has been added; `latest_in` may be called from now on."""
        self._latest = array("q", sorted(self._offsets.values()))

    def latest_in(self, header: BatchHeader) -> list[int] | None:
        """The positions of the records in a batch that are the latest of their key, without reading the records; None for a
        batch that was not mapped as a whole."""
        first, last = header.base_offset, header.last_offset
        if (
            first < self.start
            or last > self.latest_offset
            or header.records_count != header.last_offset_delta + 1
            or first in self._out_of_order
        ):
            return None
        begin = bisect_left(self._latest, first)
        return [offset - first for offset in self._latest[begin : bisect_right(self._latest, last, begin)]]

    def get(self, key: bytes) -> int:
        """-1 when the key has no record in the part that was mapped."""
        return self._offsets.get(key if len(key) <= _SHORT_KEY else _digest(key), -1)


def _digest(key: bytes) -> bytes:
    # A key shorter than a digest is used as it is; the lengths keep the two kinds apart.
    return hashlib.md5(key, usedforsecurity=False).digest()


class TransactionFilter:
    """While a log is read in order, decides which batches belong to aborted transactions and which markers are no longer needed."""

    __slots__ = ("_aborted", "_committed_with_data", "_ongoing", "_with_data", "keep_index")

    def __init__(self, keep_index: Callable[[AbortedTransaction], None] | None = None) -> None:
        self._aborted: list[tuple[int, AbortedTransaction]] = []
        self._ongoing: dict[int, AbortedTransaction] = {}
        self._with_data: set[int] = set()
        """Producers with an aborted transaction of which a batch was seen."""
        self._committed_with_data: set[int] = set()
        self.keep_index = keep_index
        """Called with each aborted transaction whose marker stays, for the new segment's index."""

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
    offsets: OffsetMap, transactions: TransactionFilter, header: BatchHeader, batch: Buffer
) -> bool:
    """Take a batch's keys into the map; False when the map is full, with the batch not wholly mapped."""
    if header.is_control:
        transactions.is_spent(header, batch)
    elif not transactions.is_aborted(header) and header.records_count:
        payload = read_payload(batch, header)
        if not offsets.put_records(payload, header.base_offset, header.records_count):
            return False
    if header.last_offset >= offsets.start:
        offsets.latest_offset = max(offsets.latest_offset, header.last_offset)
    return True


@dataclass(slots=True)
class BatchFilter:
    """Decides which records of a batch stay."""

    offsets: OffsetMap
    transactions: TransactionFilter
    last_records: dict[int, LastRecord]
    now_ms: int
    delete_retention_ms: int
    upper: int
    """Where this round of compaction ends; the batch before it stays, so that the log's end is not
    forgotten."""

    def filter(self, header: BatchHeader, batch: Buffer) -> Buffer | None:
        """The batch unchanged, a smaller one, or None when nothing of it stays."""
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
                return _with_horizon(batch, self.now_ms + self.delete_retention_ms)
            return batch
        return self._filter_records(header, batch, horizon, keep_empty)

    def _filter_records(
        self, header: BatchHeader, batch: Buffer, horizon: int | None, keep_empty: bool
    ) -> Buffer | None:
        kept: list[bytes] = []
        max_delta: int | None = None
        has_tombstone = False
        tombstones_stay = horizon is None or self.now_ms < horizon
        for record, timestamp_delta, is_tombstone in self._records_to_keep(header, batch, tombstones_stay):
            kept.append(record)
            has_tombstone = has_tombstone or is_tombstone
            if max_delta is None or timestamp_delta > max_delta:
                max_delta = timestamp_delta
        if max_delta is None:
            return _emptied(header) if keep_empty else None
        whole = len(kept) == header.records_count
        if has_tombstone and horizon is None:
            # The horizon replaces the base timestamp, so every record's timestamp delta is rewritten.
            smaller = batch if whole else _reduced(header, kept, max_delta)
            return _with_horizon(smaller, self.now_ms + self.delete_retention_ms)
        return batch if whole else _reduced(header, kept, max_delta)

    def _records_to_keep(
        self, header: BatchHeader, batch: Buffer, tombstones_stay: bool
    ) -> Iterator[tuple[bytes, int, bool]]:
        """Each with its timestamp delta, and whether it is a tombstone."""
        latest = self.offsets.latest_in(header)
        if latest is not None and len(latest) * 2 < header.records_count:
            # The usual case in a log due for compaction: of most batches nothing stays, of some a little.
            for record in pick_records(read_payload(batch, header), latest) if latest else ():
                _, _, timestamp_delta, _, _, _, _, value_length, _ = next(iterate_raw(record, 1))
                if value_length >= 0 or tombstones_stay:
                    yield record, timestamp_delta, value_length < 0
            return
        payload = read_payload(batch, header)
        base_offset, latest_mapped, latest_of = (
            header.base_offset,
            self.offsets.latest_offset,
            self.offsets.get,
        )
        for raw in iterate_raw(payload, header.records_count):
            start, end, timestamp_delta, offset_delta, key_start, key_length, _, value_length, _ = raw
            offset = base_offset + offset_delta
            if offset <= latest_mapped:
                if key_length < 0:
                    continue
                key = payload[key_start : key_start + key_length]
                if offset < latest_of(key) or (value_length < 0 and not tombstones_stay):
                    continue
            yield payload[start:end], timestamp_delta, value_length < 0

    def _is_last_of_producer(self, header: BatchHeader) -> bool:
        last = self.last_records.get(header.producer_id) if header.producer_id >= 0 else None
        if last is None:
            return False
        if last.last_data_offset >= 0:
            return header.last_offset == last.last_data_offset
        return header.is_control and header.producer_epoch == last.producer_epoch


def _reduced(header: BatchHeader, records: list[bytes], max_delta: int) -> bytearray:
    """The batch with only these records, as they were."""
    max_timestamp = header.max_timestamp
    if not header.is_log_append_time:
        max_timestamp = header.base_timestamp + max_delta
    return assemble(
        header._replace(records_count=len(records), max_timestamp=max_timestamp), b"".join(records)
    )


def _with_horizon(batch: Buffer, horizon: int) -> bytearray:
    """The batch with a delete horizon instead of its base timestamp."""
    header = parse_header(batch)
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
    for record in decode_records(batch, header):
        builder.append(record.timestamp, record.key, record.value, record.headers, offset=record.offset)
    return builder.build(last_offset=header.last_offset)


def _emptied(header: BatchHeader) -> bytearray:
    """A batch without records that keeps its offsets, epochs and sequences."""
    kept = header.attributes & (LOG_APPEND_TIME | TRANSACTIONAL | CONTROL)
    return assemble(header._replace(attributes=kept, base_timestamp=NO_TIMESTAMP, records_count=0), b"")
