"""Steps of transactions into the log, and what follows a decision: markers in every partition, then the last step.

A decision (prepare) is carried out in the background, again after a restart, until every partition has its marker.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable

from headrace.clock import Clock
from headrace.server.coordinator.promise import Promise
from headrace.server.coordinator.shard import Shard
from headrace.server.coordinator.write import Write
from headrace.server.transactions import rules
from headrace.server.transactions.metadata import Transaction
from headrace.server.transactions.records import TransactionRecord
from headrace.server.transactions.state import TransactionState
from headrace.wire.errors import KafkaError

MARKERS_SECONDS = 0.1
"""How long a request for the next transaction waits for the last one's markers, before the client has to ask again."""

TransactionShard = Shard[TransactionState, TransactionRecord]
SendMarkers = Callable[[Transaction, int], Awaitable[None]]
"""(transaction, coordinator epoch): returns when every partition of the transaction has its marker."""


def known_transaction(shard: TransactionShard, transactional_id: str) -> Transaction | None:
    """As the last step left it, which may still be in the open batch."""
    shard.settle(transactional_id)
    return shard.state.transactions.get(transactional_id)


def store(
    shard: TransactionShard,
    transactional_id: str,
    step: Callable[[], Transaction],
    *,
    at_once: bool = False,
) -> Promise[Transaction]:
    """Take a step, which is known when it is committed; so is one that changes nothing. Steps that requests ask for
    share a batch; a task takes its step `at_once`, since waiting for the end of the round would cost it another."""

    def operation() -> Write[TransactionRecord, Transaction]:
        after = step()
        if shard.state.transactions.get(transactional_id) is after:
            return Write((), after)
        return Write((TransactionRecord(transactional_id, after),), after)

    return shard.write(operation, None if at_once else transactional_id)


class Ending:
    """The decided transactions whose markers are on their way."""

    def __init__(self, clock: Clock, send_markers: SendMarkers, partition_for: Callable[[str], int]) -> None:
        self._clock = clock
        self._send_markers = send_markers
        self._partition_for = partition_for
        self._epochs: dict[int, int] = {}
        self._tasks: dict[tuple[int, str], asyncio.Task[None]] = {}

    def lead(self, partition: int, leader_epoch: int) -> None:
        self._epochs[partition] = leader_epoch

    def resign(self, partition: int) -> None:
        for key in [key for key in self._tasks if key[0] == partition]:
            self._tasks.pop(key).cancel()

    def close(self) -> None:
        for task in self._tasks.values():
            task.cancel()

    def is_under_way(self, transactional_id: str) -> bool:
        return self._key(transactional_id) in self._tasks

    async def wait_a_little(self, transactional_id: str) -> None:
        """Clients come back only after a pause, so it is worth a short one here."""
        task = self._tasks.get(self._key(transactional_id))
        if task is not None:
            with contextlib.suppress(TimeoutError):
                await self._clock.wait_for(asyncio.wait([task]), MARKERS_SECONDS)

    def decide(
        self, shard: TransactionShard, transactional_id: str, step: Callable[[], Transaction]
    ) -> Promise[Transaction]:
        """Store a decision and have it carried out. One that is not confirmed in time is in the log all the same, and
        nobody can take another: it is carried out as soon as it is confirmed, whatever the reply to the client says."""
        taken: list[Transaction] = []

        def deciding() -> Transaction:
            taken.append(step())
            return taken[0]

        def carry_out(decision: Promise[Transaction]) -> None:
            confirmed = decision.exception() is None
            for one in [decision.result()] if confirmed else taken:
                stands = confirmed or (
                    not shard.closed and shard.state.transactions.get(transactional_id) is one
                )
                if stands and one.status.ending:
                    self.finish(shard, one, confirmed)

        stored = store(shard, transactional_id, deciding)
        stored.when_done(carry_out)
        return stored

    def finish(self, shard: TransactionShard, transaction: Transaction, confirmed: bool = True) -> None:
        """Send the markers of a decided transaction, then store that it is complete."""
        key = self._key(transaction.transactional_id)
        self._tasks[key] = asyncio.get_running_loop().create_task(
            self._complete(shard, transaction, key, confirmed)
        )

    def _key(self, transactional_id: str) -> tuple[int, str]:
        return self._partition_for(transactional_id), transactional_id

    async def _complete(
        self, shard: TransactionShard, transaction: Transaction, key: tuple[int, str], confirmed: bool
    ) -> None:
        try:
            await self._carry_out(shard, transaction, self._epochs.get(key[0], 0), confirmed)
        finally:
            if self._tasks.get(key) is asyncio.current_task():
                del self._tasks[key]

    async def _carry_out(
        self, shard: TransactionShard, transaction: Transaction, epoch: int, confirmed: bool
    ) -> None:
        if not confirmed:
            await self._insist(shard, transaction.transactional_id, lambda: transaction)
            if shard.closed:
                return
        await self._send_markers(transaction, epoch)

        def step() -> Transaction:
            current = shard.state.transactions.get(transaction.transactional_id)
            if current is not transaction:
                return current or transaction
            return rules.complete(transaction, self._clock.now_ms())

        await self._insist(shard, transaction.transactional_id, step)

    async def _insist(
        self, shard: TransactionShard, transactional_id: str, step: Callable[[], Transaction]
    ) -> None:
        """Take a step however long it takes to be confirmed, unless another coordinator goes on from here."""
        while not shard.closed:
            try:
                await store(shard, transactional_id, step, at_once=True)
                return
            except KafkaError:
                # The next coordinator finds the decision in the log and finishes.
                if not shard.closed:
                    await self._clock.sleep(0.1)
