"""Brings what waits in an outbox to Kafka, in order, and ticks it off when it is acknowledged.

A crash between acknowledgement and tick sends a record again, with the same ``headrace.id``: nothing is
skipped, and ``once`` recognises what came twice.
"""

from __future__ import annotations

import logging
import threading
from types import TracebackType
from typing import Generic, Self, TypeVar

from headrace.client.config import Config, merged
from headrace.client.errors import ClientError
from headrace.client.outbox.entry import Entry, Outbox
from headrace.client.producer import Producer

H = TypeVar("H")
log = logging.getLogger("headrace.client.outbox")
_LONGEST_DELAY = 30.0


class Relay(Generic[H]):
    """Works in a thread of its own between ``start`` and ``stop``, or inside a ``with`` block.

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
        self._producer: Producer[bytes, bytes] = Producer(merged(config, settings), delivery="at_least_once")
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
            except (ClientError, OSError) as error:  # a full disk passes, too
                log.error("the outbox waits, again in %.1f s: %s", delay, error)
                self._stopping.wait(delay)
                delay = min(delay * 2, _LONGEST_DELAY)
            if stopping:
                return
            self._outbox.wait(self._poll_interval)

    def _send(self, entries: list[tuple[H, Entry]]) -> int:
        """Send a batch in order; tick off what was acknowledged before the first refusal."""
        sending = [
            (
                handle,
                self._producer.send(
                    entry.topic,
                    entry.value,
                    key=entry.key,
                    partition=entry.partition,
                    headers=entry.headers,
                    timestamp=entry.timestamp,
                ),
            )
            for handle, entry in entries
        ]
        done: list[H] = []
        try:
            for handle, future in sending:
                future.result()
                done.append(handle)
        finally:
            self._outbox.sent(done)
        return len(done)
