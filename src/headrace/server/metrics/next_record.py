"""When the next record that a group will read was written: what a consumer of committed records would get first. (docs/lag.md)"""

from __future__ import annotations

import time
from collections.abc import Sequence

from headrace.server.log.partition import PartitionLog
from headrace.wire.batch import NO_TIMESTAMP, BatchHeader, Buffer, iterate_batches
from headrace.wire.markers import read_end_transaction_marker
from headrace.wire.raw_records import iterate_raw
from headrace.wire.records import read_payload

CHUNK = 64 * 1024
MOST_CHUNKS = 32
"""How far to look behind markers, aborted transactions and what compaction has removed."""
BREATHER = 512
"""Records decoded before the thread lets the event loop on."""

Aborted = Sequence[tuple[int, int]]
"""(producer id, first offset) of aborted transactions."""


def written_at(log: PartitionLog, start: int) -> int | None:
    """The timestamp in milliseconds of the first record from `start` on; None when there is none to be read. In a thread."""
    stable = log.last_stable_offset
    for _ in range(MOST_CHUNKS):
        if start >= stable:
            return None
        piece = log.read(start, CHUNK, up_to_offset=stable)
        if not piece.size:
            return None
        aborted = [
            (one.producer_id, one.first_offset) for one in log.aborted_transactions(start, piece.end_offset)
        ]
        found = first_timestamp(piece.read(), start, aborted)
        if found is not None:
            return found if found != NO_TIMESTAMP else None
        start = max(piece.end_offset, start + 1)
    return None


def first_timestamp(records: Buffer, start: int, aborted: Aborted) -> int | None:
    """The same within some batches."""
    open_aborts: set[int] = set()
    waiting = sorted(aborted, key=lambda each: -each[1])
    for position, header in iterate_batches(records):
        while waiting and waiting[-1][1] <= header.last_offset:
            open_aborts.add(waiting.pop()[0])
        if header.is_control:
            marker = read_end_transaction_marker(_batch(records, position, header), header)
            if marker is not None and not marker.committed:
                open_aborts.discard(header.producer_id)
        elif header.next_offset > start and header.records_count:
            if header.is_transactional and header.producer_id in open_aborts:
                continue
            found = _in_batch(_batch(records, position, header), header, start)
            if found is not None:
                return found
    return None


def _batch(records: Buffer, position: int, header: BatchHeader) -> memoryview:
    return memoryview(records)[position : position + header.size]


def _in_batch(batch: memoryview, header: BatchHeader, start: int) -> int | None:
    complete = header.records_count == header.last_offset - header.base_offset + 1
    if complete and (header.is_log_append_time or header.base_timestamp == header.max_timestamp):
        return header.max_timestamp
    if complete and start <= header.base_offset and header.delete_horizon_ms is None:
        return header.base_timestamp
    for number, raw in enumerate(iterate_raw(read_payload(batch, header), header.records_count), 1):
        if header.base_offset + raw[3] >= start:
            return header.max_timestamp if header.is_log_append_time else header.base_timestamp + raw[2]
        if not number % BREATHER:
            time.sleep(0)
    return None
