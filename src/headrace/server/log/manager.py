"""The logs of one broker over its data directories: opening, creating, deleting, and the clean stop.

A directory that fails takes its own logs offline and no others. Work that waits for a disk while the broker runs is in
`maintenance`; opening and closing block, because nothing else runs then.
"""

from __future__ import annotations

import logging
import os
import uuid
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Executor, ThreadPoolExecutor

from headrace.server.log.checkpoints import (
    CLEANER,
    HIGH_WATERMARK,
    LOG_START,
    RECOVERY_POINT,
    TopicPartition,
    read_checkpoint,
    write_checkpoint,
)
from headrace.server.log.config import LogConfig
from headrace.server.log.directory import DirectoryInUse, LogDirectory
from headrace.server.log.environment import Environment
from headrace.server.log.files import FULL_DISK
from headrace.server.log.futures import Found, FutureLogs
from headrace.server.log.metadata import read_partition_metadata, write_partition_metadata
from headrace.server.log.partition import PartitionLog, ReopenFacts
from headrace.wire.errors import ErrorCode, KafkaError

logger = logging.getLogger(__name__)

RECOVERY_THREADS = 4
_CLOSING_THREADS = 32
"""Closing waits for fsyncs, and a file system finishes many that wait together in one go. One syncfs for all of them was tried:
it is several times slower where others write too, because it waits for their data."""

ConfigFor = Callable[[str], LogConfig]


def _load_quietly(log: PartitionLog) -> None:
    try:
        log.load()
    except KafkaError as error:
        logger.error("%s", error.message)
        if log.offline_reason is None:
            # Its end is unknown, and a leader epoch must not begin before that is known: it returns as a failed log
            # does.
            log.take_offline("it could not be opened")


def _close_quietly(log: PartitionLog) -> ReopenFacts:
    try:
        return log.close()
    except KafkaError as error:
        logger.error("%s", error.message)
        return ReopenFacts()


class LogManager:
    def __init__(
        self,
        directories: Iterable[str],
        *,
        environment: Environment | None = None,
        config_for: ConfigFor | None = None,
        recovery_threads: int = RECOVERY_THREADS,
        threads: Callable[[int, str], Executor] = ThreadPoolExecutor,
    ) -> None:
        """`config_for` gives the settings of a topic found on disk; `threads` starts so many of that name."""
        self._threads = threads
        self._recovery_threads = recovery_threads
        self.environment = environment or Environment()
        self._config_for: ConfigFor = config_for or (lambda topic: LogConfig())
        self.directories = [
            LogDirectory(self.environment.files, os.path.abspath(path)) for path in directories
        ]
        self._logs: dict[TopicPartition, PartitionLog] = {}
        self._by_directory: dict[str, dict[TopicPartition, PartitionLog]] = {
            directory.path: {} for directory in self.directories
        }
        self.futures = FutureLogs(self.environment)
        self._preferred: dict[TopicPartition, LogDirectory] = {}
        """Where logs that do not exist yet are to be created."""
        self._unmade: set[PartitionLog] = set()
        """Logs that do not exist on disk, because creating them failed."""

    # Opening

    def open(self) -> None:
        """Lock every directory and find its logs. After a clean stop none is scanned; after a crash each is
        recovered here. DirectoryInUse when another broker holds one; a directory that fails is left
        offline."""
        for directory in self.directories:
            try:
                directory.acquire()
            except DirectoryInUse:
                self.release()
                raise
            except OSError as error:
                self.directory_failed(directory, error)
        try:
            self.futures.finish_interrupted(self.online_directories, all_online=self._all_online)
        except OSError as error:
            logger.error("A replica that had been moved could not be put into service: %s.", error)
        for directory in self.online_directories:
            try:
                self._open_directory(directory)
            except OSError as error:
                self.directory_failed(directory, error)
        self.futures.settle(self._logs, all_online=self._all_online)
        if not self.online_directories:
            reasons = "; ".join(
                f"{directory.path}: {directory.offline_reason}" for directory in self.directories
            )
            self.release()
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"No data directory can be used ({reasons}).")

    def _open_directory(self, directory: LogDirectory) -> None:
        files = self.environment.files
        summary = directory.take_clean_stop()
        recovery_points = read_checkpoint(files, directory.path, RECOVERY_POINT)
        high_watermarks = read_checkpoint(files, directory.path, HIGH_WATERMARK)
        log_starts = read_checkpoint(files, directory.path, LOG_START)
        compacted = read_checkpoint(files, directory.path, CLEANER)
        for path in directory.deleted_partitions():
            self.environment.trash.put(path, self.environment.clock.now_ms())
        for path, since in directory.stray_partitions():
            self._put_stray(path, since)

        def known_of(key: TopicPartition) -> tuple[ReopenFacts, uuid.UUID | None]:
            return summary.get(key) or (
                ReopenFacts(
                    directory.clean,
                    recovery_points.get(key, 0),
                    log_starts.get(key, 0),
                    high_watermarks.get(key, 0),
                ),
                None,
            )

        for path, topic, partition in directory.future_partitions():
            self.futures.note(Found(directory, path, (topic, partition), known_of((topic, partition))[0]))
        unknown = []
        for key in directory.partitions(summary):
            if key in self._logs:
                logger.error("%s-%d is in two data directories; using %s.", *key, self._logs[key].directory)
                continue
            facts, topic_id = known_of(key)
            log = PartitionLog(
                self.environment,
                directory.partition_path(*key),
                *key,
                self._config_for(key[0]),
                facts,
                topic_id,
            )
            log.was_compacted = key in compacted
            self._add(directory, log)
            if facts.end is None:
                unknown.append(log)
        with self._threads(self._recovery_threads, "recovery") as executor:
            list(executor.map(_load_quietly, unknown))

    @property
    def online_directories(self) -> list[LogDirectory]:
        return [directory for directory in self.directories if directory.offline_reason is None]

    @property
    def _all_online(self) -> bool:
        return len(self.online_directories) == len(self.directories)

    def write_failed(self, directory: LogDirectory, error: OSError) -> None:
        """A checkpoint could not be written: on a full disk it waits for room, with the last one in force; any other
        failure is the directory's."""
        if error.errno in FULL_DISK:
            self.environment.note_full_disk(directory.path)
        else:
            self.directory_failed(directory, error)

    def directory_failed(self, directory: LogDirectory, error: OSError) -> None:
        """Take a directory and its logs out of service; the others stay in service."""
        reason = _reason(directory, error)
        directory.offline_reason = reason
        logger.error("Data directory %s goes offline: %s.", directory.path, reason)
        for log in self.logs_in(directory):
            log.take_offline(f"its data directory failed: {reason}")
        self.futures.forget(directory)

    # The logs

    @property
    def logs(self) -> Mapping[TopicPartition, PartitionLog]:
        return self._logs

    def get(self, topic: str, partition: int) -> PartitionLog | None:
        return self._logs.get((topic, partition))

    def holds(self, log: PartitionLog) -> bool:
        """Whether this log was neither deleted nor replaced by another of the same name."""
        return self._logs.get((log.topic, log.partition)) is log

    def logs_in(self, directory: LogDirectory) -> list[PartitionLog]:
        return list(self._by_directory[directory.path].values())

    def files_in(self, directory: LogDirectory) -> list[PartitionLog]:
        """The logs in a directory, and the copies of logs on their way there: what its checkpoints are about."""
        return [*self.logs_in(directory), *self.futures.inside(directory)]

    def directory_at(self, path: str) -> LogDirectory | None:
        wanted = os.path.abspath(path)
        return next((directory for directory in self.directories if directory.path == wanted), None)

    def prefer(self, topic: str, partition: int, directory: LogDirectory) -> None:
        """Create this log, which does not exist yet, in a certain directory."""
        self._preferred[topic, partition] = directory

    def stop_moving(self, topic: str, partition: int) -> None:
        """Remove the copy of a log that was on its way to another directory, if there is one."""
        self.futures.discard(topic, partition, lambda path: self._trash_path(path, topic, partition))

    def _trash_path(self, path: str, topic: str, partition: int) -> str:
        directory = next(each for each in self.directories if each.path == path)
        return directory.deleted_path(topic, partition)

    def put_into_service(self, log: PartitionLog, copy: PartitionLog) -> None:
        """Serve a log from its copy in another directory, which has everything; the files until now go after
        file.delete.delay.ms. KAFKA_STORAGE_ERROR ends the move: nothing of the copy is left that a later start could take for the log."""
        source = self.directory_of(log)
        target = next(each for each in self.directories if each.path == os.path.dirname(copy.directory))
        aside = source.deleted_path(log.topic, log.partition)
        try:
            self.futures.put_into_service(log, copy, aside, target.partition_path(log.topic, log.partition))
        except KafkaError as error:
            logger.error("%s stays where it is: %s", log.name, error.message)
            self.stop_moving(log.topic, log.partition)
            raise
        del self._by_directory[source.path][log.topic, log.partition]
        self._by_directory[target.path][log.topic, log.partition] = log
        self.environment.trash.put(aside, self.environment.clock.now_ms() + log.config.file_delete_delay_ms)

    def _add(self, directory: LogDirectory, log: PartitionLog) -> None:
        self._logs[log.topic, log.partition] = log
        self._by_directory[directory.path][log.topic, log.partition] = log

    def directory_of(self, log: PartitionLog) -> LogDirectory:
        parent = os.path.dirname(log.directory)
        return next(directory for directory in self.directories if directory.path == parent)

    def create(
        self, topic: str, partition: int, config: LogConfig, topic_id: uuid.UUID | None = None
    ) -> PartitionLog:
        """Create a partition's log in the directory preferred for it, or in that with the fewest, or return the existing one.

        If it cannot be created it is offline, and created when it is brought back.
        """
        known = self._logs.get((topic, partition))
        if known is not None:
            return known
        directory = self._preferred.pop((topic, partition), None) or self._emptiest()
        path = directory.partition_path(topic, partition)
        log = PartitionLog(self.environment, path, topic, partition, config, None, topic_id)
        self._add(directory, log)
        self._unmade.add(log)
        if directory.offline_reason is not None:
            log.take_offline(f"its data directory failed: {directory.offline_reason}")
            return log
        try:
            self._make(log)
            log.load()
        except KafkaError as error:
            logger.error("%s", error.message)
        return log

    def _emptiest(self) -> LogDirectory:
        online = self.online_directories or self.directories
        open_for_new = [directory for directory in online if not directory.cordoned] or online
        return min(open_for_new, key=lambda directory: len(self._by_directory[directory.path]))

    def bring_back(self, log: PartitionLog) -> None:
        """Try a log that is offline again; KAFKA_STORAGE_ERROR when the disk still refuses. May run in a thread."""
        if log in self._unmade:
            self._make(log)
        log.reopen()

    def _make(self, log: PartitionLog) -> None:
        files = self.environment.files
        try:
            if log.topic_id is not None:
                self._trash_older_topic(log, log.topic_id)
                files.make_directory(log.directory)
                write_partition_metadata(files, log.directory, log.topic_id)
            else:
                files.make_directory(log.directory)
        except OSError as error:
            raise log.fail(f"it cannot be created: {error}") from None
        self._unmade.discard(log)

    def _trash_older_topic(self, log: PartitionLog, topic_id: uuid.UUID) -> None:
        """Discard the files of an earlier topic of the same name whose deletion failed."""
        if read_partition_metadata(self.environment.files, log.directory) not in (None, topic_id):
            target = self.directory_of(log).deleted_path(log.topic, log.partition)
            self.environment.files.rename(log.directory, target)
            self.environment.trash.put(target, self.environment.clock.now_ms())

    def delete(self, topic: str, partition: int) -> None:
        """Take a partition out of service at once; its files go after file.delete.delay.ms."""
        self._preferred.pop((topic, partition), None)
        self.stop_moving(topic, partition)
        log = self._logs.get((topic, partition))
        if log is not None:
            target = self.directory_of(log).deleted_path(topic, partition)
            if self._remove_from_service(log, target):
                due = self.environment.clock.now_ms() + log.config.file_delete_delay_ms
                self.environment.trash.put(target, due)

    def set_aside(self, log: PartitionLog) -> None:
        """Take a partition that the cluster no longer knows of out of service; its files go much later."""
        self.stop_moving(log.topic, log.partition)
        now_ms = self.environment.clock.now_ms()
        target = self.directory_of(log).stray_path(log.topic, log.partition, now_ms)
        if self._remove_from_service(log, target):
            self._put_stray(target, now_ms)

    def _put_stray(self, path: str, since_ms: int) -> None:
        retention_ms = self.environment.stray_retention_ms
        if retention_ms >= 0:
            self.environment.trash.put(path, since_ms + retention_ms)

    def _remove_from_service(self, log: PartitionLog, target: str) -> bool:
        """Returns whether there were files, which have been renamed to `target`."""
        self.environment.rolled.discard(log.directory)
        del self._logs[log.topic, log.partition]
        del self._by_directory[self.directory_of(log).path][log.topic, log.partition]
        if log in self._unmade:
            self._unmade.discard(log)
            log.retire("the partition was deleted")
            return False
        try:
            log.retire_to(target, "the partition was deleted")
        except OSError as error:
            raise KafkaError(
                ErrorCode.KAFKA_STORAGE_ERROR, f"The log of {log.name} cannot be deleted: {error}."
            ) from None
        return True

    def topic_id_of(self, log: PartitionLog) -> uuid.UUID | None:
        if log.topic_id is None:
            log.topic_id = read_partition_metadata(self.environment.files, log.directory)
        return log.topic_id

    # Stopping

    def close(self) -> None:
        """Flush everything; the mark of a clean stop is written to the directories where that succeeded."""
        for directory in self.online_directories:
            logs = self.files_in(directory)
            with self._threads(_CLOSING_THREADS, "closing") as executor:
                facts = list(executor.map(_close_quietly, logs))
            summary = {
                (log.topic, log.partition): (fact, log.topic_id)
                for log, fact in zip(logs, facts, strict=True)
            }
            try:
                self.write_checkpoints(directory)
                if all(fact.clean for fact in facts):
                    directory.put_clean_stop(summary)
            except OSError as error:
                logger.error("Data directory %s could not be closed cleanly: %s.", directory.path, error)
        self.release()

    def write_checkpoints(self, directory: LogDirectory) -> None:
        files = self.environment.files
        logs = self.files_in(directory)
        for name, offsets in (
            (RECOVERY_POINT, {(log.topic, log.partition): log.recovery_point for log in logs}),
            (LOG_START, {(log.topic, log.partition): log.log_start_offset for log in logs}),
            (HIGH_WATERMARK, {(log.topic, log.partition): log.high_watermark for log in logs}),
        ):
            write_checkpoint(files, directory.path, name, offsets)

    def release(self) -> None:
        """Unlock the directories."""
        for directory in self.directories:
            directory.release()


__all__ = ["CLEANER", "LogManager"]


def _reason(directory: LogDirectory, error: OSError) -> str:
    if isinstance(error, FileExistsError | NotADirectoryError):
        return "it is a file, or lies below one, where a directory is needed"
    where = "" if error.filename in (None, directory.path) else f" ({error.filename})"
    return f"{error.strerror or error}{where}"
