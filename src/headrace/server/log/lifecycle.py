"""The life of one partition's log: loading it when it is first touched, failing, flushing, closing.

Its state belongs to the event loop; only a FlushJob's `run` may be called in a thread. After an I/O error
other than a full disk the log is offline, every call raises KAFKA_STORAGE_ERROR, and `reopen` goes through
recovery.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import threading
import uuid
from dataclasses import dataclass

from headrace.server.log.config import LogConfig
from headrace.server.log.environment import Environment
from headrace.server.log.files import FULL_DISK
from headrace.server.log.producers import AppendOrigin
from headrace.server.log.recovery import LoadedLog, load_log
from headrace.server.log.snapshots import encode_snapshot
from headrace.server.log.store import LogStore
from headrace.server.log.validation import needs_inspection
from headrace.wire.errors import ErrorCode, KafkaError

logger = logging.getLogger(__name__)

_LOADING = [threading.RLock() for _ in range(64)]
_PASSING = {errno.EMFILE, errno.ENFILE, errno.ENOMEM}
"""The process or machine ran out of something other than disk; the log itself is sound."""


@dataclass(slots=True, frozen=True)
class ReopenFacts:
    """What is known of a log before it is loaded: from the checkpoints, or from the summary of a clean
    stop."""

    clean: bool = False
    recovery_point: int = 0
    log_start_offset: int = 0
    high_watermark: int = 0
    end: tuple[int, int] | None = None
    """End offset and size of the active segment, when the log was closed by us."""


class LogLifecycle:
    __slots__ = (
        "_high_watermark",
        "_inspect",
        "_known_end",
        "_max_index_entries",
        "_offline",
        "_opened_clean",
        "_roll_timestamp",
        "_store",
        "config",
        "directory",
        "environment",
        "last_flush_ms",
        "log_end_offset",
        "log_start_offset",
        "partition",
        "recovery_point",
        "topic",
        "topic_id",
        "truncations",
        "was_compacted",
    )

    def __init__(
        self,
        environment: Environment,
        directory: str,
        topic: str,
        partition: int,
        config: LogConfig,
        facts: ReopenFacts | None = None,
        topic_id: uuid.UUID | None = None,
    ) -> None:
        if facts is None:
            facts = ReopenFacts()
        self.environment = environment
        self.directory = directory
        self.topic = topic
        self.partition = partition
        self.topic_id = topic_id
        self.log_start_offset = facts.log_start_offset
        self.log_end_offset = facts.end[0] if facts.end else facts.recovery_point
        self.recovery_point = facts.recovery_point
        """Everything before this offset is on the disk."""
        self._high_watermark = facts.high_watermark
        self._opened_clean = facts.clean
        self._known_end = facts.end
        self._store: LogStore | None = None
        self._offline: str | None = None
        self.truncations = 0
        """How often records were removed from the end, or may have been by a failure."""
        self.was_compacted = False
        """Compaction has left gaps between segments, or may have: recovery must not take them for damage."""
        self.last_flush_ms = environment.clock.now_ms()
        self.update_config(config)

    @property
    def name(self) -> str:
        return f"{self.topic}-{self.partition}"

    def update_config(self, config: LogConfig) -> None:
        self.config = config
        self._inspect = {origin for origin in AppendOrigin if needs_inspection(config, origin)}
        self._max_index_entries = max(config.segment_index_bytes // 12 - 1, 1)
        self._roll_timestamp = -2

    # Loading and failing

    def load(self) -> LogStore:
        """Open the directory if that has not happened yet."""
        with self._loading:
            store = self._store
            if store is not None:
                return store
            if self._offline is not None:
                raise self.storage_error(self._offline)
            return self._adopt(self._read_directory())

    @property
    def _loading(self) -> threading.RLock:
        """Held while a directory is opened, which a thread may do while the loop first touches the log."""
        return _LOADING[hash(self.directory) % len(_LOADING)]

    def _read_directory(self) -> LoadedLog:
        try:
            return load_log(
                self.environment,
                self.directory,
                self.name,
                self.config,
                clean=self._opened_clean,
                recovery_point=self.recovery_point,
                log_start_offset=self.log_start_offset,
                known_end=self._known_end,
                distrust_cache=self._offline is not None,
                gaps=self.was_compacted or self.config.compact,
            )
        except OSError as error:
            raise self.read_failed(error) from None

    def _adopt(self, loaded: LoadedLog) -> LogStore:
        self.log_start_offset = loaded.log_start_offset
        self.log_end_offset = loaded.log_end_offset
        self._high_watermark = min(max(self._high_watermark, self.log_start_offset), self.log_end_offset)
        self.recovery_point = min(self.recovery_point, self.log_end_offset)
        self._opened_clean = False
        self._known_end = None
        self._roll_timestamp = -2
        self._offline = None
        self._store = store = LogStore(self.environment, self.directory, loaded)
        # The checkpoint's may be the last for long; nothing else would tell which of the ended transactions are stable.
        store.producers.on_high_watermark(self._high_watermark)
        return store

    @property
    def is_loaded(self) -> bool:
        return self._store is not None

    def serves(self, store: LogStore) -> bool:
        """Whether this is what the log reads and writes now: not after it failed, was closed or was deleted."""
        return self._store is store

    @property
    def offline_reason(self) -> str | None:
        return self._offline

    def take_offline(self, reason: str) -> None:
        """Refuse everything from now on, until `reopen`."""
        self.fail(reason)

    def reopen(self) -> None:
        """Bring an offline log back through recovery; KAFKA_STORAGE_ERROR when the disk still refuses.

        May run in a thread: until it has succeeded, everybody else is refused.
        """
        with self._loading:
            if self._offline is None:
                return
            self._opened_clean = False
            self._adopt(self._read_directory())
        logger.info("%s is back online with end offset %d.", self.name, self.log_end_offset)

    def fail(self, reason: str) -> KafkaError:
        """Take the log offline; returns the error to raise."""
        if self._offline is None:
            logger.error("%s goes offline: %s.", self.name, reason)
        self.retire(reason)
        return self.storage_error(reason)

    def retire(self, reason: str) -> LogStore | None:
        """Refuse everything from now on, as something expected; returns what was open."""
        self._offline = reason
        self.truncations += 1
        store, self._store = self._store, None
        if store is not None:
            store.release()
        return store

    def retire_to(self, directory: str, reason: str) -> None:
        """Refuse everything from now on and rename the directory. A thread that reads may go on; one whose write fails
        after this does not take the log offline."""
        store = self.retire(reason)
        self.environment.files.rename(self.directory, directory)
        self.directory = directory
        if store is not None:
            store.move(directory)

    def storage_error(self, reason: str) -> KafkaError:
        return KafkaError(
            ErrorCode.KAFKA_STORAGE_ERROR, f"{self.name} in {self.directory} is offline: {reason}."
        )

    def passing_error(self, error: OSError) -> KafkaError:
        return KafkaError(
            ErrorCode.KAFKA_STORAGE_ERROR,
            f"{self.name} cannot be used right now: {error.strerror}. Raise the limit of open files (ulimit -n).",
        )

    def read_failed(self, error: OSError) -> KafkaError:
        """Take the log offline unless the error has nothing to do with the disk; returns the error to
        raise."""
        if error.errno in _PASSING:
            return self.passing_error(error)
        return self.fail(f"reading failed: {error}")

    def write_failed(self, store: LogStore, error: OSError) -> KafkaError:
        """Undo a write that may succeed another time, or take the log offline; returns the error to raise."""
        if error.errno not in _PASSING and error.errno not in FULL_DISK:
            return self.fail(f"writing failed: {error}")
        if store.active.torn:
            try:
                store.active.cut_partial_write()
            except OSError as second:
                return self.fail(f"a partial write cannot be undone: {second}")
        if error.errno in _PASSING:
            return self.passing_error(error)
        self.environment.note_full_disk(os.path.dirname(self.directory))
        return KafkaError(
            ErrorCode.KAFKA_STORAGE_ERROR,
            f"No room is left on the disk of {self.directory} for {self.name}; free some and try again.",
        )

    # Durability and life

    @property
    def must_flush(self) -> bool:
        """flush.messages asks that what was appended reach the disk before it is acknowledged."""
        return self.log_end_offset - self.recovery_point >= self.config.flush_messages

    @property
    def wants_snapshot(self) -> bool:
        """The log was flushed inside its active segment, so that recovery would have to read back to the
        segment's start to know its producers."""
        store = self._store
        return store is not None and store.active.base_offset < self.recovery_point < self.log_end_offset

    def prepare_flush(self, *, snapshot: bool = False) -> FlushJob:
        """On the event loop: note what a flush covers. With `snapshot`, the producers' state is saved with
        it, so that recovery from this point need not look further back."""
        store = self._store or self.load()
        with contextlib.suppress(
            OSError
        ):  # An index on a full disk is caught up later; the log is what counts.
            store.active.write_indexes()
        data = encode_snapshot(store.producers.entries.values()) if snapshot else None
        return FlushJob(self, store, self.log_end_offset, self.truncations, data)

    def flush(self) -> int:
        """Bring everything to the disk; returns the recovery point then. May run in a thread."""
        return self.prepare_flush().run()

    def flushed(self, up_to: int, truncations: int) -> None:
        """A flush has succeeded; one that a truncation overtook counts for nothing."""
        if truncations == self.truncations and up_to > self.recovery_point:
            self.recovery_point = up_to
        self.last_flush_ms = self.environment.clock.now_ms()

    def close(self) -> ReopenFacts:
        """Write everything to the disk and let go of it; returns what to remember for a quick start."""
        if self._store is None:
            return ReopenFacts(
                self._offline is None and self._opened_clean,
                self.recovery_point,
                self.log_start_offset,
                self._high_watermark,
                self._known_end,
            )
        store = self._store
        try:
            store.finish(self.log_start_offset, self.log_end_offset)
        except OSError as error:
            raise self.fail(f"it cannot be closed: {error}") from None
        self.recovery_point = self.log_end_offset
        end = (self.log_end_offset, store.active.size)
        store.release()
        self._store = None
        self._opened_clean, self._known_end = True, end
        return ReopenFacts(True, self.log_end_offset, self.log_start_offset, self._high_watermark, end)


@dataclass(slots=True)
class FlushJob:
    """One flush: made on the event loop, run in a thread."""

    log: LogLifecycle
    store: LogStore
    up_to: int
    truncations: int
    snapshot: bytes | None

    def run(self) -> int:
        try:
            if self.up_to > self.log.recovery_point:
                self.store.sync(self.up_to)
            self._write_snapshot()
        except OSError as error:
            if self.log.serves(self.store):
                # After a failed fsync nobody knows what the disk has: only recovery can tell.
                self.log.take_offline(f"bringing it to the disk failed: {error}")
            raise KafkaError(
                ErrorCode.KAFKA_STORAGE_ERROR, f"{self.log.name} could not be flushed: {error}."
            ) from None
        self.log.flushed(self.up_to, self.truncations)
        return self.log.recovery_point

    def _write_snapshot(self) -> None:
        if self.snapshot is None:
            return
        try:
            self.store.snapshots.write_durably(
                self.up_to, self.snapshot, self.store.segments.bases, self._is_current
            )
        except OSError as error:
            if error.errno not in FULL_DISK:  # Without it recovery reads further back, that is all.
                raise

    def _is_current(self) -> bool:
        """Nothing was cut off since; the log may have reached this offset again with other records."""
        return self.log.truncations == self.truncations
