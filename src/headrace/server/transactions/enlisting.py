"""Asks a transaction's coordinator, on whichever broker, to verify that a partition belongs to the transaction, or to add it.

Old clients name their partitions first (AddPartitionsToTxn), so a write is only verified; clients with transaction
version 2 just write, and the broker names the partition for them.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence

from headrace.clock import Clock
from headrace.server.cluster.image import MetadataImage
from headrace.server.cluster.internal_topics import TRANSACTION_STATE
from headrace.server.cluster.peers import Peers
from headrace.server.transactions.coordinator import TransactionCoordinator
from headrace.server.transactions.metadata import TopicPartition
from headrace.wire.errors import ErrorCode, KafkaError
from headrace.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)

VERSION = 5

Answers = dict[TopicPartition, ErrorCode]


class Enlisting:
    def __init__(
        self,
        broker_id: int,
        image: Callable[[], MetadataImage],
        coordinator: TransactionCoordinator,
        peers: Peers,
        clock: Clock,
        *,
        backoff_ms: int = 20,
        longest_backoff_ms: int = 100,
    ) -> None:
        """`backoff_ms` is the pause before a coordinator on another broker is asked again, `longest_backoff_ms` the limit on
        all pauses together."""
        self._backoff_ms = backoff_ms
        self._attempts = max(1, longest_backoff_ms // backoff_ms)
        self._broker_id = broker_id
        self._image = image
        self._coordinator = coordinator
        self._peers = peers
        self._clock = clock

    async def ask_in_time(
        self,
        transactional_id: str,
        verify_only: bool,
        begin: Callable[[], Mapping[tuple[int, int], Sequence[TopicPartition]]],
    ) -> Answers:
        """Ask about the partitions of each producer (id and epoch), for which `begin` takes guards. While the last
        transaction is still ending, wait briefly, begin again and ask again."""
        for attempt in range(1, self._attempts + 1):
            answers: Answers = {}
            for (producer_id, epoch), partitions in begin().items():
                answers |= await self.ask(transactional_id, producer_id, epoch, partitions, verify_only)
            if attempt == self._attempts or ErrorCode.CONCURRENT_TRANSACTIONS not in answers.values():
                break
            await self._wait_for_ending(transactional_id)
        return answers

    def verify_locally(
        self, transactional_id: str, producers: Mapping[tuple[int, int], Sequence[TopicPartition]]
    ) -> Answers | None:
        """The answers, at once, if this broker is the coordinator and accepts every partition; None otherwise."""
        if not self._is_coordinator(transactional_id):
            return None
        answers: Answers = {}
        try:
            for (producer_id, epoch), partitions in producers.items():
                answers |= self._coordinator.verify(transactional_id, producer_id, epoch, partitions)
        except KafkaError:
            return None
        return None if any(answers.values()) else answers

    def _is_coordinator(self, transactional_id: str) -> bool:
        index = self._coordinator.partition_for(transactional_id)
        state = self._image().partition(TRANSACTION_STATE, index)
        return state is not None and state.leader == self._broker_id

    async def _wait_for_ending(self, transactional_id: str) -> None:
        if self._is_coordinator(transactional_id):
            with contextlib.suppress(KafkaError):
                await self._coordinator.wait_for_ending(transactional_id)
        else:
            await self._clock.sleep(self._backoff_ms / 1000)

    async def ask(
        self,
        transactional_id: str,
        producer_id: int,
        epoch: int,
        partitions: Sequence[TopicPartition],
        verify_only: bool,
    ) -> Answers:
        """NONE for each partition that may be written to as part of the transaction."""
        index = self._coordinator.partition_for(transactional_id)
        state = self._image().partition(TRANSACTION_STATE, index)
        if state is None:
            return dict.fromkeys(partitions, ErrorCode.COORDINATOR_NOT_AVAILABLE)
        try:
            if state.leader == self._broker_id:
                return await self.ask_here(transactional_id, producer_id, epoch, partitions, verify_only)
            return await self._ask_peer(
                state.leader, transactional_id, producer_id, epoch, partitions, verify_only
            )
        except KafkaError as error:
            return dict.fromkeys(partitions, error.code)
        except OSError:
            return dict.fromkeys(partitions, ErrorCode.COORDINATOR_NOT_AVAILABLE)

    async def ask_here(
        self,
        transactional_id: str,
        producer_id: int,
        epoch: int,
        partitions: Sequence[TopicPartition],
        verify_only: bool,
    ) -> Answers:
        if verify_only:
            return self._coordinator.verify(transactional_id, producer_id, epoch, partitions)
        # A topic may be so new that this broker does not know it. At the end it would count as deleted, get no marker,
        # and keep the transaction open for its readers: let the producer retry.
        image = self._image()
        known = [each for each in partitions if image.partition(*each) is not None]
        if known:
            await self._coordinator.add_partitions(
                transactional_id, producer_id, epoch, known, client_version=2
            )
        unknown = dict.fromkeys(partitions, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        return unknown | dict.fromkeys(known, ErrorCode.NONE)

    async def _ask_peer(
        self,
        leader: int,
        transactional_id: str,
        producer_id: int,
        epoch: int,
        partitions: Sequence[TopicPartition],
        verify_only: bool,
    ) -> Answers:
        topics: dict[str, AddPartitionsToTxnTopic] = {}
        for topic, index in partitions:
            topics.setdefault(topic, AddPartitionsToTxnTopic(topic)).partitions.append(index)
        asked = AddPartitionsToTxnTransaction(
            transactional_id, producer_id, epoch, verify_only, list(topics.values())
        )
        response = await self._peers.call(leader, AddPartitionsToTxnRequest(transactions=[asked]), VERSION)
        assert isinstance(response, AddPartitionsToTxnResponse)
        if response.error_code:
            return dict.fromkeys(partitions, ErrorCode(response.error_code))
        return {
            (topic.name, answer.partition_index): ErrorCode(answer.partition_error_code)
            for result in response.results_by_transaction
            for topic in result.topic_results
            for answer in topic.results_by_partition
        }
