"""The time from handing a record to a producer until a consumer has it."""

from __future__ import annotations

import os
import struct
import threading
import time
from collections.abc import Callable, Mapping

from confluent_kafka import OFFSET_END, Consumer, KafkaError, Producer, TopicPartition

from headrace.cli.cluster.connection import Cluster, Refused, sentence
from headrace.cli.failure import Failure
from headrace.cli.load.numbers import Latencies, Pace

_STAMP = struct.Struct(">16sq")  # this run's mark, and when the record was sent (perf_counter, ns)
SMALLEST = _STAMP.size
_PATIENCE = 60.0


def run(
    cluster: Cluster,
    partitions: list[TopicPartition],
    count: int,
    *,
    size: int,
    acks: str,
    rate: float | None,
    settings: Mapping[str, str | int | bool] | None = None,
    on_record: Callable[[int, float], object] = lambda _n, _s: None,
) -> Latencies:
    """Send `count` records: at `rate` a second, or (None) each when the one before has arrived."""
    mark = os.urandom(16)
    consumer = cluster.consumer(
        {
            "group.id": "headrace-perf",
            "enable.auto.commit": False,
            "fetch.wait.max.ms": 500,
            **(settings or {}),
        }
    )
    producer = cluster.producer({"linger.ms": 0, "acks": acks, **(settings or {})})
    try:
        _start_at_end(consumer, partitions)
        sender = _Sender(producer, partitions[0].topic, mark, size)
        latencies = Latencies()
        if rate is None:
            for number in range(count):
                sender.send()
                _receive(consumer, sender, mark, latencies, number, on_record)
        else:
            thread = threading.Thread(target=sender.send_at, args=(rate, count), daemon=True)
            thread.start()
            for number in range(count):
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
        pace = Pace(rate)
        for sent in range(count):
            wait = pace.wait_seconds(sent)
            if wait > 0:
                time.sleep(wait)
            self.send()
        self._producer.flush(_PATIENCE)

    def poll(self) -> None:
        self._producer.poll(0)
        if self.failure is not None:
            raise Failure(f"A record to '{self._topic}' was not written: {sentence(self.failure)}")

    def _delivered(self, error: KafkaError | None, _: object) -> None:
        self.failure = self.failure or error


def _start_at_end(consumer: Consumer, partitions: list[TopicPartition]) -> None:
    """Assign the partitions and wait until each has a position, so that no record slips by."""
    consumer.assign([TopicPartition(tp.topic, tp.partition, _end(consumer, tp)) for tp in partitions])
    consumer.poll(0)


def _end(consumer: Consumer, tp: TopicPartition) -> int:
    _, end = consumer.get_watermark_offsets(tp, timeout=_PATIENCE)
    return end if end >= 0 else OFFSET_END


def _receive(
    consumer: Consumer,
    sender: _Sender,
    mark: bytes,
    latencies: Latencies,
    number: int,
    on_record: Callable[[int, float], object],
) -> None:
    """Wait for one of our records; others that write to the topic are passed over."""
    deadline = time.perf_counter() + _PATIENCE
    while True:
        message = consumer.poll(0.1)
        now = time.perf_counter_ns()
        if message is None:
            sender.poll()
            if time.perf_counter() > deadline:
                raise Failure(f"A record that was sent did not arrive within {_PATIENCE:.0f} s.")
            continue
        error = message.error()
        if error is not None:
            if error.retriable() or error.code() == KafkaError._PARTITION_EOF:
                continue
            raise Refused(error)
        value = message.value() or b""
        if value[:16] == mark:
            seconds = (now - _STAMP.unpack_from(value)[1]) / 1e9
            latencies.add(seconds)
            on_record(number, seconds)
            return
