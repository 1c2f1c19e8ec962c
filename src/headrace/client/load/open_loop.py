"""Records at a steady rate through a topic, each timed from the moment at which it was due.

An open loop: when the cluster is slow, records stay due at their own moments and their waiting counts, so that a stall of a second
delays every record that was due in it (no coordinated omission).
"""

from __future__ import annotations

import os
import struct
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer

from headrace.client.administration.errors import refused_by_librdkafka, sentence
from headrace.client.load.end_to_end import start_at_end
from headrace.client.load.numbers import Latencies, LatencySummary

Delivered = Callable[[KafkaError | None, Message], None]

_STAMP = struct.Struct(">16sId")  # this run's mark, the step, and when the record was due (perf_counter, s)
SMALLEST = _STAMP.size
_BATCH = 1_000
_LEAD = 0.05
"""Seconds until the first record is due."""
_LATE = 0.01
"""Part of the records that may be sent late by the client itself."""
_FLUSH = 10.0

PRODUCER: Mapping[str, int] = {"queue.buffering.max.messages": 500_000}
CONSUMER: Mapping[str, str | int | bool] = {
    "group.id": "headrace-perf",
    "enable.auto.commit": False,
    "queued.min.messages": 100_000,
}


@dataclass(frozen=True, slots=True)
class Bound:
    """What is tolerated: so many seconds at a percentile."""

    share: float
    seconds: float
    name: str
    """As the user wrote the percentile: p99."""


@dataclass(frozen=True, slots=True)
class Step:
    """What came of one rate."""

    rate: float
    sent: int
    arrived: int
    latency: LatencySummary
    at_bound: float
    """Milliseconds at the bound's percentile, over the records that arrived."""
    client_was_late: bool
    """The client itself could not send at this rate, though it never waited for the cluster."""
    failure: str = ""
    """Why a record was not written."""

    def shortfall(self, bound: Bound) -> str:
        """Why this rate was not sustained; empty when it was."""
        if self.failure:
            return f"a record was not written: {self.failure}"
        if self.client_was_late:
            return "this client, or its machine, could not send as fast"
        if self.arrived < self.sent:
            return f"only {self.arrived:,} of {self.sent:,} records arrived in time"
        if self.at_bound > bound.seconds * 1000:
            return f"{bound.name} was {self.at_bound:,.1f} ms"
        return ""


class OpenLoop:
    """One producer and one consumer, which stay connected from step to step. The caller closes the consumer."""

    def __init__(
        self,
        producer: Producer,
        consumer: Consumer,
        partitions: Sequence[tuple[str, int]],
        size: int,
        handling: float = 0.0,
    ) -> None:
        """`handling` is how many seconds the consumer takes for each record, as a real one would."""
        self._producer = producer
        self._consumer = consumer
        self._partitions = partitions
        self._filling = os.urandom(max(0, size - _STAMP.size))
        self._handling = handling
        self._mark = os.urandom(16)
        self._number = 0

    def run(self, rate: float, seconds: float, bound: Bound) -> Step:
        """Send at `rate` for `seconds`; gives up on what is later than any bound could allow."""
        self._number += 1
        start_at_end(self._consumer, self._partitions)
        patience = max(1.0, 4 * bound.seconds)
        sending = _Sending(self, rate, max(1, round(rate * seconds)), self._number, patience)
        latencies = Latencies()
        thread = threading.Thread(target=sending.run, name="load", daemon=True)
        thread.start()
        try:
            while len(latencies) < sending.total and not sending.failure:
                last = sending.begun + seconds + patience
                if time.perf_counter() > last or (sending.ended and len(latencies) >= sending.sent):
                    break
                self._receive(latencies)
        finally:
            sending.stop.set()
            thread.join()
            self._producer.purge(in_queue=True)
            self._producer.flush(_FLUSH)
        return Step(
            rate,
            sending.total,
            len(latencies),
            latencies.summary(),
            latencies.percentile(bound.share),
            sending.client_was_late(bound),
            "" if sending.failure is None else sentence(sending.failure).rstrip("."),
        )

    def _receive(self, latencies: Latencies) -> None:
        for message in self._next():
            error = message.error()
            if error is not None:
                if error.retriable() or error.code() == KafkaError._PARTITION_EOF:
                    continue
                raise refused_by_librdkafka(error)
            value = message.value() or b""
            if len(value) < _STAMP.size or value[:16] != self._mark:
                continue  # somebody else's
            _, step, due = _STAMP.unpack_from(value)
            if step == self._number:
                if self._handling:
                    time.sleep(self._handling)
                latencies.add(time.perf_counter() - due)

    def _next(self) -> list[Message]:
        """Waits for one record only: a batch would wait until it is full."""
        first = self._consumer.poll(0.05)
        if first is None:
            return []
        return [first] if self._handling else [first, *self._consumer.consume(_BATCH, timeout=0)]

    def send(self, number: int, step: int, due: float, on_delivery: Delivered) -> None:
        """BufferError when librdkafka's queue is full."""
        topic, partition = self._partitions[number % len(self._partitions)]
        value = _STAMP.pack(self._mark, step, due) + self._filling
        self._producer.produce(topic, value, partition=partition, on_delivery=on_delivery)

    def poll(self, seconds: float) -> None:
        self._producer.poll(seconds)


class _Sending:
    """One step's sender, in a thread of its own."""

    def __init__(self, loop: OpenLoop, rate: float, total: int, step: int, patience: float) -> None:
        self._loop = loop
        self._rate = rate
        self._step = step
        self._patience = patience
        self._waited = False
        self._lateness = Latencies()
        self.total = total
        self.sent = 0
        self.begun = time.perf_counter() + _LEAD
        self.failure: KafkaError | None = None
        self.stop = threading.Event()
        self.ended = False

    def run(self) -> None:
        try:
            while self.sent < self.total and not self.stop.is_set() and self.failure is None:
                now = time.perf_counter()
                due = self.begun + self.sent / self._rate
                if now < due:
                    self._loop.poll(min(due - now, 0.05))
                elif now - due > self._patience:
                    return
                else:
                    self._send(due, now - due)
        finally:
            self.ended = True

    def client_was_late(self, bound: Bound) -> bool:
        """A full queue is the cluster's doing; a client that is late without one has met its own limit."""
        return not self._waited and self._lateness.percentile(1 - _LATE) > bound.seconds * 1000 / 2

    def _send(self, due: float, late: float) -> None:
        try:
            self._loop.send(self.sent, self._step, due, self._delivered)
        except BufferError:
            self._waited = True
            self._loop.poll(0.01)
            return
        except KafkaException as error:
            self.failure = error.args[0]
            return
        self._lateness.add(late)
        self.sent += 1
        if self.sent % 100 == 0:
            self._loop.poll(0)

    def _delivered(self, error: KafkaError | None, _: Message) -> None:
        purged = (KafkaError._PURGE_QUEUE, KafkaError._PURGE_INFLIGHT)
        if error is not None and error.code() not in purged:
            self.failure = self.failure or error
