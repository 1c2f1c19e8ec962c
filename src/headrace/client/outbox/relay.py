"""Brings what waits in an outbox to Kafka, in order, and ticks it off when it is acknowledged.

A crash between acknowledgement and tick sends a record again, with the same ``headrace.id``: nothing is
skipped, and ``once`` recognises what came twice.
"""

from __future__ import annotations

import logging
import threading
from concurrent.futures import Future, wait
from types import TracebackType
from typing import Generic, Self, TypeVar

from confluent_kafka import KafkaError

from headrace.client.config import Config, merged
from headrace.client.errors import BrokerError, ClientError, ConfigError
from headrace.client.outbox.entry import Entry, Outbox
from headrace.client.producer import Producer
from headrace.client.record import RecordMetadata

H = TypeVar("H")
log = logging.getLogger("headrace.client.outbox")
_LONGEST_DELAY = 30.0
_STAY = 1.0


class Relay(Generic[H]):
    """Works in a thread of its own between ``start`` and ``stop``, or inside a ``with`` block.

    >>> with Relay(outbox, "localhost:9092"):
    ...     outbox.send("orders", "one")

    ``poll_interval`` seconds are the longest a record waits that another process put into the outbox.
    """

    def __init__(
        self,
        outbox: Outbox[H],
        config: Config = None,
        /,
        *,
        batch: int = 500,
        poll_interval: float = 0.5,
        **settings: object,
    ) -> None:
        self._outbox = outbox
        self._settings = merged(config, settings)
        self._producer = self._new_producer()
        self._batch = batch
        self._poll_interval = poll_interval
        self._stopping = threading.Event()
        self._refused = False  # then the first is tried alone: those behind it may have been written already
        self._thread: threading.Thread | None = None

    def drain(self) -> int:
        """Send what waits now; returns how many records were acknowledged. Raises when one was refused."""
        total = 0
        while self._outbox.hold():
            entries = self._outbox.pending(1 if self._refused else self._batch)
            if not entries:
                break
            self._refused = True
            total += self._send(entries)
            self._refused = False
        return total

    def start(self) -> None:
        if self._thread is not None:
            raise ConfigError("the relay is running already")
        self._thread = threading.Thread(target=self._run, name="headrace-relay", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Send what waits, once more, and end. What cannot be sent now stays in the outbox."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        self._producer.close()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _run(self) -> None:
        delay = self._poll_interval
        while True:
            stopping = self._stopping.is_set()
            try:
                self.drain()
                delay = self._poll_interval
            except (
                Exception
            ) as error:  # a full disk passes, too, and nobody would notice a relay that has ended
                known = isinstance(error, ClientError | OSError)
                log.error(
                    "the outbox waits, again in %.1f s: %s", delay, error, exc_info=None if known else error
                )
                self._stopping.wait(delay)
                delay = min(delay * 2, _LONGEST_DELAY)
            if stopping:
                return
            self._outbox.wait(self._poll_interval)

    def _send(self, entries: list[tuple[H, Entry]]) -> int:
        """Send a batch in order; tick off what was acknowledged before the first refusal."""
        try:
            sending = [(handle, self._hand_over(entry)) for handle, entry in entries]
        except BrokerError as error:
            if error.code == KafkaError._FATAL:
                # An idempotent producer that has lost its place never sends again; another does, with the same ids.
                self._producer.abandon()
                self._producer = self._new_producer()
            raise
        done: list[H] = []
        try:
            for handle, future in sending:
                self._await(future)
                done.append(handle)
        finally:
            if done:
                self._outbox.sent(done)
        return len(done)

    def _hand_over(self, entry: Entry) -> Future[RecordMetadata]:
        return self._producer.send(
            entry.topic,
            entry.value,
            key=entry.key,
            partition=entry.partition,
            headers=entry.headers,
            timestamp=entry.timestamp,
        )

    def _await(self, acknowledged: Future[RecordMetadata]) -> None:
        while wait([acknowledged], _STAY).not_done:
            self._outbox.hold()  # a broker that takes its time is no reason for another relay to send the same
        acknowledged.result()

    def _new_producer(self) -> Producer[bytes, bytes]:
        return Producer(self._settings, delivery="at_least_once")
