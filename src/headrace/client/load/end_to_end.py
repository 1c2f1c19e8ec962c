"""The time from handing a record to a producer until a consumer has it."""

from __future__ import annotations

import os
import struct
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from confluent_kafka import OFFSET_END, Consumer, KafkaError, KafkaException, Producer, TopicPartition

from headrace.client.administration.errors import refused_by_librdkafka, sentence
from headrace.client.errors import ClientError, DeliveryError
from headrace.client.load.numbers import Latencies, SteadyRate

_STAMP = struct.Struct(">16sq")  # this run's mark, and when the record was sent (perf_counter, ns)
SMALLEST = _STAMP.size
_PATIENCE = 60.0
_NEW_TOPIC = 10.0
_NOT_YET = (KafkaError._UNKNOWN_PARTITION, KafkaError._UNKNOWN_TOPIC, KafkaError.LEADER_NOT_AVAILABLE)


CONSUMER: Mapping[str, str | int | bool] = {
    "group.id": "headrace-perf",
    "enable.auto.commit": False,
    "fetch.wait.max.ms": 500,
}
PRODUCER: Mapping[str, int] = {"linger.ms": 0}
"""Settings for the two clients."""


@dataclass(frozen=True, slots=True)
class Load:
    """`count` records of `size` bytes: at `rate` a second, or (None) each when the one before has arrived."""

    partitions: Sequence[tuple[str, int]]
    count: int
    size: int
    rate: float | None = None


def run(
    producer: Producer,
    consumer: Consumer,
    load: Load,
    on_record: Callable[[int, float], object] = lambda _n, _s: None,
) -> Latencies:
    """Closes the consumer."""
    mark = os.urandom(16)
    try:
        start_at_end(consumer, load.partitions)
        sender = _Sender(producer, load.partitions[0][0], mark, load.size)
        latencies = Latencies()
        if load.rate is None:
            for number in range(load.count):
                sender.send()
                _receive(consumer, sender, mark, latencies, number, on_record)
        else:
            thread = threading.Thread(target=sender.send_at, args=(load.rate, load.count), daemon=True)
            thread.start()
            for number in range(load.count):
                _receive(consumer, sender, mark, latencies, number, on_record)
            thread.join()
    finally:
        consumer.close()
    return latencies


class _Sender:
    def __init__(self, producer: Producer, topic: str, mark: bytes, size: int) -> None:
        self._producer = producer
        self._topic = topic
        self._mark = mark
        self._filling = b"\0" * max(0, size - _STAMP.size)
        self.failure: KafkaError | None = None

    def send(self) -> None:
        stamp = _STAMP.pack(self._mark, time.perf_counter_ns())
        self._producer.produce(self._topic, stamp + self._filling, on_delivery=self._delivered)
        self._producer.poll(0)

    def send_at(self, rate: float, count: int) -> None:
        pace = SteadyRate(rate)
        for sent in range(count):
            wait = pace.wait_seconds(sent)
            if wait > 0:
                time.sleep(wait)
            self.send()
        self._producer.flush(_PATIENCE)

    def poll(self) -> None:
        self._producer.poll(0)
        if self.failure is not None:
            raise DeliveryError(
                f"A record to '{self._topic}' was not written: {sentence(self.failure)}", self.failure.code()
            )

    def _delivered(self, error: KafkaError | None, _: object) -> None:
        self.failure = self.failure or error


def start_at_end(consumer: Consumer, partitions: Sequence[tuple[str, int]]) -> None:
    """Assign the partitions and wait until each has a position, so that no record is missed."""
    consumer.assign([TopicPartition(*each, _end(consumer, TopicPartition(*each))) for each in partitions])
    consumer.poll(0)


def _end(consumer: Consumer, partition: TopicPartition) -> int:
    """Asks again while the consumer has not heard of the topic, which may be new."""
    deadline = time.monotonic() + _NEW_TOPIC
    while True:
        try:
            _, end = consumer.get_watermark_offsets(partition, timeout=_PATIENCE)
            return end if end >= 0 else OFFSET_END
        except KafkaException as error:
            if error.args[0].code() not in _NOT_YET or time.monotonic() > deadline:
                raise refused_by_librdkafka(error.args[0]) from None
            time.sleep(0.05)


def _receive(
    consumer: Consumer,
    sender: _Sender,
    mark: bytes,
    latencies: Latencies,
    number: int,
    on_record: Callable[[int, float], object],
) -> None:
    """Wait for one of our records; records of other producers are skipped."""
    deadline = time.perf_counter() + _PATIENCE
    while True:
        message = consumer.poll(0.1)
        now = time.perf_counter_ns()
        if message is None:
            sender.poll()
            if time.perf_counter() > deadline:
                raise ClientError(f"A record that was sent did not arrive within {_PATIENCE:.0f} s.")
            continue
        error = message.error()
        if error is not None:
            if error.retriable() or error.code() == KafkaError._PARTITION_EOF:
                continue
            raise refused_by_librdkafka(error)
        value = message.value() or b""
        if value[:16] == mark:
            seconds = (now - _STAMP.unpack_from(value)[1]) / 1e9
            latencies.add(seconds)
            on_record(number, seconds)
            return
