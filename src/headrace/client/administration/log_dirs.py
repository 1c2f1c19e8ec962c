"""The log directories of brokers, what each holds, and moving replicas between those of one broker."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass

from headrace.client.administration.errors import Refused, check
from headrace.client.administration.names import Partition
from headrace.client.administration.session import Session
from headrace.wire.errors import ErrorCode
from headrace.wire.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from headrace.wire.messages.describe_log_dirs import DescribableLogDirTopic, DescribeLogDirsRequest

Place = tuple[str, int, int]
"""A replica: topic, partition and broker."""


@dataclass(frozen=True, slots=True)
class DirectoryMove:
    """A replica on its way to another directory of its broker, and the bytes it has there."""

    place: Place
    source: str | None
    target: str
    copied: int
    total: int


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
    """Of the volume; None where the broker does not say, as before Kafka 3.3."""
    usable_bytes: int | None = None


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


def move(session: Session, targets: Mapping[Place, str]) -> dict[Place, Refused]:
    """Ask brokers to bring replicas to these directories; returns the refusals."""
    refusals: dict[Place, Refused] = {}
    for broker in sorted({place[2] for place in targets}):
        directories: dict[str, dict[str, AlterReplicaLogDirTopic]] = {}
        for (topic, number, on), path in targets.items():
            if on == broker:
                topics = directories.setdefault(path, {})
                topics.setdefault(topic, AlterReplicaLogDirTopic(topic)).partitions.append(number)
        asked = [AlterReplicaLogDir(path, list(topics.values())) for path, topics in directories.items()]
        answer = session.call(AlterReplicaLogDirsRequest(asked), broker)
        refusals |= {
            (topic.topic_name, p.partition_index, broker): Refused(p.error_code)
            for topic in answer.results
            for p in topic.partitions
            if p.error_code
        }
    return refusals


def begin_moves(
    session: Session, targets: Mapping[Place, str], seconds: float, begun: Callable[[Place, str], None]
) -> dict[Place, Refused]:
    """The same for replicas that may still have to be made, which is waited for; returns what was refused in the end."""
    waiting = dict(targets)
    deadline = time.monotonic() + seconds
    while waiting:
        refusals = move(session, waiting)
        for place, path in sorted(waiting.items()):
            if place not in refusals:
                begun(place, path)
        final = {
            place: refused
            for place, refused in refusals.items()
            if refused.code != ErrorCode.REPLICA_NOT_AVAILABLE or time.monotonic() > deadline
        }
        if final:
            return final
        waiting = {place: waiting[place] for place in refusals}
        if waiting:
            time.sleep(0.1)
    return {}


def found(session: Session, places: Iterable[Place]) -> dict[Place, tuple[str | None, str | None]]:
    """The directory each replica is in, and the one it is on its way to."""
    wanted = set(places)
    where: dict[Place, tuple[str | None, str | None]] = dict.fromkeys(wanted, (None, None))
    for broker in sorted({place[2] for place in wanted}):
        partitions = [(topic, number) for topic, number, on in wanted if on == broker]
        for directory in describe(session, broker, partitions):
            for each in directory.replicas:
                place = (each.topic, each.partition, broker)
                here, coming = where.get(place, (None, None))
                where[place] = (here, directory.path) if each.is_future else (directory.path, coming)
    return where


def moves(session: Session) -> list[DirectoryMove]:
    """What is on its way between directories, anywhere in the cluster."""
    moving = []
    for node in session.nodes:
        directories = describe(session, node.id)
        for directory in directories:
            for each in directory.replicas:
                if each.is_future:
                    place = (each.topic, each.partition, node.id)
                    source, size = _current(directories, each)
                    moving.append(DirectoryMove(place, source, directory.path, each.size, size))
    return sorted(moving, key=lambda each: each.place)


def _current(directories: Iterable[LogDir], replica: Replica) -> tuple[str | None, int]:
    for directory in directories:
        for each in directory.replicas:
            if not each.is_future and (each.topic, each.partition) == (replica.topic, replica.partition):
                return directory.path, each.size
    return None, replica.size
