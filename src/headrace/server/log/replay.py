"""Restoring a log's producer state from the newest trusted snapshot and the batches after it.

A snapshot has one batch per producer. The four before it are read from the log when a client retries one of them, so that
opening a log costs nothing extra.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from functools import partial
from itertools import islice

from headrace.server.log.environment import Environment
from headrace.server.log.producers import ProducerState
from headrace.server.log.segments import Segments
from headrace.server.log.snapshot_files import SnapshotFiles
from headrace.server.log.transaction_index import AbortedTransaction
from headrace.wire.batch import BatchHeader

logger = logging.getLogger(__name__)

MOST_HEADERS = 10_000
"""How many batches are searched for one producer's."""


def load_snapshot(
    environment: Environment,
    segments: Segments,
    snapshots: SnapshotFiles,
    producers: ProducerState,
    log_start_offset: int,
    trusted: int,
) -> int:
    """Fill `producers` from the newest snapshot not after `trusted`; returns where replaying begins.

    Snapshots after it, before the log's start, or damaged are removed.
    """
    producers.clear()
    now_ms = environment.clock.now_ms()
    for offset in reversed(snapshots.offsets):
        if log_start_offset <= offset <= trusted:
            try:
                producers.restore(snapshots.read(offset), partial(last_headers, segments, offset))
            except ValueError as error:
                logger.warning("Ignoring producer snapshot %s: %s.", snapshots.path(offset), error)
            else:
                producers.expire(now_ms, environment.producer_id_expiration_ms)
                return offset
        snapshots.remove(offset)
    return log_start_offset


def last_headers(segments: Segments, offset: int) -> Iterator[BatchHeader]:
    return islice(headers_before(segments, offset), MOST_HEADERS)


def headers_before(segments: Segments, offset: int) -> Iterator[BatchHeader]:
    """The headers of the batches before `offset`, newest first, read in the portions that the offset index marks."""
    for number in range(segments.index_of(offset), -1, -1):
        segment = segments[number]
        location = segment.locate(offset)
        end = segment.size if location is None else location.position
        while end > 0:
            entry = segment.offset_index.floor(end - 1, 1)
            start = entry[1] if entry is not None else 0
            # With a sparse index a portion may be very long: not worth the time.
            portion = list(islice(segment.headers(start, end), MOST_HEADERS + 1))
            if len(portion) > MOST_HEADERS:
                return
            yield from (header for _, header in reversed(portion))
            end = start


def replay_producers(segments: Segments, producers: ProducerState, begin: int, end: int) -> None:
    """Take in what producers wrote from `begin` to before `end`."""
    if begin >= end:
        return
    for number in range(segments.index_of(begin), len(segments)):
        segment = segments[number]
        location = segment.locate(begin)
        if location is None:
            continue
        for position, header in segment.headers(location.position):
            if header.producer_id < 0 or header.base_offset < begin:
                continue
            batch = segment.read_batch(position, header) if header.is_control else None
            completed = producers.replay(header, batch)
            if completed is not None and completed[0].aborted:
                transaction, stable = completed
                segment.transaction_index.append(
                    AbortedTransaction(
                        transaction.producer_id, transaction.first_offset, transaction.last_offset, stable
                    )
                )
