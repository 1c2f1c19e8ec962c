"""Follows the topic: a thread reads, the event loop applies, and waits for an offset end once it is applied."""

from __future__ import annotations

import asyncio
import heapq
import itertools
import logging
import threading
from collections.abc import Sequence

from headrace.link.errors import BrokerUnavailable
from headrace.registry.background import in_background
from headrace.registry.state import Applied, State
from headrace.registry.topic import TopicError, TopicReader
from headrace.wire.errors import KafkaError
from headrace.wire.records import Record

log = logging.getLogger("headrace.registry")


class Following:
    def __init__(self, state: State, reader: TopicReader) -> None:
        self._state = state
        self._reader = reader
        self._waiting: list[tuple[int, int, asyncio.Future[None]]] = []
        self._count = itertools.count()
        self._stopping = False
        self.rejected: set[int] = set()
        """Offsets of records that were not applied because their id was taken; the writer takes out its own."""
        self.failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Set to what made following impossible."""
        self._thread: threading.Thread | None = None

    async def load(self) -> None:
        """Everything there is now. TopicError when it cannot be read."""
        await in_background(self._load)

    def _load(self) -> None:
        while not self._reader.caught_up and not self._stopping:
            try:
                records = self._reader.read()
            except (BrokerUnavailable, KafkaError) as error:
                raise TopicError(f"The schemas' topic cannot be read: {error}") from None
            self._apply(records)

    def start(self) -> None:
        self._thread = threading.Thread(
            target=self._follow,
            args=(asyncio.get_running_loop(),),
            name="headrace-registry-reader",
            daemon=True,
        )
        self._thread.start()

    def stop(self) -> None:
        self._stopping = True

    def _follow(self, loop: asyncio.AbstractEventLoop) -> None:
        """In the thread."""
        while not self._stopping:
            try:
                records = self._reader.read()
            except (TopicError, BrokerUnavailable, KafkaError) as error:
                if not self._stopping:
                    loop.call_soon_threadsafe(self._fail, error)
                break
            if records:
                try:
                    loop.call_soon_threadsafe(self._take, records)
                except RuntimeError:  # the loop has ended
                    break
        self._reader.close()

    def _fail(self, error: Exception) -> None:
        if not self.failed.done():
            self.failed.set_exception(error)

    def _take(self, records: Sequence[Record]) -> None:
        self._apply(records)
        while self._waiting and self._waiting[0][0] < self._state.end:
            _, _, future = heapq.heappop(self._waiting)
            if not future.done():
                future.set_result(None)

    def _apply(self, records: Sequence[Record]) -> None:
        for record in records:
            if self._state.apply(record.key, record.value, record.offset) is Applied.ID_TAKEN:
                self.rejected.add(record.offset)

    async def applied(self, offset: int) -> None:
        """Returns when the record at an offset has been applied."""
        if self._state.end > offset:
            return
        future = asyncio.get_running_loop().create_future()
        heapq.heappush(self._waiting, (offset, next(self._count), future))
        await future
