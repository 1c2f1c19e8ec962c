"""A share group's part of one partition, on the partition's leader: loaded from the share coordinator, then handed out and taken back.

    LOADING ──► ACTIVE ──► GONE
       └───── failed ───────┘

What ends a delivery goes to the share coordinator, one request at a time for each partition: what arrives meanwhile goes with
the next one. Fetches that found nothing wait in a queue, and the first is asked first when there may be something again. GONE
is where a lost leadership, a reset of the group's offsets, or a failed load leads: the next request starts anew.
"""

from __future__ import annotations

import asyncio
import enum
import logging
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from typing import NamedTuple, Protocol

from headrace.clock import Clock, Timer
from headrace.server.coordinator.promise import Promise, run
from headrace.server.replica.partition import Partition
from headrace.server.replica.turn import Turn
from headrace.server.share.chunk import Chunk, read_chunk
from headrace.server.share.coordinator.records import ShareKey
from headrace.server.share.coordinator.state import NOT_SET, StoredState
from headrace.server.share.in_flight import Acknowledgement, Acquired, Change, InFlight
from headrace.server.share.settings import ShareGroupSettings
from headrace.server.share.states import DeadRecords, StateBatch
from headrace.wire.errors import ErrorCode, KafkaError

log = logging.getLogger(__name__)

RETRY_EXPIRY_SECONDS = 1.0
"""When the end of a lock could not be stored, it is tried again."""


class State(enum.Enum):
    LOADING = enum.auto()
    ACTIVE = enum.auto()
    GONE = enum.auto()


class Persisting(Protocol):
    async def read(self, key: ShareKey, leader_epoch: int) -> StoredState: ...

    async def write(
        self,
        key: ShareKey,
        state_epoch: int,
        leader_epoch: int,
        start_offset: int,
        complete_count: int,
        batches: Sequence[StateBatch],
    ) -> None: ...


class DeadLetters(Protocol):
    async def send(self, key: ShareKey, partition: Partition, dead: Sequence[DeadRecords]) -> None:
        """Returns when they are written, or cannot be."""
        ...


class Waiter(Protocol):
    def share_moved(self, partition: SharePartition) -> None:
        """There may be records to take, or the partition is gone."""
        ...


class Means(NamedTuple):
    """What every share partition works with."""

    clock: Clock
    turn: Turn
    disk: Executor
    persister: Persisting
    dead_letters: DeadLetters
    settings: Callable[[str], ShareGroupSettings]


class SharePartition:
    def __init__(
        self, key: ShareKey, partition: Partition, means: Means, on_gone: Callable[[SharePartition], None]
    ) -> None:
        self.key = key
        self.partition = partition
        self.state = State.LOADING
        self.error: KafkaError | None = None
        """Why it is gone."""
        self.users = 0
        """Sessions that have it."""
        self._leader_epoch = partition.leader_epoch
        self._means = means
        self._on_gone = on_gone
        self._flight = InFlight(0)
        self._state_epoch = 0
        self._queue: list[tuple[Change, Callable[[KafkaError | None], None]]] = []
        self._writing = False
        self._waiters: deque[Waiter] = deque()
        self._wake_due = False
        self._timer: Timer | None = None
        self._timer_due = 0.0
        partition.watch(self)
        run(self._load())

    def __str__(self) -> str:
        return f"share group {self.key.group_id} in {self.partition}"

    @property
    def flight(self) -> InFlight:
        return self._flight

    @property
    def settings(self) -> ShareGroupSettings:
        return self._means.settings(self.key.group_id)

    @property
    def is_current(self) -> bool:
        return self.partition.is_leader and self.partition.leader_epoch == self._leader_epoch

    # Loading and leaving

    async def _load(self) -> None:
        try:
            stored = await self._means.persister.read(self.key, self._leader_epoch)
            start = stored.start_offset
            if start == NOT_SET:
                start = await self._first_offset()
                # At once: a group that begins at the end must not begin later after a change of leaders.
                await self._means.persister.write(
                    self.key, stored.state_epoch, self._leader_epoch, start, 0, ()
                )
        except KafkaError as error:
            log.info("%s cannot be loaded: %s", self, error)
            self.leave(_for_client(error))
            return
        if self.state is not State.LOADING:
            return
        self._flight = InFlight(start, stored.batches)
        self._state_epoch = stored.state_epoch
        self.state = State.ACTIVE
        self._wake()

    async def _first_offset(self) -> int:
        """Where the group begins, as its settings say."""
        settings, records = self.settings, self.partition.log
        if settings.reset == "earliest":
            return records.log_start_offset
        ago = settings.reset_duration_ms
        if ago is not None:
            since = self._means.clock.now_ms() - ago
            loop = asyncio.get_running_loop()
            found = await loop.run_in_executor(self._means.disk, records.offset_for_timestamp, since)
            if found is not None:
                return min(found.offset, records.high_watermark)
        return records.high_watermark

    def leave(self, error: KafkaError) -> None:
        """Forget everything; whoever comes next begins with what is stored."""
        if self.state is State.GONE:
            return
        self.state, self.error = State.GONE, error
        self.partition.unwatch(self)
        if self._timer is not None:
            self._timer.cancel()
        queue, self._queue = self._queue, []
        for _, done in queue:
            done(error)
        self._on_gone(self)
        waiters, self._waiters = self._waiters, deque()
        for waiter in waiters:
            waiter.share_moved(self)

    def leave_if_idle(self) -> None:
        """The last session has left it: the next one begins with what is stored, which an administrator may have reset."""
        idle = self.users == 0 and not self._queue and not self._writing
        if self.state is State.ACTIVE and idle and not self._flight.has_acquired():
            self.leave(KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, "Nobody used the partition; ask again."))

    def partition_moved(self, partition: Partition) -> None:
        """The log grew, or its role changed."""
        if not self.is_current:
            self.leave(not_leader(self.partition))
        elif self._waiters:
            self._wake()

    # Waiting

    def wait(self, waiter: Waiter) -> None:
        self._waiters.append(waiter)

    def stop_waiting(self, waiter: Waiter) -> None:
        if waiter in self._waiters:
            self._waiters.remove(waiter)

    def _wake(self) -> None:
        if not self._wake_due and self._waiters:
            self._wake_due = True
            self._means.turn.put_off(self._serve_waiters)

    def _serve_waiters(self) -> None:
        """In the order in which they came, for as long as there is something."""
        self._wake_due = False
        for _ in range(len(self._waiters)):
            if not self._waiters or (self.state is State.ACTIVE and not self.has_records):
                return
            self._waiters.popleft().share_moved(self)

    # Handing out

    @property
    def limit(self) -> int:
        records = self.partition.log
        return records.last_stable_offset if self.settings.read_committed else records.high_watermark

    @property
    def has_records(self) -> bool:
        """Whether a member could get some now."""
        flight = self._flight
        offset = flight.next_offset()
        if offset >= flight.end and flight.in_flight >= self.settings.most_locks:
            return False
        return offset < self.limit

    def reading(self, max_bytes: int, most: int) -> Callable[[bool], Chunk | None] | None:
        """How to read what the log holds from the first record on that nobody has, about `most` of which can be taken; None
        while there is nothing to take.

        To be called with whether it must not wait for the disk, then in a thread; nothing is taken yet.
        """
        records = self.partition.log
        self._flight.move_start(records.log_start_offset)
        if not self.has_records:
            return None
        offset, limit, committed = self._flight.next_offset(), self.limit, self.settings.read_committed
        enough = most + max(self._flight.end - offset, 0)
        return lambda nowait: read_chunk(
            records, offset, limit, max_bytes, enough, read_committed=committed, nowait=nowait
        )

    def acquire(self, member: str, chunk: Chunk, most: int, *, exact: bool, group_by: int) -> list[Acquired]:
        """Lock for a member what is in the chunk and still free."""
        settings = self.settings
        deadline = self._means.clock.monotonic() + settings.lock_ms / 1000
        acquired = self._flight.acquire(
            member,
            chunk.offset,
            [(batch.first, batch.last) for batch in chunk.batches],
            chunk.read_to,
            most,
            deadline,
            settings.most_locks,
            exact=exact,
            group_by=group_by,
        )
        if acquired:
            self._arm(deadline)
        return acquired

    # Taking back

    def acknowledge(self, member: str, acknowledgements: Sequence[Acknowledgement]) -> Promise[None]:
        """Known when it is stored. What is wrong with it is raised."""
        if self.state is not State.ACTIVE:
            raise self.error or KafkaError(
                ErrorCode.INVALID_RECORD_STATE, f"{self.partition} has a new leader; the locks have ended."
            )
        settings = self.settings
        renewed = self._means.clock.monotonic() + settings.lock_ms / 1000 if settings.may_renew else None
        change = self._flight.acknowledge(member, acknowledgements, settings.delivery_limit, renewed)
        promise: Promise[None] = Promise()

        def done(error: KafkaError | None) -> None:
            if error is None:
                promise.set_result(None)
            else:
                promise.set_exception(error)

        self._end(change, done)
        return promise

    def release(self, member: str) -> None:
        """The member's session is over."""
        if self.state is State.ACTIVE:
            self._end(self._flight.release(member), _log_nothing)

    def _expire(self) -> None:
        self._timer = None
        if self.state is not State.ACTIVE:
            return
        if not self.is_current:
            self.leave(not_leader(self.partition))
            return

        def done(error: KafkaError | None) -> None:
            if error is not None and self.state is State.ACTIVE:
                log.warning("%s: the end of a lock was not stored: %s", self, error)

        self._end(self._flight.expire(self._means.clock.monotonic(), self.settings.delivery_limit), done)
        due = self._flight.next_deadline()
        if due is not None:
            self._arm(due)

    def _arm(self, due: float) -> None:
        if self._timer is not None:
            if self._timer_due <= due:
                return
            self._timer.cancel()
        clock = self._means.clock
        self._timer_due = due
        self._timer = clock.call_later(max(due - clock.monotonic(), 0), self._expire)

    def _arm_anew(self) -> None:
        """Changes were undone: the locks of their records may have ended meanwhile, when nobody looked at them."""
        due = self._flight.next_deadline()
        if due is not None and self.state is State.ACTIVE:
            self._arm(max(due, self._means.clock.monotonic() + RETRY_EXPIRY_SECONDS))

    def _end(self, change: Change, done: Callable[[KafkaError | None], None]) -> None:
        if not change.batches:
            done(None)
        elif change.dead and self.settings.dead_letter_topic:
            run(self._bury(change, done))
        else:
            self._store(change, done)

    async def _bury(self, change: Change, done: Callable[[KafkaError | None], None]) -> None:
        """Dead letters are written before the records are given up, so that none is lost between the two."""
        await self._means.dead_letters.send(self.key, self.partition, change.dead)
        if self.state is State.ACTIVE:
            self._store(change, done)
        else:
            done(self.error)

    def _store(self, change: Change, done: Callable[[KafkaError | None], None]) -> None:
        self._queue.append((change, done))
        if not self._writing:
            self._writing = True
            run(self._write())

    async def _write(self) -> None:
        try:
            while self._queue:
                queue, self._queue = self._queue, []
                error = await self._write_changes([change for change, _ in queue])
                for change, done in queue:
                    if error is None:
                        self._flight.complete(change)
                    else:
                        self._flight.undo(change)
                    done(error)
                if error is not None:
                    self._arm_anew()
                self._wake()
        finally:
            self._writing = False
        self.leave_if_idle()

    async def _write_changes(self, changes: Sequence[Change]) -> KafkaError | None:
        start, complete = self._flight.after(changes)
        batches = [batch for change in changes for batch in change.batches]
        try:
            await self._means.persister.write(
                self.key, self._state_epoch, self._leader_epoch, start, complete, batches
            )
        except KafkaError as error:
            failure = _for_client(error)
            if error.code not in _PASSING:
                # A newer leader, or offsets that were reset: this is no longer the truth.
                log.info("%s starts anew: %s", self, error)
                self.leave(failure)
            else:
                log.warning("%s: acknowledgements were not stored: %s", self, error)
            return failure
        return None


_PASSING = frozenset(
    {
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    }
)
_FOR_CLIENTS = {
    ErrorCode.NOT_COORDINATOR: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.FENCED_LEADER_EPOCH: ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.FENCED_STATE_EPOCH: ErrorCode.INVALID_RECORD_STATE,
    ErrorCode.INVALID_REQUEST: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
}
"""What clients know of the errors of a share coordinator. A state that is not there yet will be: they try again."""


def _for_client(error: KafkaError) -> KafkaError:
    return KafkaError(_FOR_CLIENTS.get(error.code, error.code), error.message)


def not_leader(partition: Partition) -> KafkaError:
    return KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"This broker does not lead {partition} any more.")


def _log_nothing(error: KafkaError | None) -> None:
    """The locks end by themselves, if it could not be stored."""
