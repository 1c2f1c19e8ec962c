"""Replicas on their way to another data directory: the copies of logs, in directories named `<topic>-<partition>.<id>-future`.

A copy only ever holds a beginning of what its log holds. When it has everything it takes the log's place: then the directory
says so in a file of its own, because a crash may find the log already out of service and the copy not yet in it. What a crash
leaves, and what becomes of it when the broker starts again:

| the log | the copy | |
| --- | --- | --- |
| there | unfinished or finished | the copy goes on where it agrees with the log |
| gone | finished | the copy is the log |
| gone | unfinished | the copy is removed, unless the log may be in a directory that is offline |
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from headrace.server.log.agreement import agreed_end
from headrace.server.log.checkpoints import TopicPartition
from headrace.server.log.config import LogConfig
from headrace.server.log.directory import LogDirectory
from headrace.server.log.environment import Environment
from headrace.server.log.metadata import read_partition_metadata, write_partition_metadata
from headrace.server.log.partition import PartitionLog, ReopenFacts
from headrace.wire.errors import ErrorCode, KafkaError

logger = logging.getLogger(__name__)

FINISHED = "headrace-finished"
"""In the directory of a copy that has everything."""

_LONGEST_NAME = 255


@dataclass(slots=True, frozen=True)
class Found:
    """A copy as it is found on disk when the broker starts."""

    directory: LogDirectory
    path: str
    key: TopicPartition
    facts: ReopenFacts


class FutureLogs:
    def __init__(self, environment: Environment) -> None:
        self._environment = environment
        self._logs: dict[TopicPartition, PartitionLog] = {}
        self._found: list[Found] = []

    @property
    def logs(self) -> Mapping[TopicPartition, PartitionLog]:
        return self._logs

    def get(self, topic: str, partition: int) -> PartitionLog | None:
        return self._logs.get((topic, partition))

    def holds(self, copy: PartitionLog) -> bool:
        """Whether this copy is still wanted."""
        return self._logs.get((copy.topic, copy.partition)) is copy

    def inside(self, directory: LogDirectory) -> list[PartitionLog]:
        return [copy for copy in self._logs.values() if os.path.dirname(copy.directory) == directory.path]

    # When the broker starts

    def finish_interrupted(self, directories: Iterable[LogDirectory], *, all_online: bool) -> None:
        """Before logs are looked for: a finished copy whose log is out of service takes its place."""
        if not all_online:
            return
        directories, files = list(directories), self._environment.files
        for directory in directories:
            for path, topic, partition in directory.future_partitions():
                if not files.exists(os.path.join(path, FINISHED)):
                    continue
                if not any(files.exists(each.partition_path(topic, partition)) for each in directories):
                    target = directory.partition_path(topic, partition)
                    logger.info(
                        "%s-%d had been moved to %s before the last stop.", topic, partition, directory.path
                    )
                    files.rename(path, target)
                    self.clear_mark(target)

    def note(self, found: Found) -> None:
        self._found.append(found)

    def settle(self, logs: Mapping[TopicPartition, PartitionLog], *, all_online: bool) -> None:
        """After logs were found: open what was found of copies, and remove what belongs to no log."""
        for found in self._found:
            log = logs.get(found.key)
            try:
                if log is not None and found.key not in self._logs and self._is_of(found, log):
                    self._logs[found.key] = self._reopen(found, log)
                elif log is not None or all_online:
                    self._remove(found)
            except (KafkaError, OSError) as error:
                logger.error("The copy of %s-%d cannot go on: %s", *found.key, error)
                self._remove(found)
        self._found.clear()

    def _is_of(self, found: Found, log: PartitionLog) -> bool:
        files = self._environment.files
        return read_partition_metadata(files, found.path) == read_partition_metadata(files, log.directory)

    def _reopen(self, found: Found, log: PartitionLog) -> PartitionLog:
        self._environment.files.remove(os.path.join(found.path, FINISHED))
        copy = self._log(found.path, log, log.config, found.facts)
        copy.load()
        log.load()
        while True:
            copy.truncate_to(min(copy.log_end_offset, log.log_end_offset))
            epoch, end_offset = log.end_offset_for(copy.latest_epoch)
            if epoch < 0 or (agreed := agreed_end(copy, epoch, end_offset)) >= copy.log_end_offset:
                return copy
            copy.truncate_to(agreed)

    def _remove(self, found: Found) -> None:
        target = found.directory.deleted_path(*found.key)
        self._environment.files.rename(found.path, target)
        self._environment.trash.put(target, self._environment.clock.now_ms())

    # While it runs

    def create(self, log: PartitionLog, directory: LogDirectory) -> PartitionLog:
        """An empty copy; KAFKA_STORAGE_ERROR when it cannot be made."""
        path = directory.future_path(log.topic, log.partition)
        if len(os.path.basename(path)) > _LONGEST_NAME:
            raise KafkaError(
                ErrorCode.INVALID_TOPIC_EXCEPTION,
                f"The name of topic {log.topic} is too long for the directory of a replica on its way.",
            )
        files = self._environment.files
        try:
            files.make_directory(path)
            if log.topic_id is not None:
                write_partition_metadata(files, path, log.topic_id)
        except OSError as error:
            raise log.storage_error(f"a copy in {directory.path} cannot be made: {error}") from None
        copy = self._log(path, log, log.config, None)
        copy.load()
        copy.truncate_fully_and_start_at(log.log_start_offset)
        self._logs[log.topic, log.partition] = copy
        return copy

    def _log(
        self, path: str, log: PartitionLog, config: LogConfig, facts: ReopenFacts | None
    ) -> PartitionLog:
        copy = PartitionLog(self._environment, path, log.topic, log.partition, config, facts, log.topic_id)
        copy.was_compacted = True  # What it is made from may be, so gaps are no damage.
        return copy

    def discard(self, topic: str, partition: int, trash: Callable[[str], str]) -> None:
        """Stop a move and remove what has been copied; `trash` says where the directory goes."""
        copy = self._logs.pop((topic, partition), None)
        if copy is None:
            return
        target = trash(os.path.dirname(copy.directory))
        try:
            copy.retire_to(target, "the replica is not moved any more")
        except OSError as error:
            logger.warning("The copy of %s in %s could not be removed: %s.", copy.name, copy.directory, error)
            return
        self._environment.trash.put(target, self._environment.clock.now_ms())

    def forget(self, directory: LogDirectory) -> None:
        """The directory has failed: what was copied to it goes on when the broker starts again and the directory is back."""
        for copy in self.inside(directory):
            del self._logs[copy.topic, copy.partition]
            copy.retire("its data directory failed")

    def put_into_service(self, log: PartitionLog, copy: PartitionLog, aside: str, path: str) -> None:
        """The log goes on with the copy's files, under `path`; its own go to `aside`."""
        log.take_over(copy, aside, path)
        del self._logs[log.topic, log.partition]

    def mark_finished(self, copy: PartitionLog) -> None:
        """Say on disk that the copy has everything. Runs in a thread."""
        files = self._environment.files
        files.write_whole(os.path.join(copy.directory, FINISHED), b"", sync=True)
        files.sync_directory(os.path.dirname(copy.directory))

    def clear_mark(self, directory: str) -> None:
        """Of a copy that is in service now. Only when its new name is on the disk: under the old one it would be taken for
        unfinished, and removed. Runs in a thread."""
        files = self._environment.files
        files.sync_directory(os.path.dirname(directory))
        files.remove(os.path.join(directory, FINISHED))

    def mark_unfinished(self, copy: PartitionLog) -> None:
        self._environment.files.remove(os.path.join(copy.directory, FINISHED))
