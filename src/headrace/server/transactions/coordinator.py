"""The transaction coordinator of a broker: finds the shard of a transactional id, takes the step, sends the markers.

A step is stored before it is answered. A decision (prepare) is answered as soon as it is stored: the markers follow in
the background, again after a restart, until every partition has one.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from headrace.clock import Clock
from headrace.server.cluster.internal_topics import TRANSACTION_STATE
from headrace.server.config.broker import BrokerConfig
from headrace.server.coordinator.log import CoordinatorLog
from headrace.server.coordinator.partitioning import partition_for
from headrace.server.coordinator.promise import Promise, run
from headrace.server.coordinator.runtime import CoordinatorRuntime
from headrace.server.coordinator.write import Write
from headrace.server.replica.turn import Turn
from headrace.server.transactions import rules
from headrace.server.transactions.ending import (
    Ending,
    SendMarkers,
    TransactionShard,
    known_transaction,
    store,
)
from headrace.server.transactions.metadata import NO_PRODUCER_ID, Status, TopicPartition, Transaction
from headrace.server.transactions.records import FLEXIBLE, TransactionRecord
from headrace.server.transactions.state import TransactionState
from headrace.wire.errors import ErrorCode, KafkaError

log = logging.getLogger(__name__)

FORGOTTEN_AT_ONCE = 500
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class TransactionConfig:
    """The settings of the transaction coordinator."""

    partitions: int
    max_timeout_ms: int
    abort_interval_ms: int
    expiration_ms: int
    expiration_interval_ms: int
    commit_timeout_ms: int

    @classmethod
    def of(cls, config: BrokerConfig) -> TransactionConfig:
        return cls(
            config.integer("transaction.state.log.num.partitions"),
            config.integer("transaction.max.timeout.ms"),
            config.integer("transaction.abort.timed.out.transaction.cleanup.interval.ms"),
            config.integer("transactional.id.expiration.ms"),
            config.integer("transaction.remove.expired.transaction.cleanup.interval.ms"),
            config.integer("offsets.commit.timeout.ms"),
        )


class TransactionCoordinator:
    def __init__(
        self,
        config: TransactionConfig,
        clock: Clock,
        partition_count: Callable[[], int | None],
        new_producer_id: Callable[[], Awaitable[int]],
        send_markers: SendMarkers,
        turn: Turn,
        record_version: Callable[[], int] = lambda: FLEXIBLE,
    ) -> None:
        self._config = config
        self._clock = clock
        self._partition_count = partition_count
        self._new_producer_id = new_producer_id
        self._record_version = record_version
        self._ending = Ending(clock, send_markers, self.partition_for)
        self._runtime: CoordinatorRuntime[TransactionState, TransactionRecord] = CoordinatorRuntime(
            TRANSACTION_STATE, self._new_state, clock, turn, config.commit_timeout_ms
        )
        self._tasks: list[asyncio.Task[None]] = []

    # Life

    def start(self) -> None:
        loop = asyncio.get_running_loop()
        self._tasks = [
            loop.create_task(self._every(self._config.abort_interval_ms, self.abort_overdue)),
            loop.create_task(self._every(self._config.expiration_interval_ms, self.forget_expired)),
        ]

    def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        self._ending.close()
        self._runtime.close()

    def lead(self, partition: int, log_: CoordinatorLog, leader_epoch: int) -> None:
        self._ending.lead(partition, leader_epoch)
        self._runtime.lead(partition, log_)

    def resign(self, partition: int) -> None:
        self._runtime.resign(partition)
        self._ending.resign(partition)

    def _new_state(self, shard: TransactionShard) -> TransactionState:
        state = TransactionState(lambda: self._resume(shard, state), self._record_version)
        return state

    def _resume(self, shard: TransactionShard, state: TransactionState) -> None:
        """After loading: finish what was decided before."""
        for transaction in list(state.transactions.values()):
            if transaction.status.ending:
                self._ending.finish(shard, transaction)

    async def _every(self, interval_ms: int, job: Callable[[], Awaitable[None]]) -> None:
        while True:
            await self._clock.sleep(interval_ms / 1000)
            try:
                await job()
            except Exception:
                log.exception("%s failed and is tried again in %d ms", job.__name__, interval_ms)

    def partition_for(self, transactional_id: str) -> int:
        return partition_for(transactional_id, self._partition_count() or self._config.partitions)

    def _shard(self, transactional_id: str) -> TransactionShard:
        if not transactional_id:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "The transactional id must not be empty.")
        return self._runtime.shard(self.partition_for(transactional_id))

    # Steps

    async def init_producer_id(
        self, transactional_id: str, timeout_ms: int, expected: tuple[int, int]
    ) -> tuple[int, int]:
        """The producer's id and new epoch; CONCURRENT_TRANSACTIONS while its last transaction is being aborted."""
        self._shard(transactional_id)
        if not 0 < timeout_ms <= self._config.max_timeout_ms:
            raise KafkaError(
                ErrorCode.INVALID_TRANSACTION_TIMEOUT,
                f"transaction.timeout.ms {timeout_ms} is not between 1 and the broker's transaction.max.timeout.ms "
                f"{self._config.max_timeout_ms}.",
            )
        await self.wait_for_ending(transactional_id)
        shard = self._shard(transactional_id)
        fresh_id = await self._id_if_needed(shard, transactional_id)
        current = known_transaction(shard, transactional_id)
        if current is not None and current.status is Status.ONGOING:
            await self._fence(shard, current, expected, fresh_id)
            raise rules.busy()

        def step() -> Transaction:
            return rules.initialise(
                shard.state.transactions.get(transactional_id),
                transactional_id,
                timeout_ms,
                expected,
                fresh_id,
                self._clock.now_ms(),
            )

        initialised = await store(shard, transactional_id, step)
        return initialised.producer_id, initialised.producer_epoch

    def _needs_id(self, shard: TransactionShard, transactional_id: str) -> bool:
        known = known_transaction(shard, transactional_id)
        return known is None or known.epoch_exhausted

    async def _id_if_needed(self, shard: TransactionShard, transactional_id: str) -> int:
        if self._needs_id(shard, transactional_id):
            return await self._new_producer_id()
        return NO_PRODUCER_ID

    async def _fence(
        self, shard: TransactionShard, current: Transaction, expected: tuple[int, int], fresh_id: int
    ) -> None:
        """A new producer finds the old one's transaction open: abort it under a new epoch."""
        producer_id, epoch = expected
        if producer_id != NO_PRODUCER_ID and (producer_id, epoch) != (
            current.producer_id,
            current.producer_epoch,
        ):
            raise rules.fenced()
        await self._ending.decide(
            shard, current.transactional_id, lambda: rules.fence(current, fresh_id, self._clock.now_ms())
        )

    def add_partitions(
        self,
        transactional_id: str,
        producer_id: int,
        epoch: int,
        partitions: Iterable[TopicPartition],
        client_version: int = 0,
    ) -> Promise[Transaction]:
        def add() -> Promise[Transaction]:
            shard = self._shard(transactional_id)
            return store(
                shard,
                transactional_id,
                lambda: rules.add_partitions(
                    shard.state.transactions.get(transactional_id),
                    producer_id,
                    epoch,
                    partitions,
                    client_version,
                    self._clock.now_ms(),
                ),
            )

        # A write that enlists itself does not wait: the last marker voids the guard it holds, and it must begin anew.
        return self._after_last(transactional_id, add) if client_version < 2 else _attempt(add)

    def verify(
        self, transactional_id: str, producer_id: int, epoch: int, partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, ErrorCode]:
        known = known_transaction(self._shard(transactional_id), transactional_id)
        return {each: rules.verify(known, producer_id, epoch, each) for each in partitions}

    def end(
        self, transactional_id: str, producer_id: int, epoch: int, commit: bool, client_version: int
    ) -> Promise[tuple[int, int]]:
        """Decide the transaction; the id and epoch the producer goes on with."""

        def end(shard: TransactionShard, fresh_id: int) -> Promise[tuple[int, int]]:
            def step() -> Transaction:
                known = shard.state.transactions.get(transactional_id)
                now = self._clock.now_ms()
                return rules.end(known, producer_id, epoch, commit, client_version, fresh_id, now)

            decided = self._ending.decide(shard, transactional_id, step)
            return decided.then(lambda known: rules.answer_to_end(known.result()))

        async def end_with_new_id(shard: TransactionShard) -> tuple[int, int]:
            return await end(shard, await self._id_if_needed(shard, transactional_id))

        def begin() -> Promise[tuple[int, int]]:
            shard = self._shard(transactional_id)
            if client_version >= 2 and self._needs_id(shard, transactional_id):
                return run(end_with_new_id(shard))
            return end(shard, NO_PRODUCER_ID)

        return self._after_last(transactional_id, begin)

    async def abort_overdue(self) -> None:
        """Abort transactions that have been open longer than their timeout."""
        now = self._clock.now_ms()
        for shard in self._runtime.loaded():
            for transaction in list(shard.state.transactions.values()):
                if (
                    transaction.status is Status.ONGOING
                    and transaction.started_ms + transaction.timeout_ms < now
                ):
                    await self._abort(shard, transaction)

    async def _abort(self, shard: TransactionShard, transaction: Transaction) -> None:
        log.info("%s was open longer than its timeout and is aborted", transaction.transactional_id)
        try:
            fresh_id = await self._id_if_needed(shard, transaction.transactional_id)
            if known_transaction(shard, transaction.transactional_id) is not transaction:
                return
            await self._ending.decide(
                shard,
                transaction.transactional_id,
                lambda: rules.fence(transaction, fresh_id, self._clock.now_ms()),
            )
        except KafkaError as error:
            log.info("%s could not be aborted yet: %s", transaction.transactional_id, error)

    async def forget_expired(self) -> None:
        """Remove transactional ids that have been unused for transactional.id.expiration.ms."""
        oldest = self._clock.now_ms() - self._config.expiration_ms
        for shard in self._runtime.loaded():
            try:
                while await shard.write(partial(_forget_some, shard, oldest)):
                    pass
            except KafkaError as error:
                log.info("expired transactional ids stay for now: %s", error)

    # Looking

    def describe(self, transactional_id: str) -> Transaction:
        found = known_transaction(self._shard(transactional_id), transactional_id)
        if found is None:
            raise KafkaError(
                ErrorCode.TRANSACTIONAL_ID_NOT_FOUND, f"No transactional id {transactional_id} is known here."
            )
        return found

    def all(self) -> Iterator[Transaction]:
        for shard in self._runtime.shards():
            yield from shard.state.transactions.values()

    def loaded(self) -> Iterator[Transaction]:
        """The same as far as they are loaded, for looking at."""
        for state in self._runtime.states():
            yield from state.transactions.values()

    # The last transaction

    def _after_last(self, transactional_id: str, step: Callable[[], Promise[T]]) -> Promise[T]:
        """Take a step now, or a little later if the last transaction is just being ended."""

        async def wait() -> T:
            await self.wait_for_ending(transactional_id)
            return await step()

        return run(wait()) if self._ending.is_under_way(transactional_id) else _attempt(step)

    async def wait_for_ending(self, transactional_id: str) -> None:
        """When the last transaction is just being ended, wait for that a little."""
        known = known_transaction(self._shard(transactional_id), transactional_id)
        if known is not None and known.status.ending:
            await self._ending.wait_a_little(transactional_id)


def _attempt(step: Callable[[], Promise[T]]) -> Promise[T]:
    try:
        return step()
    except KafkaError as error:
        failed: Promise[T] = Promise()
        failed.set_exception(error)
        return failed


def _forget_some(shard: TransactionShard, oldest: int) -> Write[TransactionRecord, int]:
    """Tombstones for ids unused since `oldest`, as many as one batch should have; the reply is their number."""
    records: list[TransactionRecord] = []
    for transaction in shard.state.transactions.values():
        if len(records) == FORGOTTEN_AT_ONCE:
            break
        ended = transaction.status is Status.EMPTY or transaction.status.ended
        if ended and transaction.updated_ms < oldest:
            records.append(TransactionRecord(transaction.transactional_id, None))
    return Write(records, len(records))
