"""Reads records as fast as the client can."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, TopicPartition

from headrace.client.administration.errors import refused_by_librdkafka
from headrace.client.load.numbers import Throughput

_BATCH = 10_000
SETTINGS: Mapping[str, str | int] = {"auto.offset.reset": "earliest", "queued.min.messages": 500_000}
"""For the consumer."""


@dataclass(frozen=True, slots=True)
class Load:
    """Up to `count` records of a topic: as a member of the consumer's group, or from the beginning of `partitions`."""

    topic: str
    count: int
    partitions: Sequence[tuple[str, int]] | None = None
    idle_timeout: float = 10.0
    """Seconds without a record after which the test ends early."""
    window_seconds: float = 5.0


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
    consumer: Consumer,
    load: Load,
    on_progress: Callable[[int], object] = lambda _: None,
    on_window: Callable[[Window], object] = lambda _: None,
) -> Result:
    """Closes the consumer."""
    joining = _Joining()
    started, start = time.time(), time.perf_counter()
    try:
        if load.partitions is None:
            consumer.subscribe([load.topic], on_assign=joining.assigned, on_revoke=joining.revoked)
        else:
            consumer.assign([TopicPartition(*each, OFFSET_BEGINNING) for each in load.partitions])
            joining.assigned()
        reading = _Reading(consumer, joining, start)
        while reading.records < load.count and not reading.is_idle(load.idle_timeout):
            on_progress(reading.read(load.count))
            if reading.window_age >= load.window_seconds:
                on_window(reading.window())
        ended, elapsed = time.time(), time.perf_counter() - start
    finally:
        consumer.close()
    return Result(Throughput(reading.records, reading.size, elapsed), started, ended, joining.seconds)


class _Reading:
    """What has been read: in all, and since the last report."""

    def __init__(self, consumer: Consumer, joining: _Joining, start: float) -> None:
        self._consumer = consumer
        self._joining = joining
        self._start = self._now = self._heard = start
        self.records = self.size = 0
        self._last = (start, 0, 0, 0.0)

    @property
    def window_age(self) -> float:
        return self._now - self._last[0]

    def is_idle(self, timeout: float) -> bool:
        return self._now - self._heard > timeout

    def read(self, count: int) -> int:
        """How many records came; waits a moment for the first."""
        got = self._consumer.consume(min(_BATCH, count - self.records), timeout=0.1)
        self._now = time.perf_counter()
        arrived = 0
        for message in got:
            error = message.error()
            if error is None:
                arrived += 1
                self.size += len(message.value() or b"") + len(message.key() or b"")
            elif error.code() != KafkaError._PARTITION_EOF and not error.retriable():
                raise refused_by_librdkafka(error)
        if arrived:
            self.records += arrived
            self._heard = self._now
        return arrived

    def window(self) -> Window:
        since, records, size, joining = self._last
        self._last = (self._now, self.records, self.size, self._joining.seconds)
        return Window(
            Throughput(self.records, self.size, self._now - self._start),
            Throughput(self.records - records, self.size - size, self._now - since),
            self._joining.seconds - joining,
        )
