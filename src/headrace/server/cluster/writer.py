"""Appends the controller's changes to the sequence in the store: in order, once, and only while the controller's epoch holds.

Owns the image with everything decided so far. Decisions are based on it and need not wait for one another; `stored` waits until
the store has what a decision rests on.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence

from headrace.clock import Clock
from headrace.server.cluster.changes import Change
from headrace.server.cluster.differences import apply_changes
from headrace.server.cluster.image import MetadataImage
from headrace.server.cluster.sequence import (
    SNAPSHOT_EVERY,
    Head,
    append,
    change_path,
    load,
    read_head,
    split,
    write_snapshot,
)
from headrace.server.cluster.store import ConflictError, SessionExpiredError, Store, UnavailableError
from headrace.wire.errors import ErrorCode, KafkaError

log = logging.getLogger(__name__)

RETRY_SECONDS = 0.2


class SequenceWriter:
    def __init__(self, store: Store, epoch: int, clock: Clock, on_epoch_lost: Callable[[], None]) -> None:
        """`on_epoch_lost` is called when the store shows that the epoch no longer holds."""
        self._store = store
        self._epoch = epoch
        self._clock = clock
        self._on_epoch_lost = on_epoch_lost
        self.image = MetadataImage()
        """Everything decided so far, including changes that are not in the store yet."""
        self._head = Head()
        self._queue: list[bytes] = []
        self._waiting: list[tuple[int, asyncio.Future[None]]] = []
        self._wakeup = asyncio.Event()
        self._closed = False

    async def load(self, image: MetadataImage) -> None:
        """Read on from `image` to the end of the sequence."""
        self.image, self._head = await load(self._store, image)

    @property
    def committed_offset(self) -> int:
        """The last change that is in the store."""
        return self._head.offset

    def close(self) -> None:
        """Write nothing more, and fail waiting callers with NOT_CONTROLLER."""
        self._closed = True
        self._queue.clear()
        for _, future in self._waiting:
            if not future.done():
                future.set_exception(not_controller())
        self._waiting.clear()
        self._wakeup.set()

    def append(self, changes: Sequence[Change]) -> None:
        """Add `changes` to the image now, and to the store as soon as possible."""
        if changes:
            pieces = list(split(changes))
            self.image = apply_changes(self.image, self.image.offset + len(pieces), changes)
            self._queue.extend(pieces)
            self._wakeup.set()

    async def stored(self) -> None:
        """Wait until the store has the whole image; NOT_CONTROLLER when it never will."""
        if self._closed:
            raise not_controller()
        if self.image.offset > self._head.offset:
            future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append((self.image.offset, future))
            await future

    async def run(self) -> None:
        """Append what is queued, in order, and write a snapshot now and then."""
        while not self._closed:
            await self._wakeup.wait()
            self._wakeup.clear()
            while self._queue and not self._closed:
                pieces, self._queue = self._queue, []
                try:
                    await self._append(pieces)
                except (ConflictError, SessionExpiredError) as error:
                    self._epoch_lost(error)
                    return
                self._wake_waiting()
            if not self._closed and self._head.offset - self._head.snapshot >= SNAPSHOT_EVERY:
                await self._snapshot()

    async def _append(self, pieces: list[bytes]) -> None:
        """Append exactly once, even if the store goes away halfway through."""
        while pieces:
            try:
                self._head = await append(self._store, self._head, self._epoch, pieces)
                return
            except UnavailableError:
                await self._clock.sleep(RETRY_SECONDS)
                pieces = await self._not_yet_written(pieces)

    async def _not_yet_written(self, pieces: list[bytes]) -> list[bytes]:
        """After a transaction of unknown fate: which pieces are missing. Another controller may have written instead."""
        while not self._closed:
            try:
                head = await read_head(self._store)
                written = head.offset - self._head.offset
                for number in range(written):
                    found = await self._store.get(change_path(self._head.offset + 1 + number))
                    if found is None or number >= len(pieces) or found[0] != pieces[number]:
                        raise ConflictError(0, change_path(self._head.offset + 1 + number))
                self._head = head
                return pieces[written:]
            except UnavailableError:
                await self._clock.sleep(RETRY_SECONDS)
        return []

    def _wake_waiting(self) -> None:
        done = [entry for entry in self._waiting if entry[0] <= self._head.offset]
        self._waiting = [entry for entry in self._waiting if entry[0] > self._head.offset]
        for _, future in done:
            if not future.done():
                future.set_result(None)

    async def _snapshot(self) -> None:
        if self._queue or self.image.offset != self._head.offset:
            self._wakeup.set()
            return
        try:
            self._head = await write_snapshot(self._store, self._head, self._epoch, self.image)
        except UnavailableError:
            # The next change tries again, from what the store says then.
            self._head = await self._reread_head()
        except (ConflictError, SessionExpiredError) as error:
            self._epoch_lost(error)

    async def _reread_head(self) -> Head:
        while True:
            try:
                return await read_head(self._store)
            except UnavailableError:
                await self._clock.sleep(RETRY_SECONDS)

    def _epoch_lost(self, error: Exception) -> None:
        log.warning("this broker is no longer the controller (%s)", error)
        self._on_epoch_lost()


def not_controller() -> KafkaError:
    return KafkaError(ErrorCode.NOT_CONTROLLER, "This broker is not the controller.")
