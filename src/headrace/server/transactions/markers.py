"""Markers end a transaction in every partition it reached: written here by leaders, sent there by the coordinator."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable

from headrace.clock import Clock
from headrace.server.cluster.image import MetadataImage
from headrace.server.cluster.internal_topics import CONSUMER_OFFSETS
from headrace.server.cluster.peers import Peers
from headrace.server.coordinator.promise import Promise
from headrace.server.groups.coordinator import GroupCoordinator
from headrace.server.log.producers import AppendOrigin
from headrace.server.replica.replicas import Replicas
from headrace.server.transactions.metadata import Status, TopicPartition, Transaction
from headrace.wire.errors import ErrorCode, KafkaError
from headrace.wire.markers import build_end_transaction_marker
from headrace.wire.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)

log = logging.getLogger(__name__)

VERSION = 2
RETRY_SECONDS = 0.1

_NOT_READY = {
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.NOT_COORDINATOR,
}
"""Errors of a group coordinator. The sender of markers knows only leaders, and retries with them."""


class MarkerWriter:
    """Writes markers into the partitions this broker leads."""

    def __init__(self, replicas: Replicas, groups: GroupCoordinator, clock: Clock) -> None:
        self._replicas = replicas
        self._groups = groups
        self._clock = clock

    async def write(
        self,
        producer_id: int,
        producer_epoch: int,
        coordinator_epoch: int,
        committed: bool,
        partitions: Iterable[TopicPartition],
        transaction_version: int = 0,
    ) -> dict[TopicPartition, ErrorCode]:
        """Answered when every marker is committed. What can be written at once is, before anything is waited for."""
        written = {
            (topic, index): self._append(
                topic, index, producer_id, producer_epoch, coordinator_epoch, committed, transaction_version
            )
            for topic, index in partitions
        }
        codes: dict[TopicPartition, ErrorCode] = {}
        for each, done in written.items():
            try:
                codes[each] = await done
            except KafkaError as error:
                codes[each] = error.code
            if codes[each] in _NOT_READY:
                codes[each] = ErrorCode.NOT_LEADER_OR_FOLLOWER
        return codes

    def _append(
        self,
        topic: str,
        index: int,
        producer_id: int,
        producer_epoch: int,
        coordinator_epoch: int,
        committed: bool,
        transaction_version: int,
    ) -> Promise[ErrorCode]:
        done: Promise[ErrorCode] = Promise()
        try:
            partition = self._replicas.find(topic.encode(), index, by_id=False)
            if transaction_version >= 2:
                partition.log.check_marker_of_its_own_epoch(producer_id, producer_epoch)
            if topic == CONSUMER_OFFSETS:
                return self._groups.end_transaction(
                    index, producer_id, producer_epoch, coordinator_epoch, committed
                )
            marker = build_end_transaction_marker(
                producer_id=producer_id,
                producer_epoch=producer_epoch,
                coordinator_epoch=coordinator_epoch,
                committed=committed,
                timestamp=self._clock.now_ms(),
            )
            appended = partition.append(memoryview(marker), AppendOrigin.COORDINATOR, acks=-1)
            partition.when_committed(appended.last_offset, done.set_result)
        except KafkaError as error:
            done.set_result(error.code)
        return done


class MarkerSender:
    """Sends a decided transaction's markers to the leaders, and retries until each has accepted its own."""

    def __init__(
        self,
        broker_id: int,
        image: Callable[[], MetadataImage],
        writer: MarkerWriter,
        peers: Peers,
        clock: Clock,
    ) -> None:
        self._broker_id = broker_id
        self._image = image
        self._writer = writer
        self._peers = peers
        self._clock = clock

    async def send(self, transaction: Transaction, coordinator_epoch: int) -> None:
        left = set(transaction.partitions)
        while True:
            by_leader: dict[int, list[TopicPartition]] = {}
            for topic, index in sorted(left):
                state = self._image().partition(topic, index)
                if state is None:
                    left.discard((topic, index))  # Deleted: there is nothing to end.
                else:
                    by_leader.setdefault(state.leader, []).append((topic, index))
            if not left:
                return
            sent = [
                self._send_to(leader, transaction, coordinator_epoch, partitions)
                for leader, partitions in by_leader.items()
            ]
            # One leader, usually this broker: it needs no task of its own.
            for result in [await sent[0]] if len(sent) == 1 else await asyncio.gather(*sent):
                left -= {partition for partition, code in result.items() if _settled(partition, code)}
            if not left:
                return
            await self._clock.sleep(RETRY_SECONDS)

    async def _send_to(
        self, leader: int, transaction: Transaction, coordinator_epoch: int, partitions: list[TopicPartition]
    ) -> dict[TopicPartition, ErrorCode]:
        committed = transaction.status is Status.PREPARE_COMMIT
        producer_id, epoch = transaction.producer_id, transaction.producer_epoch
        if leader == self._broker_id:
            return await self._writer.write(
                producer_id, epoch, coordinator_epoch, committed, partitions, transaction.client_version
            )
        topics: dict[str, WritableTxnMarkerTopic] = {}
        for topic, index in partitions:
            topics.setdefault(topic, WritableTxnMarkerTopic(topic)).partition_indexes.append(index)
        marker = WritableTxnMarker(
            producer_id,
            epoch,
            committed,
            topics=list(topics.values()),
            coordinator_epoch=coordinator_epoch,
            transaction_version=transaction.client_version,
        )
        try:
            version = await self._peers.newest(leader, WriteTxnMarkersRequest, VERSION)
            response = await self._peers.call(leader, WriteTxnMarkersRequest([marker]), version)
        except OSError as error:
            log.info("markers for broker %d wait: %s", leader, error)
            return {}
        assert isinstance(response, WriteTxnMarkersResponse)
        return {
            (topic.name, answer.partition_index): ErrorCode(answer.error_code)
            for each in response.markers
            for topic in each.topics
            for answer in topic.partitions
        }


def _settled(partition: TopicPartition, code: ErrorCode) -> bool:
    """Written, or refused for good: the partition has seen a newer producer or coordinator."""
    if code in (ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.TRANSACTION_COORDINATOR_FENCED):
        log.warning("the marker for %s-%d was refused: %s", *partition, code.name)
        return True
    return code is ErrorCode.NONE
