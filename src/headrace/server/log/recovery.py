"""Opening a partition's directory: finishing what a crash interrupted, and checking only what may be damaged.

After a clean stop nothing is read but small files. After a crash everything before the recovery point is on
the disk and trusted; what follows is checked batch by batch, and the log ends before the first batch that
is torn or damaged. Indexes are rebuilt where they are missing or make no sense; producer state comes from
the last snapshot that is known to be on the disk, and the batches after it.
"""

from __future__ import annotations

import logging
import os
from dataclasses import dataclass

from headrace.server.log.config import LogConfig
from headrace.server.log.environment import Environment
from headrace.server.log.epochs import LeaderEpochs
from headrace.server.log.files import FULL_DISK
from headrace.server.log.index import OFFSET_ENTRY, TIME_ENTRY
from headrace.server.log.leftovers import INDEXES, discard, finish_interrupted, offset_of
from headrace.server.log.producers import ProducerState
from headrace.server.log.replay import load_snapshot, replay_producers
from headrace.server.log.segment import MAX_RELATIVE_OFFSET, Segment
from headrace.server.log.segments import Segments
from headrace.server.log.snapshot_files import SnapshotFiles
from headrace.server.log.snapshots import SUFFIX
from headrace.wire.errors import KafkaError

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class LoadedLog:
    """The parts of a partition's log, as they were read from disk."""

    segments: Segments
    epochs: LeaderEpochs
    producers: ProducerState
    snapshots: SnapshotFiles
    log_start_offset: int
    log_end_offset: int
    synced: bool
    """Opening it changed nothing on disk."""


def load_log(
    environment: Environment,
    directory: str,
    name: str,
    config: LogConfig,
    *,
    clean: bool,
    recovery_point: int,
    log_start_offset: int,
    known_end: tuple[int, int] | None,
    distrust_cache: bool = False,
    gaps: bool = False,
) -> LoadedLog:
    """Open a directory. `known_end` (end offset, size of the active segment) comes from a clean stop; with `gaps`,
    a segment may end before the next begins."""
    files = environment.files
    names = finish_interrupted(environment, directory, files.list(directory))
    segments = _open_segments(environment, directory, names, config, log_start_offset)
    epochs = LeaderEpochs(files, directory)
    epochs.load()
    if distrust_cache:
        for segment in segments:
            segment.handle().forget_cache()
    unchecked = len(segments) if clean else segments.index_of(recovery_point)
    for number in range(unchecked):
        if _has_indexes(segments[number], names):
            segments[number].know_timestamps()
        else:
            _recover_segment(segments[number], 0, config, epochs)
    if clean:
        log_end_offset = _end_offset(segments.active, known_end)
    else:
        log_end_offset = _recover(segments, recovery_point, config, epochs, environment, gaps)
    log_start_offset = max(log_start_offset, segments.first.base_offset)
    if log_start_offset > log_end_offset:
        # DeleteRecords had removed more than what survived: removed records must not reappear.
        segments, log_end_offset = _start_over(environment, segments, log_start_offset), log_start_offset
    epochs.truncate_from_end(log_end_offset)
    epochs.truncate_from_start(log_start_offset)
    producers = ProducerState(name)
    found = (offset_of(file) for file in names if file.endswith(SUFFIX))
    snapshots = SnapshotFiles(files, directory, (offset for offset in found if offset is not None))
    trusted = log_end_offset if clean else min(recovery_point, log_end_offset)
    begin = load_snapshot(environment, segments, snapshots, producers, log_start_offset, trusted)
    if not clean:
        for segment in segments:
            if segment.has_aborted_transactions:
                segment.transaction_index.keep_sound(segment.base_offset, begin)
    replay_producers(segments, producers, begin, log_end_offset)
    for stray in set(snapshots.offsets[:-1]).difference(segments.bases):
        snapshots.remove(stray)
    for number, segment in enumerate(segments):
        segment.synced = clean or segments.end_of(number, log_end_offset) < recovery_point
    return LoadedLog(segments, epochs, producers, snapshots, log_start_offset, log_end_offset, clean)


def _open_segments(
    environment: Environment, directory: str, names: dict[str, int], config: LogConfig, log_start_offset: int
) -> Segments:
    opened = []
    now_ms = environment.clock.now_ms()
    for name, size in names.items():
        offset = offset_of(name)
        if offset is None:
            continue
        stem = name[:20]
        if name == stem + ".log":
            segment = Segment(
                environment,
                directory,
                offset,
                created_ms=now_ms,
                size=size,
                offset_index_bytes=names.get(stem + ".index", 0),
                time_index_bytes=names.get(stem + ".timeindex", 0),
                transaction_index_bytes=names.get(stem + ".txnindex", 0),
            )
            # A missing index need not be created to be rebuilt: a full disk may have no room for it.
            segment.offset_index.has_file = stem + ".index" in names
            segment.time_index.has_file = stem + ".timeindex" in names
            opened.append(segment)
        elif name[20:] in INDEXES and stem + ".log" not in names:
            environment.files.remove(os.path.join(directory, name))
    if not opened:
        first = Segment(environment, directory, max(log_start_offset, 0), created_ms=now_ms)
        first.create_files(config.preallocate_bytes)
        opened.append(first)
        names.update({f"{first.base_offset:020d}{kind}": 0 for kind in (".log", ".index", ".timeindex")})
    return Segments(opened)


def _has_indexes(segment: Segment, names: dict[str, int]) -> bool:
    """Whether both indexes are there and could be right; looking at their last entries only."""
    stem = f"{segment.base_offset:020d}"
    offset_bytes, time_bytes = names.get(stem + ".index"), names.get(stem + ".timeindex")
    if offset_bytes is None or time_bytes is None:
        return False
    if offset_bytes % OFFSET_ENTRY.size or time_bytes % TIME_ENTRY.size:
        return False
    last, last_time = segment.offset_index.last(), segment.time_index.last()
    if last is not None and not (0 < last[1] < segment.size):
        return False
    if last_time is None:
        return True
    count = segment.time_index.count
    return last_time[0] > (segment.time_index.entry(count - 2)[0] if count > 1 else -1)


def _end_offset(active: Segment, known_end: tuple[int, int] | None) -> int:
    if known_end is not None and known_end[1] == active.size:
        return known_end[0]
    last = active.offset_index.last()
    end_offset = active.base_offset
    for _, header in active.headers(last[1] if last else 0):
        end_offset = header.next_offset
    return end_offset


def _recover(
    segments: Segments,
    recovery_point: int,
    config: LogConfig,
    epochs: LeaderEpochs,
    environment: Environment,
    gaps: bool,
) -> int:
    """Check every segment from the recovery point on and return the log's end offset."""
    number = segments.index_of(recovery_point)
    end_offset = segments[number].base_offset
    while number < len(segments):
        segment = segments[number]
        hole = segment.base_offset > end_offset and not gaps and segment is not segments.first
        if hole:
            logger.warning("%s begins after a hole at offset %d.", segment.path(".log"), end_offset)
            _drop_from(environment, segments, number)
            break
        size = segment.size
        end_offset = _recover_segment(segment, recovery_point, config, epochs)
        if segment.size < size:
            logger.warning(
                "Cut %s from %d to %d bytes: what followed was torn or damaged.",
                segment.path(".log"),
                size,
                segment.size,
            )
            _drop_from(environment, segments, number + 1)
            break
        number += 1
    return end_offset


def _drop_from(environment: Environment, segments: Segments, number: int) -> None:
    for segment in reversed([segments[i] for i in range(number, len(segments))]):
        logger.warning("Dropping %s, which follows a damaged part of the log.", segment.path(".log"))
        segments.remove(segment)
        discard(environment, segment, delay_ms=0)


def _start_over(environment: Environment, segments: Segments, offset: int) -> Segments:
    directory = segments.first.directory
    _drop_from(environment, segments, 0)
    first = Segment(environment, directory, offset, created_ms=environment.clock.now_ms())
    first.create_files()
    return Segments([first])


def _recover_segment(segment: Segment, recovery_point: int, config: LogConfig, epochs: LeaderEpochs) -> int:
    """Check a segment's batches from the recovery point on, rebuild its indexes, cut what is damaged."""
    full_size = segment.size
    start, offset_entries, time_entries = _trusted_start(segment, recovery_point)
    segment.restart(start, offset_entries, time_entries)
    end_offset = segment.base_offset
    for position, header, _ in segment.checked_batches(start, full_size):
        if header.base_offset < end_offset or header.last_offset - segment.base_offset > MAX_RELATIVE_OFFSET:
            break
        segment.note(
            position, header.size, header.last_offset, header.max_timestamp, config.index_interval_bytes
        )
        end_offset = header.next_offset
        if header.leader_epoch > epochs.latest:
            epochs.assign(header.leader_epoch, header.base_offset)
    if segment.size < full_size:
        segment.cut_partial_write()
    segment.index_max_timestamp()
    try:
        segment.offset_index.write()
        segment.time_index.write()
    except OSError as error:
        if error.errno not in FULL_DISK:  # The entries stay in memory until there is room.
            raise
    return end_offset


def _trusted_start(segment: Segment, recovery_point: int) -> tuple[int, int, int]:
    """The last indexed batch before the recovery point, if the indexes can be trusted: where checking begins, and how many
    entries of each index stay."""
    if recovery_point <= segment.base_offset or not segment.offset_index.count:
        return 0, 0, 0
    try:
        if not (segment.offset_index.is_sound() and segment.time_index.is_sound()):
            return 0, 0, 0
        last_time = segment.time_index.last()
        if last_time is None:
            return 0, 0, 0
        # The two files reach the disk each at its own time: what lies behind the last entry of the time index may
        # have a larger timestamp, so it is looked at again.
        entry = segment.offset_index.floor(min(recovery_point - 1 - segment.base_offset, last_time[1]))
        if entry is None or entry[1] >= segment.size:
            return 0, 0, 0
        relative, position = entry
        _, header = next(segment.headers(position, position + 1))
    except (OSError, KafkaError):
        return 0, 0, 0
    if header.last_offset - segment.base_offset != relative:
        return 0, 0, 0
    return (
        position,
        segment.offset_index.count_below(relative, 0),
        segment.time_index.count_below(relative, 1),
    )
