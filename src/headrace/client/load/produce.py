"""Produces records as fast as the client can, or at a steady rate, and times every acknowledgement."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from headrace.client.administration.errors import refused_by_librdkafka, sentence
from headrace.client.errors import DeliveryError
from headrace.client.load.numbers import Latencies, LatencySummary, SteadyRate, Throughput

_CHUNK = 500
SETTINGS: Mapping[str, int] = {"queue.buffering.max.messages": 500_000}
"""For the producer."""


@dataclass(frozen=True, slots=True)
class Window:
    """What happened since the last report."""

    throughput: Throughput
    average_latency: float  # milliseconds
    max_latency: float


@dataclass(frozen=True, slots=True)
class Result:
    throughput: Throughput
    latency: LatencySummary


class _Reports:
    """Acknowledgements as they come in."""

    def __init__(self) -> None:
        self.latencies = Latencies()
        self.failed = 0
        self.failure: KafkaError | None = None
        self._progress = 0
        self._window = 0
        self._window_start = time.perf_counter()

    def delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is None:
            self.latencies.add(message.latency() or 0.0)
        else:
            self.failed += 1
            self.failure = self.failure or error

    def progress(self) -> int:
        """Acknowledged since the last call."""
        before, self._progress = self._progress, len(self.latencies)
        return self._progress - before

    def window(self, record_size: float) -> Window:
        now, recent = time.perf_counter(), self.latencies.since(self._window)
        elapsed, self._window_start = now - self._window_start, now
        self._window += len(recent)
        average = sum(recent) / len(recent) * 1000 if recent else 0.0
        throughput = Throughput(len(recent), round(len(recent) * record_size), elapsed)
        return Window(throughput, average, max(recent, default=0.0) * 1000)


@dataclass(frozen=True, slots=True)
class Load:
    """What to produce; `rate` is in records a second, None for as many as possible."""

    topic: str
    payloads: Iterator[bytes]
    count: int
    rate: float | None = None
    transaction_seconds: float | None = None
    """How long each transaction lasts; None for none."""
    window_seconds: float = 5.0


def run(
    producer: Producer,
    load: Load,
    on_progress: Callable[[int], object] = lambda _: None,
    on_window: Callable[[Window], object] = lambda _: None,
) -> Result:
    """Raises a ClientError if any record is not acknowledged."""
    transaction = _Transaction(producer, load.transaction_seconds)
    reports = _Reports()
    pace = SteadyRate(load.rate)
    sent = size = 0
    start = time.perf_counter()
    next_window = start + load.window_seconds
    while sent < load.count and reports.failure is None:
        wait = pace.wait_seconds(sent)
        producer.poll(max(0.0, wait))
        transaction.renew()
        # At a steady rate each record has its own moment; else the loop below should do nothing but send.
        chunk = list(islice(load.payloads, 1 if load.rate else min(_CHUNK, load.count - sent)))
        _send(producer, load.topic, chunk, reports)
        sent += len(chunk)
        size += sum(map(len, chunk))
        on_progress(reports.progress())
        if time.perf_counter() >= next_window:
            on_window(reports.window(size / sent))
            next_window += load.window_seconds
    transaction.finish()
    while producer.flush(0.2):
        on_progress(reports.progress())
        if reports.failure is not None:
            producer.purge()
    elapsed = time.perf_counter() - start
    if reports.failure is not None:
        raise DeliveryError(
            f"{reports.failed} records to '{load.topic}' were not written: {sentence(reports.failure)}",
            reports.failure.code(),
        )
    on_progress(reports.progress())
    return Result(Throughput(sent, size, elapsed), reports.latencies.summary())


def _send(producer: Producer, topic: str, chunk: list[bytes], reports: _Reports) -> None:
    produce, delivered = producer.produce, reports.delivered
    for payload in chunk:
        while True:
            try:
                produce(topic, payload, on_delivery=delivered)
                break
            except BufferError:
                producer.poll(0.01)
            except KafkaException as error:
                raise refused_by_librdkafka(error.args[0]) from None


class _Transaction:
    """Transactions of a given length around the records, or none."""

    def __init__(self, producer: Producer, seconds: float | None) -> None:
        self._producer = producer
        self._seconds = seconds
        self._began: float | None = None
        if seconds is not None:
            _asking(producer.init_transactions)

    def renew(self) -> None:
        """Commit a transaction that has lasted long enough, and make sure that one is open."""
        if self._seconds is None:
            return
        now = time.perf_counter()
        if self._began is not None and now - self._began >= self._seconds:
            self.finish()
        if self._began is None:
            _asking(self._producer.begin_transaction)
            self._began = now

    def finish(self) -> None:
        if self._began is not None:
            _asking(self._producer.commit_transaction)
            self._began = None


def _asking(call: Callable[[], object]) -> None:
    try:
        call()
    except KafkaException as error:
        raise refused_by_librdkafka(error.args[0]) from None
