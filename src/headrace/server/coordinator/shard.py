"""One coordinator partition: its state, and the order in which writes reach the log and replies leave.

An operation reads the state and returns records; they are appended and only then replayed into the state, so a failed
append leaves nothing to undo. The reply leaves when the high watermark has passed the records, and also when it has passed
everything the operation could have seen.

What arrives in one round of the event loop goes into the log as one batch (`batch.py`). An operation without a scope, which may
look at anything, and one of a producer's transaction, whose batch carries the producer's id, have the open batch appended
first and are appended alone. So the order in the log is the order of arrival.
"""

from __future__ import annotations

import logging
import struct
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

from headrace.clock import Clock
from headrace.server.coordinator.batch import OpenBatch, Queued
from headrace.server.coordinator.confirming import Confirming, Done
from headrace.server.coordinator.log import CoordinatorLog
from headrace.server.coordinator.promise import Promise
from headrace.server.coordinator.timers import Timers
from headrace.server.coordinator.write import R, StateMachine, Write, client_error
from headrace.server.replica.turn import Turn
from headrace.wire.batch import NO_PRODUCER_EPOCH, NO_PRODUCER_ID
from headrace.wire.compression import Codec
from headrace.wire.errors import ErrorCode, KafkaError
from headrace.wire.markers import build_end_transaction_marker
from headrace.wire.records import plain_record, seal_batch

logger = logging.getLogger(__name__)

S = TypeVar("S", bound="StateMachine[Any]")
T = TypeVar("T")
Operation = Callable[[], Write[R, T]]


class Shard(Generic[S, R]):
    def __init__(
        self,
        name: str,
        log: CoordinatorLog,
        clock: Clock,
        turn: Turn,
        commit_timeout_ms: int,
        codec: Codec = Codec.NONE,
    ) -> None:
        self.name = name
        self.log = log
        self.timers: Timers[Operation[R, object]] = Timers(clock, self._run_timer)
        self._clock = clock
        self._turn = turn
        self._codec = codec
        self._state: S | None = None
        self._last_offset = -1
        self._batch: OpenBatch | None = None
        self._confirming = Confirming(name, log, clock, commit_timeout_ms)
        self._closed = False

    @property
    def state(self) -> S:
        """The state once the log has been replayed."""
        if self._closed:
            raise self._not_led()
        if self._state is None:
            raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, f"{self.name} is still being loaded.")
        return self._state

    @property
    def closed(self) -> bool:
        """Leadership has moved; a shard on another broker takes over."""
        return self._closed

    def _not_led(self) -> KafkaError:
        return KafkaError(ErrorCode.NOT_COORDINATOR, f"{self.name} is no longer led by this broker.")

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
        error = self._not_led()
        batch, self._batch = self._batch, None
        for done in self._confirming.close():
            done(error)
        if batch is not None:
            _fail(batch, error)
        if self._state is not None:
            self._state.unloaded()

    # Operations

    def perform(
        self,
        operation: Operation[R, object],
        done: Done,
        scope: str | None = None,
        producer_id: int = NO_PRODUCER_ID,
        producer_epoch: int = NO_PRODUCER_EPOCH,
    ) -> None:
        """Run an operation now; `done(None)` once its records are committed, or `done(error)`.

        With a `scope` it looks at nothing outside that. With a producer id the records are part of its transaction, and
        count when `end_transaction` commits it.
        """
        try:
            result = self._run(operation, scope)
        except KafkaError as error:
            done(error)
        else:
            self._submit(result, done, scope, producer_id, producer_epoch)

    def write(
        self,
        operation: Operation[R, T],
        scope: str | None = None,
        producer_id: int = NO_PRODUCER_ID,
        producer_epoch: int = NO_PRODUCER_EPOCH,
    ) -> Promise[T]:
        """The same with a promise of the reply."""
        promise: Promise[T] = Promise()
        try:
            result = self._run(operation, scope)
        except KafkaError as error:
            promise.set_exception(error)
        else:
            self._submit(result, _complete(promise, result.reply), scope, producer_id, producer_epoch)
        return promise

    def read(self, operation: Callable[[], T], scope: str) -> Promise[T]:
        """An answer computed from the state now, given when all it rests on is committed."""
        return self.write(lambda: Write((), operation()), scope)

    def commit_offsets(self, commit: Queued, scope: str) -> None:
        """Store offsets of a group, without looking at any."""
        self._join(commit, scope, only_offsets=True)

    def settle(self, scope: str) -> None:
        """Let the state show everything that has been decided about `scope`, except for offsets."""
        if self._batch is not None and self._batch.is_writing(scope):
            self.flush()

    def end_transaction(
        self, producer_id: int, producer_epoch: int, coordinator_epoch: int, committed: bool
    ) -> Promise[ErrorCode]:
        """Write the marker that ends a producer's transaction here, and make its records count or vanish."""
        promise: Promise[ErrorCode] = Promise()
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
            promise.set_exception(client_error(error))
            return promise
        state.end_transaction(producer_id, committed)
        self._confirming.when_committed(self._last_offset, _complete(promise, ErrorCode.NONE))
        return promise

    def flush(self) -> None:
        """Append the open batch. If that fails, it fails for each of its operations."""
        batch, self._batch = self._batch, None
        if batch is None:
            return
        try:
            self._append(batch.records)
        except KafkaError as error:
            _fail(batch, client_error(error))
            return
        last = self._last_offset
        offset = last - len(batch.records) + 1
        for operation, count in batch.operations:
            operation.stored(offset)
            offset += count
        for operation, _ in batch.operations:
            self._confirming.when_committed(last, operation.done)

    # The way into the log

    def _run(self, operation: Operation[R, T], scope: str | None) -> Write[R, T]:
        if self._batch is not None and (scope is None or self._batch.is_changing(scope)):
            self.flush()
        return operation()

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
        scope: str | None,
        producer_id: int,
        producer_epoch: int,
    ) -> None:
        if result.finish is not None:
            done = _both(result.finish, done)
        if not result.records:
            self._confirming.when_committed(self._last_offset, done)
            return
        try:
            operation = _Storing(self.state, result, done, producer_id)
            if scope is not None and producer_id == NO_PRODUCER_ID:
                self._join(operation, scope, only_offsets=False)
                return
            self.flush()
            self._append(operation.encode(0), producer_id, producer_epoch)
        except KafkaError as error:
            done(client_error(error))
            return
        operation.stored(self._last_offset - len(result.records) + 1)
        self._confirming.when_committed(self._last_offset, done)

    def _join(self, operation: Queued, scope: str, *, only_offsets: bool) -> None:
        """Into the open batch, or into the next one if this is full."""
        batch = self._batch
        try:
            # Now, so that what cannot be stored is refused alone and not with all that comes in this round.
            records = operation.encode(0 if batch is None else len(batch.records))
            size = sum(map(len, records))
            if batch is not None and not batch.has_room(len(records), size):
                self.flush()
                batch = None
                records = operation.encode(0)
        except KafkaError as error:
            operation.done(error)
            return
        if batch is None:
            batch = self._batch = OpenBatch(self.log.largest_batch)
            self._turn.put_off_to_round(self._end_round)
        batch.add(operation, records, size, scope, only_offsets=only_offsets)

    def _end_round(self) -> None:
        if not self._closed:
            self.flush()

    def _append(
        self,
        records: Sequence[bytes],
        producer_id: int = NO_PRODUCER_ID,
        producer_epoch: int = NO_PRODUCER_EPOCH,
    ) -> None:
        batch = seal_batch(
            records,
            self._clock.now_ms(),
            codec=self._codec,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
        )
        self._last_offset = self.log.append(batch)


class _Storing(Generic[S, R]):
    """An operation of any kind on its way into the log."""

    __slots__ = ("_producer_id", "_result", "_state", "done")

    def __init__(self, state: S, result: Write[R, object], done: Done, producer_id: int) -> None:
        self._state = state
        self._result = result
        self._producer_id = producer_id
        self.done = done

    def encode(self, index: int) -> list[bytes]:
        encode = self._state.encode
        try:
            return [
                plain_record(number, *encode(record))
                for number, record in enumerate(self._result.records, index)
            ]
        except (struct.error, ValueError) as error:
            # A text or a number that the request's encoding can say and the record's cannot.
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"This cannot be stored: {error}.") from None

    def stored(self, offset: int) -> None:
        result = self._result
        if result.apply is not None:
            result.apply()
            return
        for each, record in enumerate(result.records, offset):
            self._state.replay(record, each, self._producer_id)


def _fail(batch: OpenBatch, error: KafkaError) -> None:
    for operation, _ in batch.operations:
        operation.done(error)


def _complete(promise: Promise[T], reply: T) -> Done:
    def done(error: KafkaError | None) -> None:
        if error is None:
            promise.set_result(reply)
        else:
            promise.set_exception(error)

    return done


def _both(first: Done, second: Done) -> Done:
    def done(error: KafkaError | None) -> None:
        first(error)
        second(error)

    return done
