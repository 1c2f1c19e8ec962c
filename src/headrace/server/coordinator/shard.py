"""One coordinator partition: its state, and the order in which writes reach the log and replies leave.

An operation reads the state and returns records; they are appended as one batch and only then replayed into
the state, so a failed append leaves nothing to undo. The reply leaves when the high watermark has passed the
records, and also when it has passed everything the operation could have seen.

Offset commits, which do not look at each other, are queued instead: what arrives in one turn of the event
loop goes into the log as one batch. Anything else flushes that queue first, so order is the order of arrival.
"""

from __future__ import annotations

import asyncio
import logging
import struct
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

from headrace.clock import Clock, Timer
from headrace.server.coordinator.log import CoordinatorLog
from headrace.server.coordinator.timers import Timers
from headrace.server.coordinator.write import R, StateMachine, Write, client_error
from headrace.wire.batch import NO_PRODUCER_EPOCH, NO_PRODUCER_ID
from headrace.wire.compression import Codec
from headrace.wire.errors import ErrorCode, KafkaError
from headrace.wire.markers import build_end_transaction_marker
from headrace.wire.records import build_batch

logger = logging.getLogger(__name__)

S = TypeVar("S", bound="StateMachine[Any]")
T = TypeVar("T")
Encoded = tuple[bytes | bytearray, bytes | bytearray | None]
"""The key and the value of a record as the log has them."""
Done = Callable[[KafkaError | None], None]
Operation = Callable[[], Write[R, T]]

MAX_QUEUED_RECORDS = 1000
MAX_QUEUED_BYTES = 1 << 18
"""Queued commits are appended early at this many records or bytes, to stay far below the largest batch allowed."""


class Shard(Generic[S, R]):
    def __init__(
        self, name: str, log: CoordinatorLog, clock: Clock, commit_timeout_ms: int, codec: Codec = Codec.NONE
    ) -> None:
        self.name = name
        self.log = log
        self.timers: Timers[Operation[R, object]] = Timers(clock, self._run_timer)
        self._clock = clock
        self._codec = codec
        self._commit_timeout = commit_timeout_ms / 1000
        self._state: S | None = None
        self._last_offset = -1
        self._queued: list[R] = []
        self._queued_encoded: list[Encoded] = []
        self._queued_bytes = 0
        self._queued_done: list[Done] = []
        self._flush_scheduled = False
        self._waiting: deque[tuple[int, float, Done]] = deque()
        self._timeout: Timer | None = None
        self._closed = False

    @property
    def state(self) -> S:
        """The state once the log has been replayed."""
        if self._closed:
            raise KafkaError(ErrorCode.NOT_COORDINATOR, f"{self.name} is no longer led by this broker.")
        if self._state is None:
            raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, f"{self.name} is still being loaded.")
        return self._state

    @property
    def closed(self) -> bool:
        """Leadership has moved; a shard on another broker takes over."""
        return self._closed

    def open(self, state: S) -> None:
        self._state = state
        self._last_offset = self.log.end_offset - 1
        state.loaded()

    def close(self) -> None:
        """Forget the state; waiting requests are sent to the new coordinator."""
        if self._closed:
            return
        self._closed = True
        self.timers.cancel_all()
        if self._timeout is not None:
            self._timeout.cancel()
        error = KafkaError(ErrorCode.NOT_COORDINATOR, f"{self.name} is no longer led by this broker.")
        waiting = [done for _, _, done in self._waiting] + self._queued_done
        self._waiting.clear()
        self._queued.clear()
        self._queued_encoded.clear()
        self._queued_done.clear()
        for done in waiting:
            done(error)
        if self._state is not None:
            self._state.unloaded()

    # Operations

    def perform(
        self,
        operation: Operation[R, object],
        done: Done,
        producer_id: int = NO_PRODUCER_ID,
        producer_epoch: int = NO_PRODUCER_EPOCH,
    ) -> None:
        """Run an operation now; `done(None)` once its records are committed, or `done(error)`."""
        try:
            self.flush()
            result = operation()
        except KafkaError as error:
            done(error)
            return
        self._submit(result, done, producer_id, producer_epoch)

    def write(
        self,
        operation: Operation[R, T],
        producer_id: int = NO_PRODUCER_ID,
        producer_epoch: int = NO_PRODUCER_EPOCH,
    ) -> asyncio.Future[T]:
        """The same with the reply in a future. With a producer id the records are part of its transaction,
        and count when `end_transaction` commits it."""
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        try:
            self.flush()
            result = operation()
        except KafkaError as error:
            future.set_exception(error)
            return future
        self._submit(result, _complete(future, result.reply), producer_id, producer_epoch)
        return future

    def enqueue(self, records: Sequence[R], done: Done) -> None:
        """Append with all that is enqueued in this turn of the loop. For records whose making looked at
        nothing that other queued ones change."""
        try:
            # Check now, so that an invalid record is refused alone and not with all that arrive in this turn.
            encoded = self._encode(records)
        except KafkaError as error:
            done(error)
            return
        size = 0
        for key, value in encoded:
            size += len(key) + (0 if value is None else len(value))
        if self._queued_bytes + size > MAX_QUEUED_BYTES:
            self.flush()
        self._queued_bytes += size
        self._queued_encoded += encoded
        self._queued += records
        self._queued_done.append(done)
        if len(self._queued) >= MAX_QUEUED_RECORDS:
            self.flush()
        elif not self._flush_scheduled:
            self._flush_scheduled = True
            asyncio.get_running_loop().call_soon(self._scheduled_flush)

    def read(self, operation: Callable[[], T]) -> asyncio.Future[T]:
        """An answer computed from the current state, sent when everything it depends on is committed."""
        return self.write(lambda: Write((), operation()))

    def end_transaction(
        self, producer_id: int, producer_epoch: int, coordinator_epoch: int, committed: bool
    ) -> asyncio.Future[ErrorCode]:
        """Write the marker that ends a producer's transaction here, and apply or discard its records."""
        future: asyncio.Future[ErrorCode] = asyncio.get_running_loop().create_future()
        try:
            self.flush()
            state = self.state
            self._last_offset = self.log.append(
                build_end_transaction_marker(
                    producer_id=producer_id,
                    producer_epoch=producer_epoch,
                    coordinator_epoch=coordinator_epoch,
                    committed=committed,
                    timestamp=self._clock.now_ms(),
                )
            )
        except KafkaError as error:
            future.set_exception(client_error(error))
            return future
        state.end_transaction(producer_id, committed)
        self._when_committed(_complete(future, ErrorCode.NONE))
        return future

    def flush(self) -> None:
        """Append what is queued, as one batch."""
        if not self._queued_done:
            return
        records, encoded, waiting = self._queued, self._queued_encoded, self._queued_done
        self._queued, self._queued_encoded, self._queued_done, self._queued_bytes = [], [], [], 0

        def done(error: KafkaError | None) -> None:
            for each in waiting:
                each(error)

        self._submit(Write(records, None), done, encoded=encoded)

    # The way into the log

    def _scheduled_flush(self) -> None:
        self._flush_scheduled = False
        if not self._closed:
            self.flush()

    def _run_timer(self, operation: Operation[R, object]) -> None:
        if not self._closed:
            self.perform(operation, self._timer_done)

    def _timer_done(self, error: KafkaError | None) -> None:
        if error is not None:
            logger.warning("%s: a timed change was not stored: %s", self.name, error)

    def _submit(
        self,
        result: Write[R, object],
        done: Done,
        producer_id: int = NO_PRODUCER_ID,
        producer_epoch: int = NO_PRODUCER_EPOCH,
        encoded: Sequence[Encoded] | None = None,
    ) -> None:
        if result.finish is not None:
            done = _both(result.finish, done)
        if result.records:
            try:
                self._append(result, producer_id, producer_epoch, encoded)
            except KafkaError as error:
                done(client_error(error))
                return
        self._when_committed(done)

    def _encode(self, records: Sequence[R]) -> list[Encoded]:
        state = self.state
        try:
            return [state.encode(record) for record in records]
        except (struct.error, ValueError) as error:
            # A string or number that fits the request's encoding but not the record's.
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"This cannot be stored: {error}.") from None

    def _append(
        self,
        result: Write[R, object],
        producer_id: int,
        producer_epoch: int,
        encoded: Sequence[Encoded] | None,
    ) -> None:
        state = self.state
        records = result.records
        batch = build_batch(
            encoded if encoded is not None else self._encode(records),
            self._clock.now_ms(),
            codec=self._codec,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
        )
        self._last_offset = self.log.append(batch)
        if result.apply is not None:
            result.apply()
        else:
            first = self._last_offset - len(records) + 1
            for offset, record in enumerate(records, first):
                state.replay(record, offset, producer_id)

    def _when_committed(self, done: Done) -> None:
        """`done(None)` when all that was appended so far is committed."""
        offset = self._last_offset
        if offset < self.log.high_watermark:
            done(None)
            return
        newest = self._waiting[-1][0] if self._waiting else -1
        self._waiting.append((offset, self._clock.monotonic() + self._commit_timeout, done))
        if self._timeout is None:
            self._timeout = self._clock.call_later(self._commit_timeout, self._expire)
        if offset > newest:
            self.log.when_committed(offset, self._advance)

    def _advance(self, code: ErrorCode) -> None:
        if code is not ErrorCode.NONE:
            error = client_error(KafkaError(code, f"What was written to {self.name} cannot be confirmed."))
            waiting, self._waiting = self._waiting, deque()
            for _, _, done in waiting:
                done(error)
            return
        high_watermark = self.log.high_watermark
        while self._waiting and self._waiting[0][0] < high_watermark:
            self._waiting.popleft()[2](None)

    def _expire(self) -> None:
        """No request waits longer than the commit timeout; the records stay and may still be committed."""
        self._timeout = None
        now = self._clock.monotonic()
        error = KafkaError(
            ErrorCode.COORDINATOR_NOT_AVAILABLE,
            f"The in-sync replicas of {self.name} did not confirm within offsets.commit.timeout.ms.",
        )
        while self._waiting and self._waiting[0][1] <= now:
            self._waiting.popleft()[2](error)
        if self._waiting:
            self._timeout = self._clock.call_later(self._waiting[0][1] - now, self._expire)


def _complete(future: asyncio.Future[T], reply: T) -> Done:
    def done(error: KafkaError | None) -> None:
        if future.done():
            return
        if error is None:
            future.set_result(reply)
        else:
            future.set_exception(error)

    return done


def _both(first: Done, second: Done) -> Done:
    def done(error: KafkaError | None) -> None:
        first(error)
        second(error)

    return done
