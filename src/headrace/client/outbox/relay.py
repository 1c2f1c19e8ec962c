"""Brings what waits in an outbox to Kafka, in order, and ticks it off when it is acknowledged.

A relay never sends an acknowledged record again, however long its database is locked or its disk is full. After a crash
between acknowledgement and tick it is sent again, and also by another relay if the lease ends while the database is
locked, with the same ``headrace.id``: nothing is skipped, and ``once`` recognises what came twice.
"""

from __future__ import annotations

import logging
import threading
import time
from concurrent.futures import Future, wait
from itertools import takewhile
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
_PATIENCE = 30.0
"""How long ``stop`` tries to tick off what was acknowledged before it leaves it to be sent again."""
_BETWEEN_TRIES = 0.1


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
        self._refused = False  # then the first is tried alone: what comes behind it keeps its place
        # Entries by handle and id: a database may give a number out again.
        self._taken: list[tuple[H, str]] = []  # as the outbox gave them last, in its order
        self._acknowledged: set[tuple[H, str]] = set()  # of these and earlier ones; still in the outbox
        self._thread: threading.Thread | None = None

    def drain(self) -> int:
        """Send what waits now; returns how many records were acknowledged. Raises when one was refused."""
        total = self._tick_off()  # before anything else, and also when another relay has taken over
        while self._outbox.hold():
            entries = self._outbox.pending(1 if self._refused else self._batch)
            self._taken = [(handle, entry.id) for handle, entry in entries]
            if not entries:
                self._acknowledged.clear()
                break
            self._refused = True
            total += self._send([entry for _, entry in entries])
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
        self._tick_off_patiently()
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
            ) as error:  # a full disk is temporary, too, and a relay that has ended would go unnoticed
                known = isinstance(error, ClientError | OSError)
                log.error(
                    "the outbox waits, again in %.1f s: %s", delay, error, exc_info=None if known else error
                )
                self._stopping.wait(delay)
                delay = min(delay * 2, _LONGEST_DELAY)
            if stopping:
                return
            self._outbox.wait(self._poll_interval)

    def _send(self, entries: list[Entry]) -> int:
        """Send in order what is not acknowledged yet; returns how many were ticked off. Raises the first refusal."""
        sending: list[tuple[tuple[H, str], Future[RecordMetadata]]] = []
        refusals: list[ClientError] = []
        for place, entry in zip(self._taken, entries, strict=True):
            if place not in self._acknowledged:
                try:
                    sending.append((place, self._hand_over(entry)))
                except ClientError as error:
                    refusals.append(error)
                    break
        # Every answer is awaited, also behind a refusal: a record without an answer would have to be sent again.
        for place, future in sending:
            try:
                self._await(future)
                self._acknowledged.add(place)
            except ClientError as error:
                refusals.append(error)
        if any(isinstance(each, BrokerError) and each.code == KafkaError._FATAL for each in refusals):
            # An idempotent producer that has lost its place never sends again; another does, with the same ids.
            self._producer.abandon()
            self._producer = self._new_producer()
        done = self._tick_off()
        if refusals:
            raise refusals[0]
        return done

    def _tick_off(self) -> int:
        """Take out of the outbox what is acknowledged, up to the first entry that is not."""
        done = list(takewhile(self._acknowledged.__contains__, self._taken))
        if done:
            self._outbox.sent([handle for handle, _ in done])
            self._acknowledged.difference_update(done)
            self._taken = self._taken[len(done) :]
        return len(done)

    def _tick_off_patiently(self) -> None:
        deadline = time.monotonic() + _PATIENCE
        while True:
            try:
                self._tick_off()
                return
            except (ClientError, OSError) as error:
                if time.monotonic() >= deadline:
                    log.error("records that were sent stay in the outbox and will be sent again: %s", error)
                    return
                time.sleep(_BETWEEN_TRIES)

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
            # A broker that takes its time is no reason for another relay to send the same.
            try:
                self._outbox.hold()
            except ClientError as error:
                log.warning("could not record in the outbox that its relay is alive: %s", error)
        acknowledged.result()

    def _new_producer(self) -> Producer[bytes, bytes]:
        return Producer(self._settings, delivery="at_least_once")
