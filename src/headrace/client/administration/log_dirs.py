"""The log directories of brokers, and what each holds."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from headrace.client.administration.errors import Refused, check
from headrace.client.administration.names import Partition
from headrace.client.administration.session import Session
from headrace.wire.messages.describe_log_dirs import DescribableLogDirTopic, DescribeLogDirsRequest


@dataclass(frozen=True, slots=True)
class Replica:
    topic: str
    partition: int
    size: int
    offset_lag: int
    is_future: bool
    """It is being moved to this directory and takes the place of another when it has caught up."""


@dataclass(frozen=True, slots=True)
class LogDir:
    path: str
    error: Refused | None
    replicas: list[Replica]
    total_bytes: int | None = None
    usable_bytes: int | None = None
    """Of the volume; None when the broker does not say (before Kafka 3.3)."""


def describe(session: Session, broker: int, partitions: Collection[Partition] | None = None) -> list[LogDir]:
    """The directories of a broker, with all replicas in them, or those of the partitions named."""
    asked: list[DescribableLogDirTopic] | None = None
    if partitions is not None:
        topics: dict[str, DescribableLogDirTopic] = {}
        for topic, number in partitions:
            topics.setdefault(topic, DescribableLogDirTopic(topic)).partitions.append(number)
        asked = list(topics.values())
    answer = session.call(DescribeLogDirsRequest(asked), broker)
    check(answer.error_code)
    return [
        LogDir(
            each.log_dir,
            Refused(each.error_code) if each.error_code else None,
            [
                Replica(topic.name, p.partition_index, p.partition_size, p.offset_lag, p.is_future_key)
                for topic in each.topics
                for p in topic.partitions
            ],
            each.total_bytes if each.total_bytes >= 0 else None,
            each.usable_bytes if each.usable_bytes >= 0 else None,
        )
        for each in answer.results
    ]
