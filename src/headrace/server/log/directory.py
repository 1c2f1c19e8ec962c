"""One data directory: its lock, its meta.properties, its checkpoints, and the mark of a clean stop.

After a clean stop a summary beside Kafka's mark says where every log ended, so that opening the directory
reads one file however many partitions it holds. Mark and summary are removed, for good, before anything
else is written.
"""

from __future__ import annotations

import json
import logging
import os
import re
import threading
import uuid
import zlib
from collections.abc import Callable, Mapping

from headrace.server.log.checkpoints import TopicPartition
from headrace.server.log.files import FileHandle, Files
from headrace.server.log.leftovers import offset_of
from headrace.server.log.life import ReopenFacts
from headrace.server.log.metadata import decode_uuid, encode_uuid

logger = logging.getLogger(__name__)

LOCK = ".lock"
META = "meta.properties"
CLEAN_STOP = ".kafka_cleanshutdown"
KRAFT_METADATA = "__cluster_metadata"
"""Where Apache Kafka keeps the cluster's metadata; not one of our partitions."""

PROBE = ".headrace-probe"
SUMMARY = "headrace-clean-stop-summary"
DELETE_SUFFIX = "-delete"
STRAY_SUFFIX = "-stray"
FUTURE_SUFFIX = "-future"

_PARTITION = re.compile(r"(?P<topic>[a-zA-Z0-9._-]{1,249})-(?P<partition>[0-9]{1,9})")
_DELETED = re.compile(r".+-[0-9]+\.[0-9a-f]{32}-delete")
_FUTURE = re.compile(_PARTITION.pattern + r"\.[0-9a-f]{32}-future")
_STRAY = re.compile(r".+-[0-9]+\.[0-9a-f]{32}\.(?P<since>[0-9]+)-stray")


class DirectoryInUse(OSError):
    """Another broker holds the data directory."""


class LogDirectory:
    def __init__(self, files: Files, path: str) -> None:
        self.files = files
        self.path = path
        self.offline_reason: str | None = None
        self.cordoned = False
        """No new logs are created in it (`cordoned.log.dirs`)."""
        self.clean = False
        """The last stop was clean."""
        self._lock: FileHandle | None = None
        self._changing_meta = threading.Lock()

    def acquire(self) -> None:
        """Make the directory if need be and lock it for this process."""
        self.files.make_directory(self.path)
        handle = self.files.open(os.path.join(self.path, LOCK), writable=True, create=True)
        try:
            handle.lock()
        except BlockingIOError:
            raise DirectoryInUse(
                f"Data directory {self.path} is held by another broker; stop it or choose another directory."
            ) from None
        self._lock = handle

    def release(self) -> None:
        self._lock = None

    @property
    def is_held(self) -> bool:
        return self._lock is not None

    def probe(self) -> None:
        """Write and sync a small file; OSError when the directory cannot be used."""
        path = os.path.join(self.path, PROBE)
        self.files.write_whole(path, b"", sync=True)
        self.files.remove(path)

    def take_clean_stop(self) -> dict[TopicPartition, tuple[ReopenFacts, uuid.UUID | None]]:
        """Read whether the last stop was clean (`clean`) and its summary, and remove both from disk."""
        mark = os.path.join(self.path, CLEAN_STOP)
        summary: dict[TopicPartition, tuple[ReopenFacts, uuid.UUID | None]] = {}
        self.clean = self.files.exists(mark)
        if self.clean:
            summary = self._read_summary()
            self.files.remove(mark)
        self.files.remove(os.path.join(self.path, SUMMARY))
        self.files.sync_directory(self.path)
        return summary

    def put_clean_stop(self, logs: Mapping[TopicPartition, tuple[ReopenFacts, uuid.UUID | None]]) -> None:
        """Write the summary and, after it, the mark."""
        rows = [
            [
                topic,
                partition,
                facts.log_start_offset,
                facts.high_watermark,
                *(facts.end or (None, None)),
                encode_uuid(topic_id) if topic_id else None,
            ]
            for (topic, partition), (facts, topic_id) in logs.items()
        ]
        body = json.dumps({"version": 1, "logs": rows}, separators=(",", ":")).encode()
        contents = b"%08x\n%s" % (zlib.crc32(body), body)
        self.files.write_whole(os.path.join(self.path, SUMMARY), contents, sync=True)
        self.files.write_whole(
            os.path.join(self.path, CLEAN_STOP), b'{"version":0,"brokerEpoch":-1}', sync=True
        )

    def _read_summary(self) -> dict[TopicPartition, tuple[ReopenFacts, uuid.UUID | None]]:
        """Empty if the summary is missing or damaged: the logs are then opened one by one."""
        try:
            contents = self.files.read_whole(os.path.join(self.path, SUMMARY))
            crc, _, body = contents.partition(b"\n")
            if int(crc, 16) != zlib.crc32(body):
                return {}
            rows = json.loads(body)["logs"]
            return {
                (topic, partition): (
                    ReopenFacts(
                        True,
                        end_offset if end_offset is not None else 0,
                        log_start,
                        high_watermark,
                        (end_offset, size) if end_offset is not None else None,
                    ),
                    decode_uuid(topic_id) if topic_id else None,
                )
                for topic, partition, log_start, high_watermark, end_offset, size, topic_id in rows
            }
        except (OSError, ValueError, KeyError, TypeError):
            return {}

    def partitions(self, known: Mapping[TopicPartition, object]) -> list[TopicPartition]:
        """The partitions in the directory. A folder that only looks like one is left alone."""
        found = []
        for name in self.files.list_directories(self.path):
            match = _PARTITION.fullmatch(name)
            if match is None or match["topic"] == KRAFT_METADATA:
                continue
            key = (match["topic"], int(match["partition"]))
            if key in known or self._is_partition(name):
                found.append(key)
            else:
                logger.warning("Leaving %s alone: it holds no log.", os.path.join(self.path, name))
        return found

    def _is_partition(self, name: str) -> bool:
        names = self.files.list(os.path.join(self.path, name))
        return not names or any(
            file == "partition.metadata" or (file.endswith(".log") and offset_of(file) is not None)
            for file in names
        )

    def deleted_partitions(self) -> list[str]:
        """Paths of partitions that were being deleted when the broker stopped."""
        return [
            os.path.join(self.path, name)
            for name in self.files.list_directories(self.path)
            if _DELETED.fullmatch(name)
        ]

    def partition_path(self, topic: str, partition: int) -> str:
        return os.path.join(self.path, f"{topic}-{partition}")

    def deleted_path(self, topic: str, partition: int) -> str:
        """Where a partition's directory goes when it is deleted: Kafka's name, within the length of a file
        name."""
        return self._renamed(topic, f"-{partition}.{uuid.uuid4().hex}{DELETE_SUFFIX}")

    def stray_partitions(self) -> list[tuple[str, int]]:
        """Paths of partitions that were set aside, and when that was (ms)."""
        found = ((name, _STRAY.fullmatch(name)) for name in self.files.list_directories(self.path))
        return [(os.path.join(self.path, name), int(match["since"])) for name, match in found if match]

    def stray_path(self, topic: str, partition: int, now_ms: int) -> str:
        """The new path of a partition's directory that the cluster no longer knows."""
        return self._renamed(topic, f"-{partition}.{uuid.uuid4().hex}.{now_ms}{STRAY_SUFFIX}")

    def future_partitions(self) -> list[tuple[str, str, int]]:
        """Path, topic and partition of replicas that were on their way here."""
        found = ((name, _FUTURE.fullmatch(name)) for name in self.files.list_directories(self.path))
        return [
            (os.path.join(self.path, name), match["topic"], int(match["partition"]))
            for name, match in found
            if match
        ]

    def future_path(self, topic: str, partition: int) -> str:
        """Where a replica is copied to: a name of Kafka's, which may be longer than a file name can be."""
        return os.path.join(self.path, f"{topic}-{partition}.{uuid.uuid4().hex}{FUTURE_SUFFIX}")

    def _renamed(self, topic: str, suffix: str) -> str:
        return os.path.join(self.path, topic[: 255 - len(suffix)] + suffix)

    def read_meta(self) -> dict[str, str]:
        """meta.properties; empty when there is none."""
        try:
            text = self.files.read_whole(os.path.join(self.path, META)).decode("utf-8", "replace")
        except FileNotFoundError:
            return {}
        pairs = (line.partition("=") for line in text.splitlines() if not line.startswith("#"))
        return {name.strip(): value.strip() for name, separator, value in pairs if separator}

    def update_meta(self, change: Callable[[dict[str, str]], Mapping[str, str]]) -> None:
        """Replace meta.properties by what `change` makes of it; one thread at a time."""
        with self._changing_meta:
            self.write_meta(change(self.read_meta()))

    def write_meta(self, properties: Mapping[str, str]) -> None:
        lines = ["#", *(f"{name}={value}" for name, value in sorted(properties.items()))]
        contents = "\n".join(lines) + "\n"
        self.files.write_whole(os.path.join(self.path, META), contents.encode(), sync=True)
