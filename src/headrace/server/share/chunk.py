"""A piece of a partition's log as a share fetch looks at it: which offsets hold records that may be delivered.

Markers and, for groups that read committed records only, what aborted transactions wrote are left out: clients of share groups
do not filter them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from headrace.server.log.partition import PartitionLog
from headrace.server.log.transaction_index import AbortedTransaction
from headrace.server.share.in_flight import Acquired
from headrace.wire.batch import BatchHeader, iterate_batches

LARGEST = 1 << 20
"""What is read at a time: a fetch takes some hundred records, however many bytes it allows."""


class Batch(NamedTuple):
    first: int
    last: int
    position: int
    end: int


class Chunk(NamedTuple):
    offset: int
    """Where the search began."""
    read_to: int
    """Everything below was looked at."""
    data: bytes | bytearray
    batches: Sequence[Batch]

    def records(self, acquired: Sequence[Acquired]) -> bytes:
        """The batches that hold these records."""
        if not acquired:
            return b""
        first, last = acquired[0].first, acquired[-1].last
        held = [batch for batch in self.batches if batch.last >= first and batch.first <= last]
        return bytes(self.data[held[0].position : held[-1].end])


def read_chunk(
    log: PartitionLog, offset: int, limit: int, max_bytes: int, *, read_committed: bool, nowait: bool
) -> Chunk | None:
    """None when there is nothing from `offset` to before `limit`. With `nowait`, BlockingIOError when the disk is needed."""
    piece = log.read(offset, min(max_bytes, LARGEST), up_to_offset=limit, nowait=nowait)
    if not piece.size:
        return None
    data = piece.held if piece.held is not None else piece.read(nowait=nowait)
    aborted = log.aborted_transactions(offset, piece.end_offset) if read_committed else []
    batches, read_to = [], offset
    for position, header in iterate_batches(data):
        read_to = header.next_offset
        if not header.is_control and not _is_aborted(header, aborted):
            batches.append(Batch(header.base_offset, header.last_offset, position, position + header.size))
    return Chunk(offset, read_to, data, batches)


def _is_aborted(header: BatchHeader, aborted: Sequence[AbortedTransaction]) -> bool:
    return header.is_transactional and any(
        each.producer_id == header.producer_id
        and each.first_offset <= header.base_offset
        and header.last_offset <= each.last_offset
        for each in aborted
    )
