"""Before a transaction first writes to a partition, its coordinator is asked (KIP-890).

A client that names its partitions first (before Produce 12) is only verified; a newer one is enlisted by its write. The
answer is valid until a marker is written; the guard taken before asking detects that.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from headrace.server.api.engines import Engines
from headrace.server.log.producers import VerificationGuard
from headrace.server.replica.partition import Partition
from headrace.server.transactions.metadata import TopicPartition
from headrace.wire.batch import BatchHeader, parse_header
from headrace.wire.errors import ErrorCode, KafkaError
from headrace.wire.produce import TOPIC_IDS, ProduceRequest

log = logging.getLogger(__name__)

ENLISTED_BY_WRITING = 12
KNOWS_ABORTABLE = 11

_ASK_AGAIN = {
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
}


class Verification:
    """Verifies one produce request: which partitions need it, and the coordinator's answers."""

    def __init__(self, engines: Engines, request: ProduceRequest, version: int) -> None:
        self._engines = engines
        self._version = version
        self._transactional_id = request.transactional_id or ""
        self._writes: dict[Partition, BatchHeader] = {}
        self._guards: dict[Partition, VerificationGuard] = {}
        self._codes: dict[TopicPartition, ErrorCode] = {}
        self._task: asyncio.Task[None] | None = None
        by_id = version >= TOPIC_IDS
        for topic, partitions in request.topics:
            for index, records in partitions:
                try:
                    partition = engines.replicas.find(topic, index, by_id)
                    if records is not None:
                        self._look_at(partition, records)
                except KafkaError:
                    continue  # The append reports the error to the client.

    def _look_at(self, partition: Partition, records: memoryview) -> None:
        header = parse_header(records)
        if not header.is_transactional or header.producer_id < 0:
            return
        if (
            not self._engines.logs.environment.transaction_verification
            and self._version < ENLISTED_BY_WRITING
        ):
            return
        if not partition.log.has_ongoing_transaction(header.producer_id, header.producer_epoch):
            self._writes[partition] = header

    @property
    def needed(self) -> bool:
        return bool(self._writes)

    def verified_locally(self) -> bool:
        """Verify at once if this broker is the coordinator; False when `start` is needed."""
        if self._version >= ENLISTED_BY_WRITING:
            return False
        answers = self._engines.transactions.enlisting.verify_locally(self._transactional_id, self._begin())
        if answers is None:
            return False
        self._codes = answers
        return True

    def start(self, then: Callable[[], None], failed: Callable[[], None]) -> None:
        """Ask, then call `then` on the loop, or `failed` after an error, which is logged."""
        self._task = asyncio.get_running_loop().create_task(self._ask(then, failed))

    async def _ask(self, then: Callable[[], None], failed: Callable[[], None]) -> None:
        try:
            self._codes = await self._engines.transactions.enlisting.ask_in_time(
                self._transactional_id, self._version < ENLISTED_BY_WRITING, self._begin
            )
            then()
        except Exception:
            log.exception("a transactional produce failed inside the broker")
            failed()

    def _begin(self) -> dict[tuple[int, int], list[TopicPartition]]:
        """Take a guard for each write; returns the partitions to ask about, by producer."""
        producers: dict[tuple[int, int], list[TopicPartition]] = {}
        self._guards.clear()
        for partition, header in self._writes.items():
            guard = partition.log.start_verification(
                header.producer_id,
                header.base_sequence,
                header.producer_epoch,
                supports_epoch_bump=self._version >= ENLISTED_BY_WRITING,
            )
            if guard is not None:
                self._guards[partition] = guard
                producer = (header.producer_id, header.producer_epoch)
                producers.setdefault(producer, []).append((partition.topic, partition.index))
        return producers

    def guard_for(self, partition: Partition) -> VerificationGuard | None:
        """The guard to append with; raises the coordinator's refusal as an error this client understands."""
        guard = self._guards.get(partition)
        if guard is None:
            return None
        code = self._codes.get((partition.topic, partition.index), ErrorCode.COORDINATOR_NOT_AVAILABLE)
        if code is ErrorCode.NONE:
            return guard
        if code in _ASK_AGAIN:
            if code is not ErrorCode.CONCURRENT_TRANSACTIONS or self._version < ENLISTED_BY_WRITING:
                code = ErrorCode.NOT_ENOUGH_REPLICAS
        elif code is ErrorCode.PRODUCER_FENCED:
            code = ErrorCode.INVALID_PRODUCER_EPOCH
        elif code is ErrorCode.TRANSACTION_ABORTABLE and self._version < KNOWS_ABORTABLE:
            code = ErrorCode.INVALID_TXN_STATE
        raise KafkaError(
            code, f"{partition} is not part of an open transaction of this producer: {code.name}"
        )
