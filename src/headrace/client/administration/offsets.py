"""Offsets of partitions: the first, the next, by time; and deleting the records before one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from confluent_kafka import IsolationLevel, TopicPartition
from confluent_kafka.admin import OffsetSpec  # type: ignore[attr-defined]  # re-exported untyped

from headrace.client.administration.names import Partition
from headrace.client.administration.session import Session
from headrace.client.errors import BrokerError

EARLIEST: Any = OffsetSpec.earliest()  # type: ignore[no-untyped-call]
LATEST: Any = OffsetSpec.latest()  # type: ignore[no-untyped-call]
MAX_TIMESTAMP: Any = OffsetSpec.max_timestamp()  # type: ignore[no-untyped-call]


def earliest(session: Session, partitions: Sequence[Partition]) -> dict[Partition, int]:
    return all_of(list_offsets(session, partitions, EARLIEST))


def latest(session: Session, partitions: Sequence[Partition]) -> dict[Partition, int]:
    return all_of(list_offsets(session, partitions, LATEST))


def at(timestamp: int) -> Any:
    """A time in milliseconds, as something to ask `list_offsets` for."""
    return OffsetSpec.for_timestamp(timestamp)


def at_time(session: Session, partitions: Sequence[Partition], timestamp: int) -> dict[Partition, int | None]:
    """The first offset at or after a time in milliseconds; None where no record is that recent."""
    found = all_of(list_offsets(session, partitions, at(timestamp)))
    return {partition: None if offset < 0 else offset for partition, offset in found.items()}


def list_offsets(
    session: Session, partitions: Sequence[Partition], spec: Any, *, read_committed: bool = False
) -> tuple[dict[Partition, int], dict[Partition, BrokerError]]:
    """Offsets by partition, and refusals by partition. -1 stands for no such offset."""
    if not partitions:
        return {}, {}
    asked = {TopicPartition(topic, partition): spec for topic, partition in partitions}
    level = IsolationLevel.READ_COMMITTED if read_committed else IsolationLevel.READ_UNCOMMITTED
    futures = session.librdkafka.list_offsets(asked, isolation_level=level, **session.limits.request)
    answers, refusals = session.wait_for_all(
        futures, lambda each: f"asking for the offsets of {each.topic}-{each.partition}"
    )
    return (
        {(each.topic, each.partition): answer.offset for each, answer in answers.items()},
        {(each.topic, each.partition): refused for each, refused in refusals.items()},
    )


def newest(session: Session, partitions: Sequence[Partition]) -> dict[Partition, tuple[int, float]]:
    """Offset and time, in seconds since 1970, of the record with the latest timestamp; empty and refused partitions are left out."""
    if not partitions:
        return {}
    asked = {TopicPartition(topic, partition): MAX_TIMESTAMP for topic, partition in partitions}
    futures = session.librdkafka.list_offsets(asked, **session.limits.request)
    answers, _ = session.wait_for_all(
        futures, lambda each: f"asking for the newest record of {each.topic}-{each.partition}"
    )
    return {
        (each.topic, each.partition): (answer.offset, answer.timestamp / 1000)
        for each, answer in answers.items()
        if answer.offset >= 0 and answer.timestamp >= 0
    }


def delete_before(session: Session, before: Mapping[Partition, int]) -> dict[Partition, int | BrokerError]:
    """Delete the records below an offset (-1: below the high watermark). Returns the new first offset or the refusal."""
    request = [TopicPartition(topic, partition, offset) for (topic, partition), offset in before.items()]
    futures = session.librdkafka.delete_records(request, **session.limits.change)
    answers, refusals = session.wait_for_all(
        futures, lambda each: f"deleting records of {each.topic}-{each.partition}"
    )
    return {
        (each.topic, each.partition): refusals[each] if each in refusals else int(answers[each].low_watermark)
        for each in request
    }


def all_of(found: tuple[dict[Partition, int], dict[Partition, BrokerError]]) -> dict[Partition, int]:
    """What `list_offsets` found, when it found every one; raises the first refusal."""
    offsets, refusals = found
    for refused in refusals.values():
        raise refused
    return offsets
