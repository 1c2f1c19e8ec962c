"""Asks the controller to shrink or grow ISRs (AlterPartition), many partitions in one request, one at a time.

Until the controller answers, a proposal can only make the maximal ISR larger (see `leadership.py`). A proposal that the
controller refuses is withdrawn; one that could not be sent is sent again. When the controller answers that the partition has
changed, the proposal may be that very change (sent before, with the answer lost): it counts until the image shows the
result.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from headrace.clock import Clock
from headrace.server.replica.partition import Partition
from headrace.wire.errors import ErrorCode, KafkaError
from headrace.wire.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    BrokerState,
    PartitionData,
    TopicData,
)

log = logging.getLogger(__name__)

RETRY_SECONDS = 0.2

_REFUSED = {ErrorCode.INELIGIBLE_REPLICA, ErrorCode.OPERATION_NOT_ATTEMPTED, ErrorCode.INVALID_REQUEST}
_CHANGED = {
    ErrorCode.INVALID_UPDATE_VERSION,
    ErrorCode.FENCED_LEADER_EPOCH,
    ErrorCode.NEW_LEADER_ELECTED,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.UNKNOWN_TOPIC_ID,
}

Ask = Callable[[AlterPartitionRequest], Awaitable[AlterPartitionResponse]]


class IsrChanges:
    def __init__(self, broker_id: int, broker_epoch: Callable[[], int], ask: Ask, clock: Clock) -> None:
        self._broker_id = broker_id
        self._broker_epoch = broker_epoch
        self._ask = ask
        self._clock = clock
        self._queued: dict[Partition, frozenset[int]] = {}
        self._wakeup = asyncio.Event()
        self.shrinks = self.expansions = self.failures = 0
        """How many ISRs became smaller and larger, and how many proposals were refused."""

    def propose(self, partition: Partition, isr: frozenset[int]) -> None:
        """Ask for this ISR; nothing when the partition already waits for an answer.

        An ISR without the leader is a resignation; an empty one asks for a new leader epoch, because no other replica could
        lead.
        """
        leadership = partition.leadership
        if leadership is None or leadership.proposed is not None or isr == leadership.isr:
            return
        leadership.proposed = isr
        self._queued[partition] = isr
        self._wakeup.set()

    async def run(self) -> None:
        while True:
            await self._wakeup.wait()
            self._wakeup.clear()
            batch, self._queued = self._queued, {}
            if not batch:
                continue
            try:
                unanswered = self._take(batch, await self._ask(self._request(batch)))
            except (KafkaError, OSError) as error:
                log.info("the controller could not be asked about %d ISRs: %s", len(batch), error)
                unanswered = batch
            except Exception:
                log.exception("asking the controller about %d ISRs failed", len(batch))
                unanswered = batch
            if unanswered:
                self._put_back(unanswered)
                await self._clock.sleep(RETRY_SECONDS)

    def _put_back(self, batch: dict[Partition, frozenset[int]]) -> None:
        for partition, isr in batch.items():
            if partition.leadership is not None and partition.leadership.proposed == isr:
                self._queued.setdefault(partition, isr)
        self._wakeup.set()

    def _request(self, batch: dict[Partition, frozenset[int]]) -> AlterPartitionRequest:
        topics: dict[bytes, TopicData] = {}
        for partition, isr in batch.items():
            leadership = partition.leadership
            if leadership is None or leadership.proposed != isr:
                continue
            members = []
            for replica in sorted(isr):
                follower = leadership.followers.get(replica)
                epoch = self._broker_epoch() if replica == self._broker_id else -1
                members.append(BrokerState(replica, follower.broker_epoch if follower is not None else epoch))
            topic = topics.setdefault(partition.topic_id.bytes, TopicData(topic_id=partition.topic_id))
            topic.partitions.append(
                PartitionData(
                    partition_index=partition.index,
                    leader_epoch=partition.leader_epoch,
                    new_isr=sorted(isr),
                    new_isr_with_epochs=members,
                    partition_epoch=leadership.partition_epoch,
                )
            )
        return AlterPartitionRequest(self._broker_id, self._broker_epoch(), list(topics.values()))

    def _take(
        self, batch: dict[Partition, frozenset[int]], response: AlterPartitionResponse
    ) -> dict[Partition, frozenset[int]]:
        """Apply the answers; returns the proposals that must be sent again."""
        if response.error_code:
            log.info("the controller refused: %s", ErrorCode(response.error_code).name)
            return batch
        answers = {
            (topic.topic_id.bytes, answer.partition_index): answer
            for topic in response.topics
            for answer in topic.partitions
        }
        again = {}
        for partition, isr in batch.items():
            leadership = partition.leadership
            answer = answers.get((partition.topic_id.bytes, partition.index))
            if leadership is None or leadership.proposed != isr:
                continue
            code = ErrorCode(answer.error_code) if answer is not None else ErrorCode.UNKNOWN_SERVER_ERROR
            if (
                answer is not None
                and code is ErrorCode.NONE
                and answer.leader_epoch == partition.leader_epoch
            ):
                log.info("ISR of %s: %s -> %s", partition, sorted(leadership.isr), sorted(answer.isr))
                self.shrinks += len(answer.isr) < len(leadership.isr)
                self.expansions += len(answer.isr) > len(leadership.isr)
                leadership.confirm(answer.isr, answer.partition_epoch)
                partition.isr_changed()
            elif code in _REFUSED:
                log.info("the ISR of %s is unchanged: %s", partition, code.name)
                self.failures += 1
                leadership.withdraw(self._clock.monotonic())
                partition.isr_changed()
            elif code is ErrorCode.NONE or code in _CHANGED:
                log.info("the ISR of %s waits for newer metadata: %s", partition, code.name)
            else:
                again[partition] = isr
        return again
