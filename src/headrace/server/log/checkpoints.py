"""Small files about many partitions: one offset each, in Kafka's format, replaced as a whole."""

from __future__ import annotations

import os
from collections.abc import Mapping

from headrace.server.log.files import Files

RECOVERY_POINT = "recovery-point-offset-checkpoint"
HIGH_WATERMARK = "replication-offset-checkpoint"
LOG_START = "log-start-offset-checkpoint"
CLEANER = "cleaner-offset-checkpoint"

TopicPartition = tuple[str, int]


def read_checkpoint(files: Files, directory: str, name: str) -> dict[TopicPartition, int]:
    """The offsets in a checkpoint; none if it is missing or damaged, which only makes recovery look further back."""
    try:
        lines = files.read_whole(os.path.join(directory, name)).decode("utf-8", "replace").split("\n")
    except FileNotFoundError:
        return {}
    try:
        if int(lines[0]) != 0:
            return {}
        offsets = {}
        for line in lines[2 : 2 + int(lines[1])]:
            topic, partition, offset = line.rsplit(" ", 2)
            offsets[topic, int(partition)] = int(offset)
    except (ValueError, IndexError):
        return {}
    return offsets


def write_checkpoint(files: Files, directory: str, name: str, offsets: Mapping[TopicPartition, int]) -> None:
    lines = ["0", str(len(offsets))]
    lines += [f"{topic} {partition} {offset}" for (topic, partition), offset in offsets.items()]
    contents = "\n".join(lines) + "\n"
    files.write_whole(os.path.join(directory, name), contents.encode(), sync=True)
