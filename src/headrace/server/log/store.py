"""The open state of one log: its segments, leader epochs and producers, changed together.

It exists only while a log is loaded. Every method keeps the three consistent, on disk too; it implements no policy.
"""

from __future__ import annotations

import os
import random
import threading
from collections.abc import Callable, Iterable
from functools import partial
from typing import TypeVar, TypeVarTuple

from headrace.server.log.config import LogConfig
from headrace.server.log.environment import Environment
from headrace.server.log.epochs import LeaderEpochs
from headrace.server.log.files import FULL_DISK
from headrace.server.log.leftovers import discard
from headrace.server.log.metadata import sync_partition_metadata
from headrace.server.log.producers import CompletedTransaction, ProducerState
from headrace.server.log.recovery import LoadedLog
from headrace.server.log.replay import last_headers, load_snapshot, replay_producers
from headrace.server.log.segment import Segment
from headrace.server.log.segments import Segments, SegmentView
from headrace.server.log.snapshot_files import SnapshotFiles
from headrace.server.log.snapshots import encode_snapshot
from headrace.server.log.transaction_index import AbortedTransaction

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


class LogStore:
    __slots__ = (
        "_environment",
        "_swapping",
        "active",
        "directory",
        "directory_synced",
        "epochs",
        "identity_synced",
        "name_synced",
        "producers",
        "segments",
        "snapshots",
        "swaps",
    )

    def __init__(self, environment: Environment, directory: str, loaded: LoadedLog) -> None:
        self._environment = environment
        self.directory = directory
        self.segments: Segments = loaded.segments
        self.epochs: LeaderEpochs = loaded.epochs
        self.producers: ProducerState = loaded.producers
        self.active: Segment = loaded.segments.active
        self.snapshots: SnapshotFiles = loaded.snapshots
        self.directory_synced = loaded.synced
        self.identity_synced = loaded.synced
        """The topic's id is on the disk."""
        self.name_synced = loaded.synced
        """The directory's name is."""
        self._swapping = threading.Lock()
        """Held while segment files are swapped or truncated."""
        self.swaps = 0
        """How often that has happened."""

    # Growing

    def roll(self, base_offset: int, config: LogConfig) -> Segment:
        """Begin a segment at `base_offset`. On an OSError nothing has changed, or only an empty segment is left over."""
        segment = self._create(base_offset, config, config.preallocate_bytes)
        try:
            self.take_snapshot(base_offset)
            self.active.seal()
        except OSError:
            segment.remove_files()
            raise
        before = self.active
        self._begin(segment)
        if before.size == 0:
            self.remove_first([before], 0)
        return segment

    def replace_active(self, base_offset: int, config: LogConfig, delay_ms: int) -> None:
        """Begin a segment at `base_offset` and take the active one out of service, nothing of which is wanted any more.
        That needs no more room than an empty file does, which a full disk has. On an OSError nothing has changed, or
        the old one is left in service before the new."""
        segment = self._create(base_offset, config, 0)
        try:
            self.take_snapshot(base_offset)
        except OSError as error:
            if (
                error.errno not in FULL_DISK
            ):  # Without it a crash loses producers that have no record left; a clean stop writes it.
                segment.remove_files()
                raise
        old = self.active
        self._begin(segment)
        self.remove_first([old], delay_ms)

    def _create(self, base_offset: int, config: LogConfig, preallocate: int) -> Segment:
        jitter = random.randrange(config.segment_jitter_ms) if config.segment_jitter_ms else 0
        segment = Segment(
            self._environment,
            self.directory,
            base_offset,
            created_ms=self._environment.clock.now_ms(),
            roll_jitter_ms=min(jitter, config.max_segment_ms),
        )
        segment.create_files(preallocate)
        return segment

    def _begin(self, segment: Segment) -> None:
        self.segments.add(segment)
        self.active = segment
        self.directory_synced = False

    def complete_transaction(self, completed: CompletedTransaction, last_stable_offset: int) -> None:
        if completed.aborted:
            self.active.transaction_index.append(
                AbortedTransaction(
                    completed.producer_id, completed.first_offset, completed.last_offset, last_stable_offset
                )
            )

    def take_snapshot(self, offset: int) -> None:
        """Write a snapshot of the producers, with the log ending at `offset`."""
        if offset not in self.snapshots:
            data = encode_snapshot(self.producers.entries.values())
            self.snapshots.write(offset, data, self.segments.bases)

    # Shrinking

    def truncate_to(self, offset: int, log_start_offset: int) -> int:
        """Remove everything from `offset` on; returns the end offset reached, the start of the batch cut
        through."""
        with self._swapping:
            end_offset = self._cut(offset)
            self.swaps += 1
        self.epochs.truncate_from_end(end_offset)
        self.snapshots.remove_after(end_offset)
        begin = load_snapshot(
            self._environment, self.segments, self.snapshots, self.producers, log_start_offset, end_offset
        )
        replay_producers(self.segments, self.producers, begin, end_offset)
        return end_offset

    def _cut(self, offset: int) -> int:
        number = self.segments.index_of(offset)
        # From the end, so that a crash on the way leaves a shorter log without a hole.
        for segment in reversed([self.segments[i] for i in range(number + 1, len(self.segments))]):
            self.segments.remove(segment)
            self._discard(segment, 0)
        self.active = self.segments.active
        return self.active.truncate_to(offset)

    def start_over(self, offset: int) -> None:
        """Remove everything and begin an empty log at `offset`."""
        segment = Segment(
            self._environment, self.directory, offset, created_ms=self._environment.clock.now_ms()
        )
        with self._swapping:
            for old in reversed(list(self.segments)):
                self.segments.remove(old)
                self._discard(old, 0)
            segment.create_files()
            self.segments.add(segment)
            self.swaps += 1
        self.active = segment
        self.directory_synced = False
        self.epochs.clear()
        self.producers.clear()
        self.snapshots.clear()

    def remove_first(self, segments: Iterable[Segment], delay_ms: int) -> None:
        """Take the oldest segments out of service. On an OSError those that still have their names are in service."""
        for segment in segments:
            self.segments.remove(segment)
            try:
                self._discard(segment, delay_ms)
            except OSError:
                if not segment.suffix:
                    self.segments.add(segment)
                raise
            if segment.base_offset in self.snapshots:
                self.snapshots.remove(segment.base_offset)

    def replace(self, old: list[Segment], new: Segment, delay_ms: int) -> None:
        """Serve a compacted segment instead of those it was made from.

        Its files have the suffix .swap, all of them on disk: from here on a crash finishes what this does. A thread that
        reads the segments meanwhile may find a file missing or replaced: `_unswapped_since` detects that.
        """
        new.know_timestamps()
        with self._swapping:
            for segment in old:
                self._discard(segment, delay_ms)
                if segment.base_offset != new.base_offset and segment.base_offset in self.snapshots:
                    self.snapshots.remove(segment.base_offset)
            new.rename("")
            self.segments.replace(old, [new])
            self.swaps += 1
        self.directory_synced = False

    def _discard(self, segment: Segment, delay_ms: int) -> None:
        discard(self._environment, segment, delay_ms=delay_ms)

    # Reading

    def look(self, into: Callable[[SegmentView, *Ts], T], *arguments: *Ts) -> T:
        """Look something up in the current segments. A thread may hit one that is being removed, replaced or truncated: then
        look again in those that are left."""
        while True:
            swaps, view = self.swaps, self.segments.view
            try:
                found = into(view, *arguments)
            except BlockingIOError:
                raise
            except Exception as error:
                if self._unswapped_since(swaps) and (
                    view is self.segments.view or not isinstance(error, FileNotFoundError)
                ):
                    raise
            else:
                if self._unswapped_since(swaps):
                    return found

    def _unswapped_since(self, swaps: int) -> bool:
        """Whether results read from the segments' files since `swaps` had this value can be trusted. Waits for the end of a
        swap or truncation that is under way."""
        if self._swapping.locked():
            with self._swapping:
                pass
        return swaps == self.swaps

    # Durability

    def sync(self, up_to: int) -> None:
        """Bring everything before `up_to` to the disk. Runs in a thread."""
        active = self.active
        for segment in self.segments:
            if segment.base_offset >= up_to or segment.synced:
                continue
            try:
                if segment is active:
                    segment.sync_log()
                else:
                    segment.sync()
            except FileNotFoundError:
                with self._swapping:
                    in_service = segment in self.segments
                if in_service:
                    raise
        if self.epochs.sync():
            self.directory_synced = False
        if not self.identity_synced:
            sync_partition_metadata(self._environment.files, self.directory)
            self.identity_synced = True
        if not self.directory_synced:
            self.directory_synced = True
            try:
                self._environment.files.sync_directory(self.directory)
            except OSError:
                self.directory_synced = False
                raise

    def sync_name(self) -> None:
        """Once, with the first flush. A clean stop does it for all logs together. Runs in a thread."""
        if not self.name_synced:
            self._environment.files.sync_directory(os.path.dirname(self.directory))
            self.name_synced = True

    def finish(self, log_start_offset: int, end_offset: int) -> None:
        """Flush everything, including what is only in memory, for a clean stop.

        A log that holds next to nothing gets no indexes and no snapshot for that: making files takes most of the time in
        which a broker with thousands of such logs stops, and reading a few batches when the log is next used takes none.
        """
        if not self._is_quickly_read(log_start_offset):
            self.take_snapshot(end_offset)
            self.active.seal()
            self.active.sync()
        self.sync(end_offset)

    def _is_quickly_read(self, log_start_offset: int) -> bool:
        """Everything that was ever written is here, in a few batches: indexes and producers can be made from them."""
        active = self.active
        return (
            self.segments.first is active
            and log_start_offset == active.base_offset == 0
            and not self.snapshots.offsets
            and active.is_quickly_indexed
            and not active.has_aborted_transactions
            and not active.preallocated
        )

    def release(self) -> None:
        """Close every file without writing anything."""
        for segment in self.segments:
            segment.close()

    def take_epochs_of(self, other: LogStore) -> None:
        """Know the epochs without records that another copy of this log knows."""
        self.epochs.adopt(other.epochs)

    def take_producers_of(self, other: LogStore, end_offset: int) -> None:
        """The same for producers without batches and transactions that are being verified. The other copy is not used any more."""
        self.producers = other.producers
        self.producers.look_back(partial(last_headers, self.segments, end_offset))

    def move(self, directory: str) -> None:
        """Follow a rename of the directory."""
        self.directory = directory
        self.epochs.move(directory)
        self.snapshots.move(directory)
        for segment in self.segments:
            segment.move(directory)
