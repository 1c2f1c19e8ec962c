"""Reads records as fast as the client can."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from confluent_kafka import Consumer, KafkaError, TopicPartition

from headrace.cli.cluster.connection import Cluster, Refused
from headrace.cli.load.numbers import Throughput

_BATCH = 10_000


@dataclass(frozen=True, slots=True)
class Window:
    total: Throughput  # since the start
    recent: Throughput  # since the last report
    joining_seconds: float  # of the recent time, spent on joining the group


@dataclass(frozen=True, slots=True)
class Result:
    throughput: Throughput
    started: float  # seconds since 1970
    ended: float
    joining_seconds: float


class _Joining:
    """How long the group took to give us partitions."""

    def __init__(self) -> None:
        self._since: float | None = time.perf_counter()
        self.seconds = 0.0

    def revoked(self, *_: object) -> None:
        self._since = time.perf_counter()

    def assigned(self, *_: object) -> None:
        if self._since is not None:
            self.seconds += time.perf_counter() - self._since
            self._since = None


def run(
    cluster: Cluster,
    topic: str,
    count: int,
    *,
    group: str | None,
    partitions: list[TopicPartition] | None = None,
    settings: Mapping[str, str | int | bool] | None = None,
    idle_timeout: float = 10.0,
    on_progress: Callable[[int], object] = lambda _: None,
    on_window: Callable[[Window], object] = lambda _: None,
    window_seconds: float = 5.0,
) -> Result:
    """Read up to `count` records: as a member of `group`, or from `partitions` directly. Stops early when none come."""
    joining = _Joining()
    started, start = time.time(), time.perf_counter()
    consumer = cluster.consumer(
        {
            "group.id": group or "headrace-perf",
            "enable.auto.commit": group is not None,
            "auto.offset.reset": "earliest",
            "queued.min.messages": 500_000,
            **(settings or {}),
        }
    )
    try:
        if partitions is None:
            consumer.subscribe([topic], on_assign=joining.assigned, on_revoke=joining.revoked)
        else:
            consumer.assign(partitions)
            joining.assigned()
        records, size = _read(
            consumer, count, start, joining, idle_timeout, on_progress, on_window, window_seconds
        )
        ended, elapsed = time.time(), time.perf_counter() - start
    finally:
        consumer.close()
    return Result(Throughput(records, size, elapsed), started, ended, joining.seconds)


def _read(
    consumer: Consumer,
    count: int,
    start: float,
    joining: _Joining,
    idle_timeout: float,
    on_progress: Callable[[int], object],
    on_window: Callable[[Window], object],
    window_seconds: float,
) -> tuple[int, int]:
    records = size = 0
    last, last_records, last_size, last_joining = start, 0, 0, 0.0
    heard = start
    while records < count:
        got = consumer.consume(min(_BATCH, count - records), timeout=0.1)
        now = time.perf_counter()
        arrived = 0
        for message in got:
            error = message.error()
            if error is None:
                arrived += 1
                size += len(message.value() or b"") + len(message.key() or b"")
            elif error.code() != KafkaError._PARTITION_EOF and not error.retriable():
                raise Refused(error)
        if arrived:
            records += arrived
            heard = now
            on_progress(arrived)
        elif now - heard > idle_timeout:
            break
        if now - last >= window_seconds:
            recent = Throughput(records - last_records, size - last_size, now - last)
            on_window(Window(Throughput(records, size, now - start), recent, joining.seconds - last_joining))
            last, last_records, last_size, last_joining = now, records, size, joining.seconds
    return records, size
