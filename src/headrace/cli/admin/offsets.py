"""Offsets of partitions: the first, the next, by time; and forgetting what lies before one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from confluent_kafka import TopicPartition
from confluent_kafka.admin import OffsetSpec  # type: ignore[attr-defined]  # re-exported untyped

from headrace.cli.cluster.connection import TIMEOUT, Cluster, Refused

Partition = tuple[str, int]  # topic, partition
EARLIEST: Any = OffsetSpec.earliest()  # type: ignore[no-untyped-call]
LATEST: Any = OffsetSpec.latest()  # type: ignore[no-untyped-call]
MAX_TIMESTAMP: Any = OffsetSpec.max_timestamp()  # type: ignore[no-untyped-call]


def earliest(cluster: Cluster, partitions: Sequence[Partition]) -> dict[Partition, int]:
    return _all(list_offsets(cluster, partitions, EARLIEST))


def latest(cluster: Cluster, partitions: Sequence[Partition]) -> dict[Partition, int]:
    return _all(list_offsets(cluster, partitions, LATEST))


def at(timestamp: int) -> Any:
    """A time in milliseconds, as something to ask `list_offsets` for."""
    return OffsetSpec.for_timestamp(timestamp)


def at_time(cluster: Cluster, partitions: Sequence[Partition], timestamp: int) -> dict[Partition, int | None]:
    """The first offset at or after a time in milliseconds; None where nothing that young is there."""
    found = _all(list_offsets(cluster, partitions, at(timestamp)))
    return {partition: None if offset < 0 else offset for partition, offset in found.items()}


def list_offsets(
    cluster: Cluster, partitions: Sequence[Partition], spec: Any
) -> tuple[dict[Partition, int], dict[Partition, Refused]]:
    """Offsets by partition, and refusals by partition. -1 stands for no such offset."""
    if not partitions:
        return {}, {}
    asked = {TopicPartition(topic, partition): spec for topic, partition in partitions}
    answers, refusals = cluster.ask_all(cluster.admin.list_offsets(asked, request_timeout=TIMEOUT))
    return (
        {(tp.topic, tp.partition): answer.offset for tp, answer in answers.items()},
        {(tp.topic, tp.partition): refused for tp, refused in refusals.items()},
    )


def delete_before(cluster: Cluster, before: Mapping[Partition, int]) -> dict[Partition, int | Refused]:
    """Forget records below an offset (-1: below the high watermark). Returns the new first
    offset or the refusal."""
    request = [TopicPartition(topic, partition, offset) for (topic, partition), offset in before.items()]
    futures = cluster.admin.delete_records(request, request_timeout=TIMEOUT, operation_timeout=TIMEOUT)
    answers, refusals = cluster.ask_all(futures)
    result: dict[Partition, int | Refused] = {}
    for tp in request:
        outcome = refusals[tp] if tp in refusals else int(answers[tp].low_watermark)
        result[tp.topic, tp.partition] = outcome
    return result


def _all(found: tuple[dict[Partition, int], dict[Partition, Refused]]) -> dict[Partition, int]:
    offsets, refusals = found
    for refused in refusals.values():
        raise refused
    return offsets
